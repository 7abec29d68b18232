"""Independent labels of one comment side by side, from the decision log.

Only labels given without knowledge of each other count: no adjudications and nothing that was
undone. Of a label that was corrected later, the first version counts.
"""

import datetime as dt
from collections.abc import Collection, Iterator, Sequence

import pandas as pd
import pyarrow as pa
from sqlalchemy import Connection, Engine, RowMapping, text

from modwatch.common.errors import QueueError
from modwatch.data.lake.schemas import CONFIRMATIONS
from modwatch.review.log.labels import in_force_sql
from modwatch.review.queue.statements import MY_QUEUE
from modwatch.review.tables import ROUTED_KINDS

#: The answers to gold items; of comments that are gold now and were when they were answered.
_GOLD = f"""
    FROM decision d JOIN review_item i ON i.id = d.item_id
    JOIN moderator m ON m.id = d.moderator_id
    JOIN gold_comment gold ON gold.comment_id = d.comment_id
        AND gold.retired_at IS NULL AND gold.added_at <= d.decided_at
    WHERE d.kind = 'gold' AND {in_force_sql("d", "label")}
"""

#: The answers to retests, each with the person's first label of the comment in an item of `kinds`.
_RETESTS = f"""
    FROM decision d JOIN review_item i ON i.id = d.item_id
    JOIN moderator m ON m.id = d.moderator_id
    CROSS JOIN LATERAL (
        SELECT earlier.label FROM review_item r JOIN decision earlier ON earlier.item_id = r.id
        WHERE r.comment_id = d.comment_id AND r.kind = ANY (:kinds) AND earlier.id < d.id
            AND earlier.moderator_id = d.moderator_id AND {in_force_sql("earlier", "label")}
        ORDER BY earlier.id LIMIT 1
    ) AS first
    WHERE d.kind = 'retest' AND {in_force_sql("d", "label")}
"""  # noqa: S608 - our own text

_IN_PERIOD = f"""d.decided_at >= :begin AND d.decided_at < :end AND d.decided_at <= now() - :lag
    AND {MY_QUEUE}"""

#: First labels and those of round 2; `probability` that the first label was confirmed, given that
#: the comment was routed.
_CONFIRMATIONS = f"""
    SELECT first.label AS first, d.label AS second,
        i.inclusion_probability / first.inclusion_probability * CASE i.first_label
            WHEN 0 THEN i.confirmation_probability_0
            WHEN 1 THEN i.confirmation_probability_1 ELSE 1 END AS probability
    FROM decision d JOIN review_item i ON i.id = d.item_id
    CROSS JOIN LATERAL (
        SELECT other.label, r.inclusion_probability
        FROM review_item r JOIN decision other ON other.item_id = r.id
        WHERE r.dt = d.dt AND r.comment_id = d.comment_id AND r.kind = 'review'
            AND other.moderator_id <> d.moderator_id AND {in_force_sql("other", "label")}
        ORDER BY other.id LIMIT 1
    ) AS first
    WHERE d.kind = 'confirmation' AND i.round = 2 AND i.first_label IS NOT NULL
        AND {in_force_sql("d", "label")} AND {_IN_PERIOD} ORDER BY d.id
"""  # noqa: S608 - our own text

#: Comments whose first label counts, by `dt` and `comment_id`: what was routed, the first label
#: before corrections, and the labels of all people in order, at most one each. Confirmations count
#: as in `log.labels.confirming_labels`: of the same texts, round 3 only together with round 2, and
#: none of a person who had corrected a label of the comment before.
INDEPENDENT_LABELS = f"""
    SELECT dt, comment_id, min(item_id) FILTER (WHERE round = 1) AS item_id,
        (array_agg(label ORDER BY round, id))[1] AS first_label,
        array_agg(label ORDER BY round, id) AS labels,
        array_agg(policy_code ORDER BY round, id) AS policy_codes
    FROM (
        SELECT DISTINCT ON (i.dt, i.comment_id, d.moderator_id)
            i.dt, i.comment_id, i.round, i.id AS item_id, d.id, d.label, d.policy_code
        FROM review_item i JOIN decision d ON d.item_id = i.id
        WHERE i.dt BETWEEN :first AND :last AND i.status = 'decided'
            AND {in_force_sql("d", "label")}
            AND (i.kind = 'review' OR i.kind = 'confirmation' AND EXISTS (
                SELECT FROM review_item second
                WHERE second.dt = i.dt AND second.comment_id = i.comment_id
                    AND second.kind = 'confirmation' AND second.round = 2
                    AND second.status = 'decided' AND second.first_label IS NOT NULL
            ) AND EXISTS (
                SELECT FROM review_item routed
                WHERE routed.dt = i.dt AND routed.comment_id = i.comment_id
                    AND routed.kind = 'review' AND routed.text = i.text
                    AND routed.parent_text IS NOT DISTINCT FROM i.parent_text
            ) AND NOT EXISTS (
                SELECT FROM review_item earlier JOIN decision known ON known.item_id = earlier.id
                WHERE earlier.dt = i.dt AND earlier.comment_id = i.comment_id
                    AND earlier.kind IN ('review', 'confirmation') AND earlier.round < i.round
                    AND known.moderator_id = d.moderator_id AND known.id < d.id
                    AND known.action = 'correct'
            ))
        ORDER BY i.dt, i.comment_id, d.moderator_id, i.round, d.id
    ) AS given
    GROUP BY dt, comment_id HAVING bool_or(round = 1)
"""  # noqa: S608 - our own text

