import datetime

from modwatch.monitoring.incidents.messages.alert import Alert
from modwatch.monitoring.incidents.messages.requests import (
    approval_alert,
    reminder_alert,
)


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
