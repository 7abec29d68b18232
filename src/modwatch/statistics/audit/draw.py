"""Draws the sample of a plan from a stream of comments: in constant memory and reproducibly.

Each comment has a key, a keyed hash of the plan and its id; the comments with the smallest keys of
every stratum are drawn. The order of the stream does not matter, a second stage continues where the
first ended, and anyone with plan, seed and scores draws the same comments.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from modwatch.common.errors import AuditError
from modwatch.statistics import arguments
from modwatch.statistics.arguments import Ints
from modwatch.statistics.audit.plan import AuditPlan
from modwatch.statistics.audit.sample_design import ScoreCounts
from modwatch.statistics.decisions import is_flagged
from modwatch.statistics.sampling import random_keys

_DIGEST_BYTES = 32


@dataclass(frozen=True, kw_only=True)
class Scored:
    """A batch of a day's comments with scores and decisions.

    MetricInputError for columns of different lengths or scores outside [0, 1].
    """

    day: date
    #: (n,)
    comment_id: Sequence[str]
    #: (n,) in [0, 1].
    prob: NDArray[np.float32]
    #: (n,)
    flagged: NDArray[np.bool_]
    #: (n,) values of each column that results are broken down by, such as the language; a comment
    #: may have several, such as identity groups, or none.
    traits: Mapping[str, Sequence[tuple[str, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        arguments.probabilities(self.prob)
        arguments.same_length(
            comment_id=self.comment_id, prob=self.prob, flagged=self.flagged, **self.traits
        )


@dataclass(frozen=True, kw_only=True)
class DrawnComment:
    """A comment of the sample."""

    day: date
    comment_id: str
    #: Index of its stratum in the plan.
    stratum: int
    #: Its score; labellers do not see it.
    score: float
    #: Its random number: comments with smaller ones are drawn, and labelled, first.
    key: int
    #: Its values of each column that results are broken down by.
    traits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A sample, and the numbers of comments that it represents."""

    #: In the order of their keys, which is the order of labelling.
    comments: tuple[DrawnComment, ...]
    #: Comments by column, value and stratum.
    population: Mapping[tuple[str, str, int], int]


def day_digest(parts: Iterable[Scored]) -> str:
    """Return a hash of one day's comments that does not depend on their order.

    SHA-256 over the sorted SHA-256 of id, score (as float32) and decision.

    >>> def part(*ids):
    ...     return Scored(day=date(2026, 1, 5), comment_id=ids, flagged=np.zeros(len(ids), bool),
    ...                   prob=np.full(len(ids), 0.5, np.float32))
    >>> day_digest([part("a", "b")]) == day_digest([part("b"), part("a")])
    True
    """
    return _joined_digest([_row_digests(part) for part in parts])


def _joined_digest(rows: Sequence[NDArray[np.bytes_]]) -> str:
    digests = np.concatenate([np.empty(0, f"S{_DIGEST_BYTES}"), *rows])
    digests.sort()
    return hashlib.sha256(digests.tobytes()).hexdigest()


def _row_digests(part: Scored) -> NDArray[np.bytes_]:
    scores = np.ascontiguousarray(part.prob, dtype="<f4").tobytes()
    digests = bytearray()
    for number, (comment_id, flagged) in enumerate(
        zip(part.comment_id, part.flagged.tolist(), strict=True)
    ):
        row = hashlib.sha256(scores[4 * number : 4 * number + 4])
        row.update(b"1" if flagged else b"0")
        row.update(comment_id.encode(errors="surrogatepass"))
        digests += row.digest()
    return np.frombuffer(bytes(digests), dtype=f"S{_DIGEST_BYTES}")


def texts_digest(rows: Iterable[tuple[str, bytes]]) -> str:
    """Return a hash of one day's comments, as people read them, that ignores their order.

    Rows of id and commitment to the texts. SHA-256 over the sorted SHA-256 of commitment and id.

    >>> texts_digest([("b", b"y"), ("a", b"x")]) == texts_digest([("a", b"x"), ("b", b"y")])
    True
    """
    found = bytearray()
    for comment_id, committed in rows:
        found += hashlib.sha256(committed + comment_id.encode(errors="surrogatepass")).digest()
    return _joined_digest([np.frombuffer(found, dtype=f"S{_DIGEST_BYTES}")])


