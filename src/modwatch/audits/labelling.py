"""The labelling of a stage: how far it is, and what keeps its labels from being sealed."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from modwatch.audits import evidence
from modwatch.audits.evidence import Event
from modwatch.audits.identities import conflict
from modwatch.audits.review_items import AuditProgress
from modwatch.common.errors import AuditError
from modwatch.statistics.audit.labels import AuditLabel
from modwatch.statistics.audit.plan import AuditPlan


@dataclass(frozen=True, kw_only=True)
class Labelling:
    """The progress of the labels of a stage."""

    progress: AuditProgress
    #: Labels are not waited for any longer, UTC.
    deadline: datetime
    #: When the stage was drawn, UTC.
    since: datetime

    @property
    def over(self) -> bool:
        """Whether all items are decided or the deadline has passed."""
        complete = bool(self.progress.items) and not self.progress.left
        return complete or datetime.now(UTC) >= self.deadline

    @property
    def text(self) -> str:
        """The progress in a sentence."""
        progress = self.progress
        lead = f", {progress.escalated:,} are escalated to a lead" if progress.escalated else ""
        return (
            f"{progress.decided:,} of {progress.items:,} comments are decided{lead}; the deadline "
            f"is {self.deadline:%Y-%m-%d %H:%M} UTC."
        )


def refuse_incomplete(
    audit: str, progress: AuditProgress, drawn: int, *, stop: bool, note: str
) -> None:
    """Raise AuditError unless all items are queued, and decided or left out for a reason."""
    if progress.items < drawn:
        raise AuditError(
            f"audit {audit!r}: {drawn} comments are drawn and {progress.items} of them queued; "
            "draw the stage again to queue the rest"
        )
    if progress.left and not stop:
        raise AuditError(
            f"audit {audit!r}: {progress.open}; wait for them, or stop the labelling with a reason"
        )
    if progress.left and not note.strip():
        raise AuditError(
            f"audit {audit!r}: {progress.open}; name the reason why the labelling stops without "
            "them, which the report tells"
        )


def refuse_labels_of_approver(
    plan: AuditPlan, chain: Sequence[Event], labels: Collection[AuditLabel]
) -> None:
    """Raise AuditError when who approved the plan has labelled."""
    approved = evidence.first_of(chain, "approved")
    labellers = {one.labeller for one in labels}
    if approved is not None:
        why = conflict(chain, "approved", approved.actor, four_eyes=False, labellers=labellers)
        if why:
            raise AuditError(
                f"audit {plan.audit!r}: {why}; have the labels undone, or cancel the audit"
            )