_LABELS_OF_COMMENTS = f"""
    SELECT i.dt, i.queue, i.reason, i.stratum, i.prob, labelled.first_label,
        cardinality(labels) AS given,
        (SELECT sum(label) FROM unnest(labels) AS label) AS toxic
    FROM ({INDEPENDENT_LABELS}) AS labelled JOIN review_item i ON i.id = labelled.item_id
    WHERE {MY_QUEUE} AND NOT EXISTS (
        SELECT FROM decision recent WHERE recent.dt = labelled.dt
            AND recent.comment_id = labelled.comment_id AND recent.decided_at > now() - :lag
    )
    ORDER BY i.id
"""  # noqa: S608 - our own text

_SEVERAL_LABELS = f"""
    SELECT one.item_id, one.label FROM decision one
    WHERE one.decided_at < :end AND {in_force_sql("one", "label")} AND one.item_id IN (
        SELECT d.item_id FROM decision d JOIN review_item i ON i.id = d.item_id
        WHERE d.kind = 'review' AND i.labels_wanted > 1
            AND {in_force_sql("d", "label")} AND {_IN_PERIOD}
    ) ORDER BY one.id
"""  # noqa: S608 - our own text

_GOLD_ANSWERS = f"""
    SELECT d.moderator_id, m.pseudonym, d.label, gold.label AS gold
    {_GOLD} AND {_IN_PERIOD} ORDER BY d.id
"""

_RETEST_ANSWERS = f"""
    SELECT d.moderator_id, m.pseudonym, first.label AS first, d.label AS again
    {_RETESTS} AND {_IN_PERIOD} ORDER BY d.id
"""

_COMPARISONS = {
    "confirmations": _CONFIRMATIONS,
    "several labels": _SEVERAL_LABELS,
    "gold": _GOLD_ANSWERS,
    "retests": _RETEST_ANSWERS,
}

_DAY_ANSWERS = f"""
    SELECT d.dt, d.comment_id, m.pseudonym AS moderator, d.label, d.decided_at, d.seconds,
        0 AS round, gold.label AS first_label
    {_GOLD} AND d.dt = :day ORDER BY d.id
"""


def compared(
    connection: Connection,
    what: str,
    first: dt.date,
    last: dt.date,
    queues: Collection[str] | None = None,
    lag: dt.timedelta = dt.timedelta(0),
) -> pd.DataFrame:
    """Return the rows of one comparison, in the order of the log.

    `confirmations`: `first`, `second`, `probability` in (0, 1]. `several labels`: `item_id`,
    `label`, of items that several people label. `gold`: `moderator_id`, `pseudonym`, `label`,
    `gold`. `retests`: `moderator_id`, `pseudonym`, `first`, `again`. The period is that of the
    later label, days in UTC, both included; only items of `queues` count, or all if None, and no
    label that is more recent than `lag`. Raises `QueueError` if `last` is before `first`.
    """
    if last < first:
        raise QueueError(f"the period ends on {last}, before its start {first}; swap the days")
    values = {
        "begin": first,
        "end": last + dt.timedelta(1),
        "queues": None if queues is None else list(queues),
        "kinds": list(ROUTED_KINDS),
        "lag": lag,
    }
    rows = connection.execute(text(_COMPARISONS[what]), values)
    return pd.DataFrame(map(tuple, rows), columns=list(rows.keys()))


def labels_of_comments(
    connection: Connection,
    first: dt.date,
    last: dt.date,
    queues: Collection[str] | None = None,
    lag: dt.timedelta = dt.timedelta(0),
) -> Sequence[RowMapping]:
    """Return the independent labels of each comment that was routed and labelled.

    `error_rates.labelled_comments` reads them. Of the comments of the days from `first` to `last`,
    both included, in `queues`, or in all if None; without comments of which a decision is more
    recent than `lag`.
    """
    names = None if queues is None else list(queues)
    values = {"first": first, "last": last, "queues": names, "lag": lag}
    return connection.execute(text(_LABELS_OF_COMMENTS), values).mappings().all()


def gold_answers(engine: Engine, day: dt.date) -> Iterator[pa.RecordBatch]:
    """Yield the answers to the gold items of `day`, if there are any: rows of `CONFIRMATIONS`."""
    with engine.connect() as connection:
        rows = connection.execute(text(_DAY_ANSWERS), {"day": day})
        if answers := [dict(row) for row in rows.mappings()]:
            yield pa.RecordBatch.from_pylist(answers, schema=CONFIRMATIONS)
