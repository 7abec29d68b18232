"""Overturned labels, as training material: what was read, what was said, and nobody's name."""

import datetime as dt
from collections.abc import Collection
from dataclasses import dataclass, field

from sqlalchemy import Engine, bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY, TEXT

from modwatch.review.quality_control.comparisons import INDEPENDENT_LABELS
from modwatch.review.tables import OPEN_STATUSES

#: The most comments that are returned, the latest first.
MOST_OVERTURNED = 50


@dataclass(frozen=True, kw_only=True)
class Overturned:
    """A comment whose first label most labels contradict.

    Without ids, people, notes and times, by which one could tell who labelled it.
    """

    dt: dt.date
    text: str = field(repr=False)
    parent_text: str | None = field(repr=False)
    language: str | None
    queue: str
    first_label: int
    #: Policy code of the first label.
    first_code: str | None
    #: How many other people labelled it, and how many of them contradict the first label.
    others: int
    contradicting: int
    #: Policy codes of the labels that contradict it, by name.
    other_codes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class OverturnedLabels:
    """The latest overturned labels of a period that a person may read."""

    labels: tuple[Overturned, ...]
    #: Whether there are more.
    more: bool


def overturned_labels(
    engine: Engine,
    viewer_id: int,
    first: dt.date,
    last: dt.date,
    *,
    queues: Collection[str] | None = None,
    limit: int = MOST_OVERTURNED,
) -> OverturnedLabels:
    """Return the latest overturned labels of comments from `first` to `last`, both included.

    Only comments of `queues`, or of all if None. Left out are comments that somebody may still be
    asked to label (open or dismissed items, gold comments), and those that the viewer labelled and
    may be asked for again in a retest.
    """
    values = {
        "first": first,
        "last": last,
        "viewer": viewer_id,
        "queues": None if queues is None else list(queues),
        "open": [*OPEN_STATUSES, "closed"],
        "limit": limit + 1,
    }
    with engine.connect() as connection:
        rows = connection.execute(_OVERTURNED, values).mappings().all()
    found = [
        Overturned(
            dt=row["dt"],
            text=row["text"],
            parent_text=row["parent_text"],
            language=row["language"],
            queue=row["queue"],
            first_label=row["first_label"],
            first_code=row["first_code"],
            others=row["given"] - 1,
            contradicting=row["contradicting"],
            other_codes=tuple(row["other_codes"]),
        )
        for row in rows[:limit]
    ]
    return OverturnedLabels(labels=tuple(found), more=len(rows) > limit)


#: By a digest within a day: the order of the queue would tell who worked when.
_OVERTURNED = text(
    f"""
    SELECT i.dt, i.text, i.parent_text, i.language, i.queue, labelled.first_label,
        policy_codes[1] AS first_code, cardinality(labels) AS given, contradicting, other_codes
    FROM ({INDEPENDENT_LABELS}) AS labelled
    JOIN review_item i ON i.id = labelled.item_id
    CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE differs) AS contradicting,
            array_remove(array_agg(DISTINCT code) FILTER (WHERE differs), NULL) AS other_codes
        FROM unnest(labels, policy_codes) AS each(label, code),
            LATERAL (SELECT label <> labelled.first_label AS differs) AS compared
    ) AS said
    WHERE 2 * contradicting > cardinality(labels)
        AND (:queues IS NULL OR i.queue = ANY (:queues))
        AND NOT EXISTS (
            SELECT FROM review_item other
            WHERE other.comment_id = i.comment_id AND other.status = ANY (:open)
        )
        AND NOT EXISTS (
            SELECT FROM gold_comment gold
            WHERE gold.comment_id = i.comment_id AND gold.retired_at IS NULL
        )
        AND NOT EXISTS (
            SELECT FROM review_item other JOIN decision mine ON mine.item_id = other.id
            WHERE other.comment_id = i.comment_id
                AND mine.moderator_id = :viewer AND mine.action = 'label'
        )
    ORDER BY i.dt DESC, md5(i.comment_id) LIMIT :limit
    """  # noqa: S608 - our own text
).bindparams(bindparam("queues", type_=ARRAY(TEXT)), bindparam("open", type_=ARRAY(TEXT)))
