import datetime

from modwatch.alerts.incidents import Figure, News
from modwatch.alerts.messages import (
    Alert,
    StandingAlert,
    alert_tag,
    described,
    incident_alert,
    most_severe_first,
    question_alert,
    reminder_alert,
    retired_alert,
)
from modwatch.alerts.rules import Rule, load_rules

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


def test_a_question_says_what_is_waited_for_and_where_to_answer() -> None:
    alert = question_alert("2026-01", "signed_off", "http://airflow/dags/x")
    assert alert.payload == {
        "key": "audit/2026-01/signed_off",
        "title": "info: audit 2026-01 waits to be signed off",
        "text": "Nothing happens until somebody has it signed off, or gives it up.",
        "event": "question",
        "severity": "info",
        "audit": "2026-01",
        "action": "signed_off",
        "links": {"answer": "http://airflow/dags/x"},
    }
    assert question_alert("2026-01", "approved", "").key != alert.key


def reminded(**changes: object) -> Alert:
    plain = {
        "audit": "2026-01",
        "key": "audit/2026-01/1/2",
        "decided": 1_200,
        "items": 3_000,
        "escalated": 0,
        "deadline": datetime.datetime(2026, 2, 15, 7, 30, tzinfo=datetime.UTC),
        "links": {"review queue": "http://console"},
    }
    return reminder_alert(**{**plain, **changes})  # type: ignore[arg-type]


def test_a_reminder_says_how_many_labels_are_missing_and_until_when() -> None:
    alert = reminded()
    assert alert.title == "info: audit 2026-01 waits for 1,800 labels until 2026-02-15 07:30 UTC"
    assert alert.text == (
        "1,200 of 3,000 comments of the audit 2026-01 are decided. What is not decided by "
        "2026-02-15 07:30 UTC is left out, and the intervals are wider for it."
    )
    assert alert.facts == {
        "event": "reminder",
        "severity": "info",
        "audit": "2026-01",
        "decided": 1_200,
        "items": 3_000,
        "escalated": 0,
        "deadline": "2026-02-15T07:30:00+00:00",
    }
    assert alert.links == {"review queue": "http://console"}


def test_a_reminder_tells_what_waits_for_a_lead() -> None:
    assert " are decided. 7 of them wait for a lead. What is not" in reminded(escalated=7).text


def test_a_key_of_an_audit_stays_on_one_line() -> None:
    assert question_alert("a\r\nBcc: thief", "approved", "").key == "audit/a__Bcc:_thief/approved"
    assert reminded(key="a b\n").key == "a_b_"
