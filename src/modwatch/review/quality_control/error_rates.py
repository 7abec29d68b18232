"""How often one label is wrong, by queue, by reason and by week.

From first labels and their confirmations: `comparisons` says which count, and
`modwatch.statistics.true_labels` tells the rates from them. No figure is about a person.
"""

import datetime as dt
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Engine

from modwatch.common.errors import QueueError
from modwatch.review.quality_control.comparisons import labels_of_comments
from modwatch.statistics.estimate import Estimate
from modwatch.statistics.intervals import interval
from modwatch.statistics.true_labels import MINIMUM_CONFIRMED, GivenLabels, true_labels

#: Queues and reasons with rates of their own; those with the most confirmed labels.
MOST_GROUPS = 8

#: Past weeks do not change, so that their rates are computed once; about 50 kB each.
_REMEMBERED = 64


@dataclass(frozen=True, kw_only=True)
class LabelledComments:
    """The labels that people gave m comments, independently of each other."""

    #: (m,) day, queue and reason of the comment.
    day: NDArray[np.datetime64]
    queue: NDArray[np.object_]
    reason: NDArray[np.object_]
    #: (m,) whether it is of the top, and not of the random slice.
    top: NDArray[np.bool_]
    #: (m,) probability of the model, in [0, 1].
    prob: NDArray[np.float32]
    #: (m,) the first label, 0 or 1.
    first: NDArray[np.int8]
    #: (m,) number of labels, the first one included, and how many of them are toxic.
    given: NDArray[np.int8]
    toxic: NDArray[np.int8]

    @classmethod
    def of(cls, rows: Iterable[Mapping[Any, Any]]) -> Self:
        """Return the columns of the rows of `comparisons.labels_of_comments`."""
        names = ("dt", "queue", "reason", "stratum", "prob", "first_label", "given", "toxic")
        columns = {name: [row[name] for row in rows] for rows in [list(rows)] for name in names}
        return cls(
            day=np.array(columns["dt"], dtype="datetime64[D]"),
            queue=np.array(columns["queue"], dtype=object),
            reason=np.array(columns["reason"], dtype=object),
            top=np.array(columns["stratum"], dtype=np.int64) == 0,
            prob=np.array(columns["prob"], dtype=np.float32),
            first=np.array(columns["first_label"], dtype=np.int8),
            given=np.array(columns["given"], dtype=np.int8),
            toxic=np.array(columns["toxic"], dtype=np.int8),
        )

    def __getitem__(self, rows: NDArray[np.bool_]) -> "LabelledComments":
        """Return some of the comments."""
        columns = {name: getattr(self, name)[rows] for name in self.__dataclass_fields__}
        return LabelledComments(**columns)

    @property
    def week(self) -> NDArray[np.object_]:
        """(m,) the Monday of the comment's week."""
        # Day 0 of numpy is a Thursday.
        return (self.day - (self.day.astype(np.int64) + 3) % 7).astype(object)

    @property
    def confirmed(self) -> NDArray[np.bool_]:
        """(m,) whether there are two labels or more."""
        return self.given > 1

    @property
    def overturned(self) -> NDArray[np.bool_]:
        """(m,) whether most labels contradict the first."""
        same = np.where(self.first == 1, self.toxic, self.given - self.toxic)
        return 2 * same < self.given


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
    engine: Engine, first: dt.date, last: dt.date, *, queues: Collection[str] | None = None
) -> ErrorRateReport:
    """Return the error rates for the comments of the days from `first` to `last`, both included.

    Only comments of `queues` count, or all if None. Raises `QueueError` if `last` is before
    `first`.
    """
    if last < first:
        raise QueueError(f"the period ends on {last}, before its start {first}; swap the days")
    with engine.connect() as connection:
        comments = LabelledComments.of(labels_of_comments(connection, first, last, queues))
    weeks = by_name(comments, comments.week, most=None)
    return ErrorRateReport(
        first=first,
        last=last,
        everything=error_rates(comments),
        by_queue=by_name(comments, comments.queue),
        by_reason=by_name(comments, comments.reason),
        by_week={week: weeks[week] for week in sorted(weeks, reverse=True)},
    )


def error_rates(comments: LabelledComments, *, minimum: int = MINIMUM_CONFIRMED) -> ErrorRates:
    """Return the error rates of one label: the posterior's mean and central 95 %.

    With fewer than `minimum` confirmed labels they are insufficient.

    >>> row = {"dt": dt.date(2026, 3, 4), "queue": "general", "reason": "random_slice",
    ...        "stratum": 1, "prob": 0.1, "first_label": 1, "given": 3, "toxic": 1}
    >>> rates = error_rates(LabelledComments.of([row] * 20))
    >>> rates.confirmed, rates.overturned, rates.false_positive.reason
    (20, None, '20 confirmed labels; 30 are needed')
    """
    confirmed = int(comments.confirmed.sum())
    if confirmed < max(minimum, 1):
        reason = f"{confirmed} confirmed labels; {max(minimum, 1)} are needed"
        false_positive = false_negative = Estimate.insufficient(reason, n=confirmed)
    else:
        columns = (comments.prob, ~comments.top, comments.given, comments.toxic)
        found = _posterior(*(column.tobytes() for column in columns))
        false_positive, false_negative = (
            Estimate.of(value, bounds, n=confirmed) for value, bounds in found
        )
    return ErrorRates(
        false_positive=false_positive,
        false_negative=false_negative,
        labelled=comments.first.size,
        confirmed=confirmed,
        overturned=int(comments.overturned.sum()) if false_positive.status == "ok" else None,
    )


def by_name(
    comments: LabelledComments, names: NDArray[np.object_], most: int | None = MOST_GROUPS
) -> dict[Any, ErrorRates]:
    """Return the rates of the comments of each name (m,), in order.

    Of the `most` names with the most confirmed labels, or of all if None.
    """
    confirmed = Counter(names[comments.confirmed])
    largest = sorted(set(names), key=lambda name: (-confirmed[name], name))[:most]
    return {name: error_rates(comments[names == name]) for name in sorted(largest)}


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
