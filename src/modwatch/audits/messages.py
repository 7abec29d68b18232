"""Messages about an audit: an approval or a signature is needed, labels are missing."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from modwatch.audits.review_items import Labelling


@dataclass(frozen=True, kw_only=True)
class Message:
    """A message, with the fields of an alert."""

    #: The same whenever the message is sent again.
    key: str
    #: One line.
    title: str
    text: str
    #: The content as data.
    facts: Mapping[str, Any]
    #: Pages to open, by name.
    links: Mapping[str, str] = field(default_factory=dict)


def approval_message(audit: str, action: str, page: str) -> Message:
    """Return the message that an audit waits for an action: `approved` or `signed_off`.

    `page` is the Airflow page on which to answer.

    >>> approval_message("2026-01", "signed_off", "http://airflow").title
    '[info] Audit 2026-01 is waiting for sign-off'
    """
    need = {"approved": "approval", "signed_off": "sign-off"}[action]
    return Message(
        key=f"audit/{audit}/{action}",
        title=f"[info] Audit {audit} is waiting for {need}",
        text=f"The audit is paused until someone gives {need} or cancels it.",
        facts={"event": "question", "severity": "info", "audit": audit, "action": action},
        links={"answer": page},
    )


def reminder_message(
    audit: str, stage: int, number: int, labelling: Labelling, console: str
) -> Message:
    """Return the `number`th reminder that labels of a stage are missing.

    `console` is the URL of the review console.
    """
    progress, deadline = labelling.progress, labelling.deadline
    until = f"{deadline:%Y-%m-%d %H:%M} UTC"
    lead = f" {progress.escalated:,} are escalated to a lead." if progress.escalated else ""
    return Message(
        key=f"audit/{audit}/{stage}/{number}",
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