class ScoreHistogram:
    """Histogram of the scores of a stream, for the design: about 2,000 classes per octave.

    >>> counts = ScoreHistogram()
    >>> counts.add(np.array([0.25, 0.25, 0.9], np.float32))
    >>> counts.counts().count.tolist()
    [2, 1]
    """

    #: The upper 20 bits of a positive float32 are monotonic: sign, exponent, 11 of the mantissa.
    _DROPPED = 12

    def __init__(self) -> None:
        self._count = np.zeros(1 << (32 - self._DROPPED), dtype=np.int64)

    def add(self, prob: NDArray[np.float32]) -> None:
        """Add the scores (n,) in [0, 1]; MetricInputError for others."""
        score = arguments.probabilities(prob).astype(np.float32) + np.float32(0)  # no −0
        bits = score.view(np.uint32) >> self._DROPPED
        values, count = np.unique(bits, return_counts=True)
        self._count[values] += count

    def counts(self) -> ScoreCounts:
        """Return the lowest score and the count of each class that occurs."""
        occupied = np.flatnonzero(self._count)
        lowest = (occupied.astype(np.uint32) << self._DROPPED).view(np.float32)
        return ScoreCounts(score=lowest.astype(np.float64), count=self._count[occupied])


def strata_of(plan: AuditPlan, part: Scored) -> Ints:
    """Return the index of the stratum (n,) of each comment.

    AuditError for decisions that do not follow from the plan's threshold, if it has one, and for
    comments on a side that had none.
    """
    threshold = plan.threshold
    if threshold is not None and (is_flagged(part.prob, threshold) != part.flagged).any():
        raise AuditError(
            f"audit {plan.audit!r}: decisions of {part.day} do not follow from the threshold of "
            "the plan; they changed since planning"
        )
    stratum = np.empty(part.prob.size, dtype=np.int64)
    for side, inside in (("flagged", part.flagged), ("unflagged", ~part.flagged)):
        numbers = np.array(plan.of_side(side), dtype=np.int64)
        if inside.any():
            if not numbers.size:
                raise AuditError(
                    f"audit {plan.audit!r}: {part.day} has {side} comments and had none in "
                    "the plan; its scores changed since planning"
                )
            stratum[inside] = numbers[plan.edges(side).assign(part.prob[inside])]
    return stratum


def keys_of(
    plan: AuditPlan, day: date, comment_ids: Sequence[str], seed: str
) -> NDArray[np.uint64]:
    """Return the random number (n,) of each comment; AuditError for an empty seed.

    The seed is made when the plan is approved.
    """
    if not seed:
        raise AuditError(f"audit {plan.audit!r} has no seed before its plan is approved")
    return random_keys(list(comment_ids), day=day.isoformat(), design_digest=plan.digest, salt=seed)


def draw(plan: AuditPlan, population: Iterable[Scored], labels: Sequence[int], seed: str) -> Drawn:
    """Return the comments with the smallest keys of each stratum, in the order of their keys.

    `labels` (H,) is the number per stratum, including earlier stages; for `seed` see `keys_of`.
    Memory is bounded by the sample and one batch, and 32 bytes per comment of a plan without a
    threshold. AuditError when the stream differs from the population of the plan.
    """
    pools = [_Smallest(size) for size in labels]
    seen = _StreamCounts(plan)
    for part in population:
        stratum, key = strata_of(plan, part), keys_of(plan, part.day, part.comment_id, seed)
        seen.add(part, stratum)
        for number, pool in enumerate(pools):
            pool.offer(part, number, np.flatnonzero(stratum == number), key)
    seen.verify()
    drawn = sorted((comment for pool in pools for comment in pool.comments()), key=_order)
    for one, other in pairwise(drawn):
        if _order(one) == _order(other):
            raise AuditError(
                f"audit {plan.audit!r}: comment {one.comment_id!r} of {one.day} occurs twice; "
                "the scores changed since planning"
            )
    return Drawn(comments=tuple(drawn), population=dict(sorted(seen.traits.items())))


