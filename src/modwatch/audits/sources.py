"""What an audit takes from the lake and the log of decisions: scores, texts and labels."""

import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from modwatch.audit import files
from modwatch.audit.draw import DrawnComment, Scored, labels_wanted
from modwatch.audit.evidence import read, sealed_files
from modwatch.audit.labels import AuditLabel, changed
from modwatch.audit.plan import AuditPlan
from modwatch.audits.population import scored
from modwatch.errors import AuditError
from modwatch.resources import Resources
from modwatch.review.queue.audits import audit_labels
from modwatch.review.queue.items import NewItem


def population(at: Resources, plan: AuditPlan) -> Iterator[Scored]:
    """Yield the scores of the period of a plan, day by day."""
    for day in plan.population:
        yield from scored(at.lake, day.day)


def standing_labels(at: Resources, audit: str) -> list[AuditLabel]:
    """Return the labels of an audit as the log of decisions has them now."""
    return [AuditLabel(**row) for row in audit_labels(at.database, audit)]


def changed_labels(at: Resources, audit: str, folder: Mapping[str, bytes]) -> str:
    """Return in words how many comments have other labels now than were sealed; empty for none.

    Everybody may correct what they said, and nobody is told that it was for an audit; so a label
    may change after it was sealed. What was sealed stays as it is.
    """
    known = sealed_files(read(folder[files.CHAIN].decode()))
    names = [name for name in map(files.labels_file, (2, 1)) if name in known]
    if not names:
        return ""
    number = len(changed(files.read_labels(folder[names[0]]), standing_labels(at, audit)))
    comments = "1 comment" if number == 1 else f"{number} comments"
    words = f"the labels of {comments} were changed in the log of decisions after they were sealed"
    return words if number else ""


def refuse_changed_labels(at: Resources, audit: str, folder: Mapping[str, bytes]) -> None:
    """Raise AuditError when a label was changed after it was sealed: nothing may rest on it."""
    words = changed_labels(at, audit, folder)
    if words:
        raise AuditError(f"audit {audit!r}: {words}; cancel the audit, and plan it anew")


def queue_items(
    at: Resources, plan: AuditPlan, drawn: Sequence[DrawnComment], sizes: Sequence[int]
) -> list[tuple[datetime.date, NewItem]]:
    """Return the drawn comments as the queue takes them, in the order of the draw.

    `sizes` (H,) says how many comments of each stratum all stages so far draw: over the stratum's
    comments, that is the probability with which each of them had to be drawn by now.
    """
    texts = _texts(at, drawn)
    return [
        (
            each.day,
            NewItem(
                **texts[each.day, each.comment_id],
                kind="audit",
                reason="audit",
                stratum=each.stratum,
                inclusion_probability=sizes[each.stratum] / plan.strata[each.stratum].population,
                rank=rank,
                review_score=0.0,
                prob=each.score,
                uncertainty=each.score * (1 - each.score),
                model_version=plan.model_version,
                labels_wanted=labels_wanted(plan, each),
            ),
        )
        for rank, each in enumerate(drawn, 1)
    ]


def _texts(
    at: Resources, drawn: Sequence[DrawnComment]
) -> dict[tuple[datetime.date, str], dict[str, Any]]:
    """Return what people are shown of each drawn comment."""
    texts: dict[tuple[datetime.date, str], dict[str, Any]] = {}
    columns = ["comment_id", "text", "parent_text", "language", "platform"]
    for day in sorted({each.day for each in drawn}):
        wanted = {each.comment_id for each in drawn if each.day == day}
        for batch in at.lake.read("comments", day, columns=columns):
            texts |= {
                (day, row["comment_id"]): row
                for row in batch.to_pylist()
                if row["comment_id"] in wanted
            }
    return texts
