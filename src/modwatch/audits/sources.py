"""What an audit reads from the lake and the decision log: scores, texts and labels."""

import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Engine
from tqdm import tqdm

from modwatch.audit import files
from modwatch.audit.draw import DrawnComment, Scored, labels_wanted
from modwatch.audit.evidence import read, sealed_files
from modwatch.audit.labels import AuditLabel, changed
from modwatch.audit.plan import AuditPlan
from modwatch.audits.population import scored
from modwatch.errors import AuditError
from modwatch.lake.delta import Lake
from modwatch.review.queue.audits import audit_labels
from modwatch.review.queue.items import NewItem


def population(lake: Lake, plan: AuditPlan) -> Iterator[Scored]:
    """Yield the scores of the period of a plan, day by day."""
    for day in tqdm(plan.population, desc="Reading scores", unit="day", disable=None):
        yield from scored(lake, day.day)


def current_labels(database: Engine, audit: str) -> list[AuditLabel]:
    """Return the labels of an audit as the decision log has them now."""
    return [AuditLabel(**row) for row in audit_labels(database, audit)]


def changed_labels(database: Engine, audit: str, folder: Mapping[str, bytes]) -> str:
    """Return a sentence that counts the labels changed since they were sealed; empty for none.

    Labellers may correct their decisions and do not know which were for an audit, so a label may
    change after it was sealed. The sealed file stays as it is.
    """
    known = sealed_files(read(folder[files.CHAIN].decode()))
    names = [name for name in map(files.labels_file, (2, 1)) if name in known]
    if not names:
        return ""
    number = len(changed(files.read_labels(folder[names[0]]), current_labels(database, audit)))
    comments = "1 comment" if number == 1 else f"{number} comments"
    text = f"the labels of {comments} were changed in the decision log after they were sealed"
    return text if number else ""


def raise_on_changed_labels(database: Engine, audit: str, folder: Mapping[str, bytes]) -> None:
    """Raise AuditError when a label was changed after it was sealed."""
    text = changed_labels(database, audit, folder)
    if text:
        raise AuditError(f"audit {audit!r}: {text}; cancel the audit and plan another")


def queue_items(
    lake: Lake, plan: AuditPlan, drawn: Sequence[DrawnComment], sizes: Sequence[int]
) -> list[tuple[datetime.date, NewItem]]:
    """Return the drawn comments as the queue takes them, in the order of the draw.

    `sizes` (H,) says how many comments of each stratum all stages so far draw: over the stratum's
    comments, that is the probability with which each of them had to be drawn by now.
    """
    texts = _texts(lake, drawn)
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
    lake: Lake, drawn: Sequence[DrawnComment]
) -> dict[tuple[datetime.date, str], dict[str, Any]]:
    """Return what people are shown of each drawn comment."""
    texts: dict[tuple[datetime.date, str], dict[str, Any]] = {}
    columns = ["comment_id", "text", "parent_text", "language", "platform"]
    for day in sorted({each.day for each in drawn}):
        wanted = {each.comment_id for each in drawn if each.day == day}
        for batch in lake.read("comments", day, columns=columns):
            texts |= {
                (day, row["comment_id"]): row
                for row in batch.to_pylist()
                if row["comment_id"] in wanted
            }
    return texts
