"""How often one label is wrong, by queue, by reason and by week.

From first labels and their confirmations: `comparisons` selects those that count, and
`modwatch.statistics.true_labels` estimates the rates from them. No figure is about a person.
"""

import datetime as dt
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from sqlalchemy import Engine, select, text, true

from modwatch.common.errors import QueueError
from modwatch.review.database import at_once
from modwatch.review.quality_control.comparisons import INDEPENDENT_LABELS, labels_of_comments
from modwatch.review.queue.statements import MY_QUEUE
from modwatch.review.tables import OPEN_STATUSES, ROUTED_KINDS, review_item
from modwatch.statistics.estimate import Estimate
from modwatch.statistics.intervals import interval
from modwatch.statistics.label_truth import MINIMUM_CONFIRMED, GivenLabels, true_labels

#: Queues and reasons with rates of their own; those with the most confirmed labels.
MOST_GROUPS = 8

#: Past weeks do not change, so that their rates are computed once; about 50 kB each.
_REMEMBERED = 64


_COLUMNS: dict[str, Any] = {
    "dt": "datetime64[s]",
    "queue": object,
    "reason": object,
    "stratum": np.int64,
    "prob": np.float32,
    "first_label": np.int8,
    "given": np.int8,
    "toxic": np.int8,
}


def labelled_comments(rows: Iterable[Mapping[Any, Any]]) -> pd.DataFrame:
    """Return the labels that people gave comments, from rows of `comparisons.labels_of_comments`.

    Adds to their columns: `week`, the Monday of the comment's week; `confirmed`, whether there are
    two labels or more; `overturned`, whether most labels contradict the first.
    """
    frame = pd.DataFrame([dict(row) for row in rows], columns=list(_COLUMNS)).astype(_COLUMNS)
    same = frame["toxic"].where(frame["first_label"] == 1, frame["given"] - frame["toxic"])
    return frame.assign(
        week=(frame["dt"] - pd.to_timedelta(frame["dt"].dt.day_of_week, "D")).dt.date,
        confirmed=frame["given"] > 1,
        overturned=2 * same < frame["given"],
    )


@dataclass(frozen=True, kw_only=True)
class ErrorRates:
    """The error rates of one label; insufficient with too few confirmed labels."""

    #: Of comments that are not toxic, the share that one person labels toxic.
    false_positive: Estimate
    #: Of toxic comments, the share that one person labels not toxic.
    false_negative: Estimate
    #: Comments with a first label, and how many of them were confirmed.
    labelled: int
    confirmed: int
    #: Confirmed labels that most labels contradict; None with too few.
    overturned: int | None


@dataclass(frozen=True, kw_only=True)
class ErrorRateReport:
    """The error rates of one label for the comments of a period."""

    first: dt.date
    last: dt.date
    everything: ErrorRates
    #: The eight with the most confirmed labels, by name.
    by_queue: dict[str, ErrorRates]
    by_reason: dict[str, ErrorRates]
    #: By Monday, latest first; the first and the last week may be cut by the period.
    by_week: dict[dt.date, ErrorRates]


def error_rate_report(
    engine: Engine,
    first: dt.date,
    last: dt.date,
    *,
    queues: Collection[str] | None = None,
    lag: dt.timedelta = dt.timedelta(0),
) -> ErrorRateReport:
    """Return the error rates for the comments of the days from `first` to `last`, both included.

    Only comments of `queues` count, or all if None, and none of which a decision is more recent
    than `lag`. Raises `QueueError` if `last` is before `first`.
    """
    if last < first:
        raise QueueError(f"the period ends on {last}, before its start {first}; swap the days")
    with engine.connect() as connection:
        comments = labelled_comments(labels_of_comments(connection, first, last, queues, lag))
    weeks = by_name(comments, "week", most=None)
    return ErrorRateReport(
        first=first,
        last=last,
        everything=error_rates(comments),
        by_queue=by_name(comments, "queue"),
        by_reason=by_name(comments, "reason"),
        by_week={week: weeks[week] for week in sorted(weeks, reverse=True)},
    )


def newest_labelled_day(engine: Engine, queues: Collection[str] | None = None) -> dt.date | None:
    """Return the newest day whose comments in `queues`, or in all if None, have labels."""
    item = review_item.c
    labelled = select(item.dt).where(
        item.status == "decided",
        item.kind.in_(ROUTED_KINDS),
        true() if queues is None else item.queue.in_(list(queues)),
    )
    with engine.connect() as connection:
        return connection.scalar(labelled.order_by(item.dt.desc()).limit(1))


