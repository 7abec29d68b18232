"""Alerts about an audit: an approval or a signature is needed, labels are missing."""

from modwatch.audits.review_items import Labelling
from modwatch.monitoring.incidents.messages.alert import Alert, header_safe


def approval_alert(audit: str, action: str, page: str) -> Alert:
    """Return the alert that an audit waits for an action: `approved` or `signed_off`.

    `page` is the Airflow page on which to answer.

    >>> approval_alert("2026-01", "signed_off", "http://airflow").title
    '[info] Audit 2026-01 is waiting for sign-off'
    """
    need = {"approved": "approval", "signed_off": "sign-off"}[action]
    return Alert(
        key=header_safe(f"audit/{audit}/{action}"),
        title=f"[info] Audit {audit} is waiting for {need}",
        text=f"The audit is paused until someone gives {need} or cancels it.",
        facts={"event": "question", "severity": "info", "audit": audit, "action": action},
        links={"answer": page},
    )


def reminder_alert(
    audit: str, stage: int, number: int, labelling: Labelling, console: str
) -> Alert:
    """Return the `number`th reminder that labels of a stage are missing.

    `console` is the URL of the review console.
    """
    progress, deadline = labelling.progress, labelling.deadline
    until = f"{deadline:%Y-%m-%d %H:%M} UTC"
    lead = f" {progress.escalated:,} are escalated to a lead." if progress.escalated else ""
    return Alert(
        key=header_safe(f"audit/{audit}/{stage}/{number}"),
        title=f"[info] Audit {audit}: {progress.items - progress.decided:,} labels missing, "
        f"deadline {until}",
        text=f"{progress.decided:,} of {progress.items:,} comments of audit {audit} are labelled."
        f"{lead} Comments without a label at {until} are excluded, which widens the confidence "
        "intervals.",
        facts={
            "event": "reminder",
            "severity": "info",
            "audit": audit,
            "decided": progress.decided,
            "items": progress.items,
            "escalated": progress.escalated,
            "deadline": deadline.isoformat(),
        },
        links={"review queue": console},
    )
