"""Open incidents, as the newest evaluation sees them."""

import datetime

from modwatch.monitoring.incidents.actions import OpenIncident
from modwatch.monitoring.incidents.current import as_evaluated
from modwatch.monitoring.incidents.messages.incidents import ActiveAlert
from modwatch.monitoring.incidents.rules import load_rules

RULES = load_rules()
OPENED = datetime.date(2026, 10, 22)
FELL = "The model's accuracy fell from {} to {}"


def incident(name: str, headline: str) -> OpenIncident:
    return OpenIncident(
        name=name,
        headline=headline,
        first_headline=headline,
        severity="critical",
        since=datetime.date(2026, 10, 20),
        opened=OPENED,
    )


def alert(rule: str, headline: str, subject: str = "") -> ActiveAlert:
    return ActiveAlert(
        rule=rule,
        subject=subject,
        severity="critical",
        since=OPENED,
        description="Accuracy fell from 0.957 to 0.859",
        headline=headline,
    )


def now(told: OpenIncident, found: ActiveAlert, day: datetime.date = OPENED) -> OpenIncident:
    (shown,) = as_evaluated([told], [found], day, RULES)
    return shown


def test_an_incident_says_what_was_evaluated_last_and_what_was_told_at_first() -> None:
    told = incident("quality", FELL.format(0.957, 0.777))
    shown = now(told, alert("accuracy_fell", FELL.format(0.957, 0.859)))
    assert shown.headline == FELL.format(0.957, 0.859)
    assert shown.at_first == told.headline
    assert (shown.newest_value, shown.evaluated) == ("Accuracy fell from 0.957 to 0.859", OPENED)
    assert (shown.severity, shown.since) == (told.severity, told.since)
    assert now(told, alert("accuracy_fell", told.headline)).at_first == ""


def test_an_alert_belongs_to_the_incident_of_its_cause_and_subject() -> None:
    told = incident("missing_share_changed[author,trailing]", "The column author is empty")
    others = (
        alert("missing_share_changed", "other", subject="thread,trailing"),
        alert("accuracy_fell", "other"),
        alert("a_rule_that_was_removed", "other", subject="author,trailing"),
        alert("missing_share_changed", "", subject="author,trailing"),  # of an earlier version
    )
    assert [now(told, each) for each in others] == [told] * 4
    mine = alert("missing_share_changed", "mine", subject="author,trailing")
    assert now(told, mine).headline == "mine"
    assert as_evaluated([told], [*others, mine], OPENED, RULES)[0].headline == "mine"


def test_an_incident_that_opened_after_the_evaluation_is_as_it_was_told() -> None:
    told = incident("quality", FELL.format(0.957, 0.777))
    earlier = OPENED - datetime.timedelta(days=1)
    assert now(told, alert("accuracy_fell", FELL.format(0.9, 0.8)), earlier) == told