def error_rates(comments: pd.DataFrame) -> ErrorRates:
    """Return the error rates of one label: the posterior's mean and central 95 %.

    With fewer than 30 confirmed labels they are insufficient.

    >>> row = {"dt": dt.date(2026, 3, 4), "queue": "general", "reason": "random_slice",
    ...        "stratum": 1, "prob": 0.1, "first_label": 1, "given": 3, "toxic": 1}
    >>> rates = error_rates(labelled_comments([row] * 20))
    >>> rates.confirmed, rates.overturned, rates.false_positive.reason
    (20, None, '20 confirmed labels; 30 are needed')
    """
    confirmed = int(comments["confirmed"].sum())
    if confirmed < MINIMUM_CONFIRMED:
        reason = f"{confirmed} confirmed labels; {MINIMUM_CONFIRMED} are needed"
        false_positive = false_negative = Estimate.insufficient(reason, n=confirmed)
    else:
        columns = comments["prob"], comments["stratum"] != 0, comments["given"], comments["toxic"]
        found = _posterior(*(column.to_numpy().tobytes() for column in columns))
        false_positive, false_negative = (
            Estimate.from_interval(value, bounds, n=confirmed) for value, bounds in found
        )
    return ErrorRates(
        false_positive=false_positive,
        false_negative=false_negative,
        labelled=len(comments),
        confirmed=confirmed,
        overturned=int(comments["overturned"].sum()) if false_positive.status == "ok" else None,
    )


def by_name(
    comments: pd.DataFrame, column: str, most: int | None = MOST_GROUPS
) -> dict[Any, ErrorRates]:
    """Return the rates of the comments of each name in `column`, in order.

    Of the `most` names with the most confirmed labels, or of all if None.
    """
    confirmed = comments.groupby(column)["confirmed"].sum().sort_index()
    largest = confirmed.sort_values(ascending=False, kind="stable").index[:most]
    return {name: error_rates(comments[comments[column] == name]) for name in sorted(largest)}


@lru_cache(maxsize=_REMEMBERED)
def _posterior(
    prob: bytes, group: bytes, given: bytes, toxic: bytes
) -> tuple[tuple[float, tuple[float, float]], ...]:
    """Return value and interval of either rate; the same for the same labels."""
    labels = GivenLabels(
        prob=np.frombuffer(prob, np.float32).astype(np.float64),
        group=np.frombuffer(group, np.bool_).astype(np.int64),
        given=np.frombuffer(given, np.int8).astype(np.int64),
        toxic=np.frombuffer(toxic, np.int8).astype(np.int64),
    )
    rates = true_labels(labels).rates()
    return tuple((float(drawn.mean()), interval(drawn)) for _, drawn in rates)


#: The most comments that are returned, the latest first.
MOST_OVERTURNED = 50


@dataclass(frozen=True, kw_only=True)
class Overturned:
    """A comment whose first label most labels contradict.

    Without ids, people, notes and times, which could reveal who labelled it.
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

    Only comments of `queues`, or of all if None. Left out are comments that a moderator may still
    be asked to label (open or dismissed items, gold comments), and those that the viewer labelled
    and may be asked for again in a retest.
    """
    values = {
        "first": first,
        "last": last,
        "viewer": viewer_id,
        "queues": None if queues is None else list(queues),
        "open": [*OPEN_STATUSES, "closed"],
        "limit": limit + 1,
    }
    rows = at_once(engine, _OVERTURNED, values)
    found = [
        Overturned(**{**row, "other_codes": tuple(row["other_codes"])}) for row in rows[:limit]
    ]
    return OverturnedLabels(labels=tuple(found), more=len(rows) > limit)


#: By a digest within a day: the order of the queue would show who worked when.
_OVERTURNED = text(
    f"""
    SELECT i.dt, i.text, i.parent_text, i.shown->>'language' AS language, i.queue,
        labelled.first_label, policy_codes[1] AS first_code, cardinality(labels) - 1 AS others,
        contradicting, other_codes
    FROM ({INDEPENDENT_LABELS}) AS labelled
    JOIN review_item i ON i.id = labelled.item_id
    CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE differs) AS contradicting,
            array_remove(array_agg(DISTINCT code) FILTER (WHERE differs), NULL) AS other_codes
        FROM unnest(labels, policy_codes) AS given(label, code),
            LATERAL (SELECT label <> labelled.first_label AS differs) AS compared
    ) AS opposed
    WHERE 2 * contradicting > cardinality(labels)
        AND {MY_QUEUE}
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
)
