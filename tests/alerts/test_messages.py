import datetime

from modwatch.alerts.incidents import MetricValue, Transition
from modwatch.alerts.messages import (
    Alert,
    approval_alert,
    describe_value,
    incident_alert,
    reminder_alert,
    unwatched_alert,
)
from modwatch.alerts.rules import AlertRule, load_rules

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


def test_an_opened_incident_says_what_to_look_at_and_a_recovered_one_does_not() -> None:
    rule = RULES["oc_accuracy_low"]
    news = Transition(kind="opened", since=DAY, day=DAY, value=figure(rule))
    opened = incident_alert(rule, "", news, 1)
    assert opened.text.splitlines() == [
        "window_oc_accuracy is 0.7123 (95% CI 0.6 to 0.8, n = 2,000); "
        "threshold: upper bound < 0.85.",
        "Incident opened on 2026-01-05; first day beyond the threshold: 2026-01-05.",
        f"Look at: {rule.look_at}",
    ]
    ended = incident_alert(
        rule, "", Transition(kind="recovered", since=DAY, day=DAY, value=None), 2
    )
    assert ended.text == "Incident recovered on 2026-01-05; active since 2026-01-05."
    assert ended.facts["figure"] is None
    assert len({opened.key, ended.key, unwatched_alert(rule.name, "", DAY, 3).key}) == 3


def test_words_fit_what_is_known() -> None:
    rule = RULES["estimates_missing"]
    unknown = figure(rule, value=None, low=None, high=None, n=3, status="insufficient")
    assert describe_value(rule, unknown) == "window_oc_accuracy could not be estimated (n = 3)"
    bare = figure(RULES["queue_old"], value=100.0, low=None, high=None, n=7)
    assert describe_value(RULES["queue_old"], bare) == (
        "queue_age_oldest_hours is 100 (n = 7); threshold: > 96"
    )


def test_a_key_and_a_name_stay_on_one_line_whatever_the_data_is_called() -> None:
    rule = RULES["missing_share_changed"]
    news = Transition(kind="opened", since=DAY, day=DAY, value=None)
    alert = incident_alert(rule, "a\r\nBcc: thief,trailing", news, 1)
    assert alert.key.isprintable()
    assert " " not in alert.key


def test_a_question_says_what_is_waited_for_and_where_to_answer() -> None:
    alert = approval_alert("2026-01", "signed_off", "http://airflow/dags/x")
    assert alert.payload == {
        "key": "audit/2026-01/signed_off",
        "title": "[info] Audit 2026-01 is waiting for sign-off",
        "text": "The audit is paused until somebody gives sign-off or cancels it.",
        "event": "question",
        "severity": "info",
        "audit": "2026-01",
        "action": "signed_off",
        "links": {"answer": "http://airflow/dags/x"},
    }
    assert approval_alert("2026-01", "approved", "").key != alert.key


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
    assert (
        alert.title == "[info] Audit 2026-01: 1,800 labels missing, deadline 2026-02-15 07:30 UTC"
    )
    assert alert.text == (
        "1,200 of 3,000 comments of audit 2026-01 are labelled. Comments without a label at "
        "2026-02-15 07:30 UTC are excluded, which widens the confidence intervals."
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
    assert (
        " are labelled. 7 are escalated to a lead. Comments without" in reminded(escalated=7).text
    )


def test_a_key_of_an_audit_stays_on_one_line() -> None:
    assert approval_alert("a\r\nBcc: thief", "approved", "").key == "audit/a__Bcc:_thief/approved"
    assert reminded(key="a b\n").key == "a_b_"
