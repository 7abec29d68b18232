"""What the EU's transparency reports ask for of the period of an audit: its measures.

What counts as a measure: a comment of the period that the platform removed or limited and on which
nobody decided in review, or one that a person decided in review to break the rules. A flag of
a model is none. Labels that people gave to measure the model or each other (audits, retests, gold,
confirmations) decide nothing; see `review.outbox.decision_events`, which tells the platform of the
same decisions.
"""

from datetime import date

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Engine

from modwatch.audits.dsa.from_audit import Measures
from modwatch.common.errors import AuditError
from modwatch.data.lake.delta import Lake
from modwatch.data.lake.schemas import LABELS, RESTRICTIONS, brings_decisions
from modwatch.review.log.labels import current_labels
from modwatch.review.tables import ACTIONABLE_KINDS
from modwatch.statistics.audit.plan import AuditPlan, PopulationDay


def period_measures(plan: AuditPlan, lake: Lake, database: Engine) -> dict[str, Measures]:
    """Return the measures of the period by the language tag of the comment, "" for none.

    Memory holds the ids and languages of one day. Raises AuditError where a day has other comments
    than the plan says.
    """
    period: dict[str, Measures] = {}
    for planned in plan.population:
        if not planned.comments:
            continue
        for tag, measures in _of_day(plan.audit, planned, lake, database).items():
            period[tag] = period.get(tag, Measures()) + measures
    return dict(sorted(period.items()))


def _of_day(
    audit: str, planned: PopulationDay, lake: Lake, database: Engine
) -> dict[str, Measures]:
    flagged = lake.count("scores", planned.day, role="champion", flagged=True)
    columns = ["comment_id", "language", "decision", "decided_by"]
    comments = lake.table("comments", planned.day, columns=columns)
    if (comments.num_rows, flagged) != (planned.comments, planned.flagged):
        raise AuditError(
            f"audit {audit!r}: {planned.day} has {comments.num_rows} comments, {flagged} of "
            f"them flagged; it was planned with {planned.comments} and {planned.flagged}. The "
            "comments or scores were changed since"
        )
    ids, decision = comments.column("comment_id"), comments.column("decision")
    decided = _decided(database, planned.day)
    label = decided.column("label").take(pc.index_in(ids, decided.column("comment_id")))
    reviewed = pc.is_valid(label)
    measure = pc.and_not(pc.is_in(decision, pa.array(RESTRICTIONS)), reviewed)
    taker = pc.fill_null(comments.column("decided_by"), "")
    by_person = pc.and_(measure, pc.equal(taker, "person"))
    rows = pa.table(
        {
            "tag": pc.fill_null(comments.column("language"), ""),
            "decided": pc.and_(pc.is_valid(decision), brings_decisions(decision)),
            "solely": pc.and_(measure, pc.is_in(taker, pa.array(["model", "rule"]))),
            "not_solely": pc.or_(by_person, pc.fill_null(pc.equal(label, 1), False)),
            "by_unknown": pc.and_(measure, pc.equal(taker, "")),
            "reviewed": reviewed,
        }
    )
    names = rows.column_names[1:]
    counted = rows.group_by("tag").aggregate([*((name, "sum") for name in names), ("tag", "count")])
    return {
        row["tag"]: Measures(
            comments=row["tag_count"], **{name: row[f"{name}_sum"] for name in names}
        )
        for row in counted.to_pylist()
    }


def _decided(engine: Engine, day: date) -> pa.Table:
    """Return id and standing label of the comments on which people decided, each comment once."""
    batches = [
        batch for kind in ACTIONABLE_KINDS for batch in current_labels(engine, day, kind=kind)
    ]
    rows = pa.Table.from_batches(batches, LABELS).select(["comment_id", "label", "decided_at"])
    # Of a comment that was also imported, the last label.
    last = rows.sort_by("decided_at").group_by("comment_id", use_threads=False)
    return last.aggregate([("label", "last")]).rename_columns({"label_last": "label"})
