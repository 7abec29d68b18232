"""The messages about an audit."""

import datetime

from modwatch.audits.review_items import AuditProgress, Labelling
from modwatch.monitoring.incidents.messages.alert import Alert
from modwatch.pipeline.audit_messages import approval_alert, reminder_alert


def test_a_question_names_what_is_needed_and_where_to_answer() -> None:
    message = approval_alert("2026-01", "signed_off", "http://airflow/dags/x")
    assert message == Alert(
        key="audit/2026-01/signed_off",
        title="[info] Audit 2026-01 is waiting for sign-off",
        text="The audit is paused until someone gives sign-off or cancels it.",
        facts={
            "event": "question",
            "severity": "info",
            "audit": "2026-01",
            "action": "signed_off",
        },
        links={"answer": "http://airflow/dags/x"},
    )
    assert approval_alert("2026-01", "approved", "").key != message.key


def reminded(**progress: int) -> Alert:
    drawn = datetime.datetime(2026, 2, 1, 7, 30, tzinfo=datetime.UTC)
    labelling = Labelling(
        progress=AuditProgress(**{"waiting": 1_800, "decided": 1_200, **progress}),
        since=drawn,
        deadline=drawn + datetime.timedelta(days=14),
    )
    return reminder_alert("2026-01", 1, 2, labelling, "http://console")


def test_a_reminder_counts_the_missing_labels_and_names_the_deadline() -> None:
    message = reminded()
    assert message.key == "audit/2026-01/1/2"
    assert (
        message.title == "[info] Audit 2026-01: 1,800 labels missing, deadline 2026-02-15 07:30 UTC"
    )
    assert message.text == (
        "1,200 of 3,000 comments of audit 2026-01 are labelled. Comments without a label at "
        "2026-02-15 07:30 UTC are excluded, which widens the confidence intervals."
    )
    assert message.facts == {
        "event": "reminder",
        "severity": "info",
        "audit": "2026-01",
        "decided": 1_200,
        "items": 3_000,
        "escalated": 0,
        "deadline": "2026-02-15T07:30:00+00:00",
    }
    assert message.links == {"review queue": "http://console"}


def test_a_reminder_counts_what_waits_for_a_lead() -> None:
    text = reminded(waiting=1_793, escalated=7).text
    assert " are labelled. 7 are escalated to a lead. Comments without" in text