def _order(comment: DrawnComment) -> tuple[int, date, str]:
    """Return the sort key: the random number, then day and id for the unlikely tie."""
    return comment.key, comment.day, comment.comment_id


class _StreamCounts:
    """Counts of a stream, to compare with the plan, and by trait for the sample."""

    def __init__(self, plan: AuditPlan) -> None:
        self._plan = plan
        self._days = Counter[tuple[date, bool]]()
        self._strata = np.zeros(len(plan.strata), dtype=np.int64)
        #: Digests of the comments of each day, where no threshold shows whether decisions changed.
        self._rows: dict[date, list[NDArray[np.bytes_]]] | None = (
            {} if plan.threshold is None else None
        )
        #: Comments by column, value and stratum.
        self.traits = Counter[tuple[str, str, int]]()

    def add(self, part: Scored, stratum: Ints) -> None:
        flagged = int(part.flagged.sum())
        self._days.update({(part.day, True): flagged, (part.day, False): len(stratum) - flagged})
        self._strata += np.bincount(stratum, minlength=self._strata.size)
        if self._rows is not None:
            self._rows.setdefault(part.day, []).append(_row_digests(part))
        for column, values in part.traits.items():
            pairs = zip(values, stratum.tolist(), strict=True)
            self.traits.update(
                (column, value, number) for names, number in pairs for value in {*names}
            )

    def verify(self) -> None:
        """Raise AuditError unless days and strata have the planned comments.

        Their number suffices where decisions follow from the scores.
        """
        days = {day.day: (day.flagged, day.comments - day.flagged) for day in self._plan.population}
        for day in sorted(days.keys() | {day for day, _ in self._days}):
            now = (self._days[day, True], self._days[day, False])
            self._compare(str(day), now, days.get(day, (0, 0)))
        for number, stratum in enumerate(self._plan.strata):
            self._compare(f"stratum {number}", int(self._strata[number]), stratum.population)
        if self._rows is not None:
            self._verify_decisions(self._rows)

    def _verify_decisions(self, rows: Mapping[date, Sequence[NDArray[np.bytes_]]]) -> None:
        for planned in self._plan.population:
            if _joined_digest(rows.get(planned.day, [])) != planned.digest:
                raise AuditError(
                    f"audit {self._plan.audit!r}: scores or decisions of {planned.day} changed "
                    "since planning"
                )

    def _compare(self, where: str, now: object, planned: object) -> None:
        if now != planned:
            raise AuditError(
                f"audit {self._plan.audit!r}: {where} has {now} comments and {planned} in the "
                "plan; scores changed since planning"
            )


class _Smallest:
    """The comments with the smallest keys of one stratum."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._kept: list[DrawnComment] = []
        self._largest = 2**64 - 1

    def offer(self, part: Scored, stratum: int, rows: Ints, key: NDArray[np.uint64]) -> None:
        if not self._size:
            return
        close = rows[key[rows] <= np.uint64(self._largest)]
        if close.size > self._size:
            most = np.partition(key[close], self._size - 1)[self._size - 1]
            close = close[key[close] <= most]
        self._kept += [
            DrawnComment(
                day=part.day,
                comment_id=part.comment_id[row],
                stratum=stratum,
                score=float(part.prob[row]),
                key=int(key[row]),
                traits={
                    column: tuple(dict.fromkeys(values[row]))
                    for column, values in part.traits.items()
                },
            )
            for row in close.tolist()
        ]
        if len(self._kept) > 2 * self._size:
            self._cut()

    def comments(self) -> Iterator[DrawnComment]:
        self._cut()
        yield from self._kept

    def _cut(self) -> None:
        self._kept.sort(key=_order)
        del self._kept[self._size :]
        if self._kept and len(self._kept) == self._size:
            self._largest = self._kept[-1].key
