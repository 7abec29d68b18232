import datetime

from modwatch.tracking.alert_messages import (
    StandingAlert,
    alert_tag,
    described,
    incident_alert,
    most_severe_first,
    retired_alert,
)
from modwatch.tracking.alert_rules import Rule, load_rules
from modwatch.tracking.alerts import Figure, News

DAY = datetime.date(2026, 1, 5)
RULES = {rule.name: rule for rule in load_rules()}


def figure(rule: Rule, **changes: object) -> Figure:
    plain = {
        "day": DAY,
        "metric": rule.metric,
        "value": 0.7123456,
        "low": 0.6,
        "high": 0.8,
        "n": 2000,
    }
    return Figure(**{**plain, **changes})  # type: ignore[arg-type]


def standing(rule: str, severity: str) -> StandingAlert:
    return StandingAlert(rule=rule, subject="", severity=severity, since=DAY, words="")  # type: ignore[arg-type]


def test_an_opened_incident_says_what_to_look_at_and_a_recovered_one_does_not() -> None:
    rule = RULES["oc_accuracy_low"]
    news = News(kind="opened", since=DAY, day=DAY, figure=figure(rule))
    opened = incident_alert(rule, "", news, 1)
    assert opened.text.splitlines() == [
        "Window_oc_accuracy 0.7123 (0.6 to 0.8, n = 2,000); the upper end must not be below 0.85.",
        "Since 2026-01-05; opened (2026-01-05).",
        f"Look at: {rule.look_at}",
    ]
    ended = incident_alert(rule, "", News(kind="recovered", since=DAY, day=DAY, figure=None), 2)
    assert ended.text == "Since 2026-01-05; recovered (2026-01-05)."
    assert ended.facts["figure"] is None
    assert len({opened.key, ended.key, retired_alert(rule.name, "", DAY, 3).key}) == 3


def test_words_fit_what_is_known() -> None:
    rule = RULES["estimates_missing"]
    unknown = figure(rule, value=None, low=None, high=None, n=3, status="insufficient")
    assert described(rule, unknown) == "window_oc_accuracy could not be estimated (n = 3)"
    bare = figure(RULES["queue_old"], value=100.0, low=None, high=None, n=7)
    assert described(RULES["queue_old"], bare) == (
        "queue_age_oldest_hours 100 (n = 7); it must not be above 96"
    )


def test_a_key_and_a_name_stay_on_one_line_whatever_the_data_is_called() -> None:
    rule = RULES["missing_share_changed"]
    news = News(kind="opened", since=DAY, day=DAY, figure=None)
    alert = incident_alert(rule, "a\r\nBcc: thief,trailing", news, 1)
    assert alert.key.isprintable()
    assert " " not in alert.key


def test_the_tag_names_each_rule_once_the_worst_first() -> None:
    found = [
        standing("b_rule", "info"),
        standing("z_rule", "critical"),
        standing("a_rule", "warning"),
        standing("z_rule", "critical"),
        standing("a_rule", "critical"),
    ]
    assert alert_tag(found) == "critical: a_rule, z_rule; warning: a_rule; info: b_rule"
    assert [each.severity for each in most_severe_first(found)][:3] == ["critical"] * 3


def test_the_tag_stays_short() -> None:
    assert len(alert_tag([standing(f"rule_{n:050}", "info") for n in range(999)])) < 4000
