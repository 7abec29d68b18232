import datetime
import json
from dataclasses import replace

from modwatch.monitoring.incidents.incidents import (
    LevelChange,
    MetricValue,
    Transition,
)
from modwatch.monitoring.incidents.messages.findings import series_name
from modwatch.monitoring.incidents.messages.incidents import (
    incident_alert,
    unwatched_alert,
)
from modwatch.monitoring.incidents.rules import AlertRule, load_rules
from modwatch.monitoring.incidents.store import IncidentRecord
from modwatch.statistics.drift.daily_levels import Level

DAY = datetime.date(2026, 1, 5)
RULES = {rule.name: rule for rule in load_rules()}


def figure(rule: AlertRule, **changes: object) -> MetricValue:
    plain = {
        "day": DAY,
        "metric": rule.metric,
        "value": 0.7123456,
        "low": 0.6,
        "high": 0.8,
        "n": 2000,
    }
    return MetricValue(**{**plain, **changes})  # type: ignore[arg-type]


def found(rule: AlertRule, *, subject: str = "", **changes: object) -> tuple:
    return rule, subject, figure(rule, **changes)


def test_where_a_repair_helps_it_names_the_day():
    news = Transition(kind="opened", since=DAY, day=DAY)
    low, late = (
        incident_alert("volume", [found(RULES[name], subject=subject)], news, 1)
        for name, subject in (("volume_low", "comments"), ("rows_late", "2026-01-02"))
    )
    assert low.text.endswith(f"run `modwatch repair {DAY}`.")
    assert late.text.endswith("run `modwatch repair 2026-01-02`.")


def test_an_opened_incident_says_what_to_look_at_and_a_recovered_one_does_not():
    rule = RULES["oc_accuracy_low"]
    news = Transition(kind="opened", since=DAY, day=DAY)
    opened = incident_alert("quality", [found(rule)], news, 1)
    assert opened.title == (
        "[critical] Accuracy with review is low: 0.712 over the window, since 5 January 2026"
    )
    assert opened.text.splitlines() == [
        "Accuracy with review over the window is 0.7123 (95% CI 0.6 to 0.8, n = 2,000); "
        "threshold: upper bound < 0.85.",
        "Opened on 5 January 2026; it began on 5 January 2026.",
        f"Look at: {rule.look_at}",
    ]
    over = Transition(kind="recovered", since=DAY, day=DAY)
    headline = str(opened.facts["headline"])
    ended = incident_alert("quality", [(rule, "", None)], over, 2, headline=headline)
    assert ended.title == f"[critical] Recovered: {headline}, since 5 January 2026"
    assert ended.text == "Recovered on 5 January 2026; it began on 5 January 2026."
    assert ended.facts["figure"] is None
    known = IncidentRecord(
        name="quality",
        severity="warning",
        since=DAY,
        opened=DAY,
        rule=rule.name,
        notified_on=DAY,
        sequence=2,
        headline=headline,
        first_headline=headline,
        text=opened.text,
    )
    gone = unwatched_alert(known, None)
    assert len({opened.key, ended.key, gone.key}) == 3
    assert "was removed or has no data" in gone.text
    assert gone.title == f"Withdrawn: {headline}, since 5 January 2026"
    moved = unwatched_alert(replace(known, name="accuracy_low"), "quality")
    assert "belongs to the incident quality now" in moved.text


CHANGE = LevelChange(
    day=datetime.date(2026, 3, 12),
    day_low=datetime.date(2026, 3, 11),
    day_high=datetime.date(2026, 3, 13),
    before=Level(value=0.965, low=0.955, high=0.974),
    after=Level(value=0.715, low=0.66, high=0.77),
    evidence=1200.0,
)


def test_a_fall_is_reported_with_levels_size_and_day():
    rule = RULES["accuracy_fell_far"]
    news = Transition(kind="opened", since=CHANGE.day, day=CHANGE.day_high)
    fallen = {"value": -0.25, "low": -0.3, "high": -0.195, "change": CHANGE}
    with_review = (RULES["oc_accuracy_fell"], "", figure(RULES["oc_accuracy_fell"], **fallen))
    alert = incident_alert("quality", [found(rule, **fallen), with_review], news, 1)
    assert alert.title == (
        "[critical] The model's accuracy fell from 0.965 to 0.715, since 12 March 2026"
    )
    assert alert.text.splitlines() == [
        "The model's accuracy fell from 0.965 (0.955 to 0.974) to 0.715 (0.660 to 0.770), a change "
        "of −25.0 points (95 % interval −30.0 to −19.5), since 12 March 2026 (11 March 2026 to 13 "
        "March 2026); by chance at most once in 13 quarters.",
        "Opened on 13 March 2026; it began on 12 March 2026.",
        "Also: Accuracy with review fell from 0.965 to 0.715.",
        f"Look at: {rule.look_at}",
    ]
    assert json.loads(json.dumps(alert.payload))["figure"]["change"] == {
        "day": "2026-03-12",
        "day_low": "2026-03-11",
        "day_high": "2026-03-13",
        "evidence": 1200.0,
        "before": {"value": 0.965, "low": 0.955, "high": 0.974},
        "after": {"value": 0.715, "low": 0.66, "high": 0.77},
    }


def test_a_key_and_a_name_stay_on_one_line_whatever_the_data_is_called():
    rule = RULES["missing_share_changed"]
    news = Transition(kind="opened", since=DAY, day=DAY)
    subject = "a\r\nBcc: thief,trailing"
    name = series_name(rule.name, subject)
    alert = incident_alert(name, [(rule, subject, None)], news, 1)
    assert alert.key.isprintable()
    assert " " not in alert.key
    assert alert.title.isprintable()
