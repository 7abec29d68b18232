"""Every independent label, as a long table: who labelled which comment how, and when."""

import datetime as dt
from collections.abc import Iterator

import pyarrow as pa
from sqlalchemy import Date, Engine, cast, func, select

from modwatch.data.lake.schemas import ANNOTATIONS
from modwatch.review.log.labels import decided_between, in_force
from modwatch.review.tables import decision, moderator


def annotation_days(engine: Engine, first: dt.date, last: dt.date) -> list[dt.date]:
    """Return the UTC days from `first` to `last` on which labels were given, in order."""
    moment = cast(func.timezone("UTC", decision.c.decided_at), Date)
    query = select(moment).distinct().where(decided_between(first, last), in_force("label"))
    with engine.connect() as connection:
        return sorted(connection.execute(query).scalars())


def given_labels(
    engine: Engine, day: dt.date, *, batch_size: int = 10_000
) -> Iterator[pa.RecordBatch]:
    """Yield the labels given on the UTC day `day`, as batches of `schemas.ANNOTATIONS`.

    Labels as they were given, each without knowledge of others: first labels, confirmations,
    retests, answers to gold items, labels of audits and of Label Studio. No corrections and no
    adjudications, and nothing that was undone.
    """
    query = (
        select(
            decision.c.comment_id,
            decision.c.dt.label("comment_dt"),
            moderator.c.pseudonym.label("annotator"),
            decision.c.label,
            decision.c.decided_at,
            decision.c.kind.label("source"),
        )
        .join(moderator, moderator.c.id == decision.c.moderator_id)
        .where(decided_between(day, day), in_force("label"))
        .order_by(decision.c.id)
    )
    with engine.connect() as connection:
        rows = connection.execution_options(yield_per=batch_size).execute(query)
        for part in rows.mappings().partitions():
            found = [{"dt": day, **row} for row in part]
            yield pa.RecordBatch.from_pylist(found, schema=ANNOTATIONS)
