"""How a day's comments, scores and review queue differ from its references.

Data validation judges these findings before the day is published; the table `drift` keeps them.

Two references: `fixed`, held-out comments of the model or the first days, shows slow change;
`trailing`, the days just before, shows sudden change. Scores are compared only with days that the
same model version scored: a new model moves all scores, which does not concern the comments.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import median
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from modwatch.statistics.drift.distance import (
    Effect,
    jensen_shannon,
    population_stability_index,
    share,
    share_change,
)
from modwatch.statistics.drift.profile import OTHERS, RANGES, Counts, Profile, pooled

#: Comments that a day and a reference must have each. At 200 against 200, PSI of two samples of
#: one population stays under 0.1, where a change is commonly first noted, on 96 % of days.
MINIMUM_COMMENTS = 200

#: Bins of like mass in the reference, in which PSI compares scores.
QUANTILE_BINS = 10

#: Trailing days that the usual volume is taken from.
MINIMUM_DAYS = 3


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One metric of a day, as in `schemas.DRIFT`."""

    metric: str
    feature: str
    #: None: the day alone.
    reference: str | None = None
    #: None when there is not enough data.
    value: float | None
    #: 95 % interval; None where there is none.
    low: float | None = None
    high: float | None = None
    #: Comments of the day, and of the reference.
    n: int
    reference_n: int | None = None
    #: Why there is no value, or a remark about it; may be empty.
    reason: str = ""

    @property
    def status(self) -> str:
        """`ok`, or `insufficient` when there is no value."""
        return "insufficient" if self.value is None else "ok"


@dataclass(frozen=True, kw_only=True)
class Reference:
    """Days that a day is compared with."""

    name: Literal["fixed", "trailing"]
    #: Days to compare comments with, and scores; None: there is no such finding at all, since
    #: another reference has the same days.
    comments: Sequence[Profile] | None
    scores: Sequence[Profile] | None
    #: Categories that are known better than from those days, by feature.
    mixes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    #: A remark about the scores; may be empty.
    note: str = ""

    @classmethod
    def from_days(cls, name: Literal["fixed", "trailing"], days: Sequence[Profile]) -> "Reference":
        """Return the reference whose days both comments and scores are compared with.

        >>> [day.comments for day in Reference.from_days("trailing", [Profile(comments=3)]).scores]
        [3]
        """
        return cls(name=name, comments=days, scores=days)

    def scored_by(self, model_version: str | None) -> list[Profile]:
        """Return the days with scores of that model version."""
        known = self.scores or ()
        return [day for day in known if day.scored and day.model_version == model_version]


def compare(today: Profile, references: Sequence[Reference]) -> Iterator[Finding]:
    """Yield the distances of the day from each reference: scores, flagged share, mixes, gaps.

    Findings without enough data are insufficient and have a reason: an empty day, too few comments
    on either side, a reference of another model version.

    >>> {finding.reason for finding in compare(Profile(), [Reference.from_days("fixed", [])])}
    {'0 comments of the day; 200 are needed'}
    """
    for reference in references:
        if reference.scores is not None:
            yield from _scores(today, reference)
        yield from _mixes(today, reference)
        if reference.comments is not None:
            yield from _comments(today, reference.name, reference.comments)


@dataclass(frozen=True, kw_only=True)
class _Pair:
    """A day and a reference, and what their findings have in common."""

    reference: str
    n: int
    reference_n: int
    #: A remark about the reference; may be empty.
    note: str = ""

    @property
    def lacks(self) -> str:
        """Why the two cannot be compared; empty when they can."""
        if self.n < MINIMUM_COMMENTS:
            return f"{self.n} comments of the day; {MINIMUM_COMMENTS} are needed"
        if self.reference_n < MINIMUM_COMMENTS:
            few = f"{self.reference_n} comments of the reference; {MINIMUM_COMMENTS} are needed"
            return f"{few}; {self.note}" if self.note else few
        return ""

    def finding(self, metric: str, feature: str, effect: Effect | None) -> Finding:
        """Return the effect as a finding; None is insufficient."""
        return Finding(
            metric=metric,
            feature=feature,
            reference=self.reference,
            **({"value": None} if effect is None else asdict(effect)),
            n=self.n,
            reference_n=self.reference_n,
            reason=self.lacks or self.note,
        )

    def change(self, metric: str, feature: str, part: int, reference_part: int) -> Finding:
        """Return the change of a share of all comments."""
        if self.lacks:
            return self.finding(metric, feature, None)
        effect = share_change(part, self.n, reference_part, self.reference_n)
        now, usual = 100 * part / self.n, 100 * reference_part / self.reference_n
        amounts = f"{now:.3g} %, usually {usual:.3g} %"
        reason = "; ".join(filter(None, (amounts, self.note)))
        return replace(self.finding(metric, feature, effect), reason=reason)


def _scores(today: Profile, reference: Reference) -> Iterator[Finding]:
    """Yield the findings that depend on the model."""
    same = reference.scored_by(today.model_version)
    others = sum(day.scored > 0 for day in reference.scores or ()) - len(same)
    before = pooled(same)
    left_out = f"{others} reference days left out, scored by another model version"
    note = "; ".join(part for part in (reference.note, left_out if others else "") if part)
    pair = _Pair(reference=reference.name, n=today.scored, reference_n=before.scored, note=note)
    for feature in RANGES:
        effect: Effect | None = None
        if not pair.lacks:
            effect = compare_scores(today.scores[feature], before.scores[feature])
        yield pair.finding("psi", feature, effect)
    yield pair.change("flagged_share_change", "flagged", today.flagged, before.flagged)


def _mixes(today: Profile, reference: Reference) -> Iterator[Finding]:
    """Yield the distances of the mixes of categories."""
    for feature, counts in today.categories.items():
        if reference.comments is None and feature not in reference.mixes:
            continue
        days = [day.categories.get(feature, {}) for day in reference.comments or ()]
        mixes = [reference.mixes[feature]] if reference.mixes.get(feature) else days
        day, *before = _with_same_others([counts, *mixes])
        for mix in (day, *before):
            del mix["und"]  # says nothing about languages; missing ones have a share of their own
        expected = sum(before, Counter[str]())
        pair = _Pair(reference=reference.name, n=day.total(), reference_n=expected.total())
        names = sorted(day.keys() | expected.keys())
        sides = [[side[name] for name in names] for side in (day, expected)]
        if pair.lacks:
            yield pair.finding("jensen_shannon", feature, None)
            continue
        now, usual = (100 * np.array(side) / sum(side) for side in sides)
        most = int(np.argmax(now - usual))
        grown = f"{names[most]} {now[most]:.3g} % of comments, usually {usual[most]:.3g} %"
        found = pair.finding("jensen_shannon", feature, jensen_shannon(*sides))
        yield replace(found, reason=grown)


def _with_same_others(mixes: Sequence[Mapping[str, int]]) -> list[Counter[str]]:
    """Return mixes with what one of them may have counted among `OTHERS` counted there in all.

    The smallest count that a mix with others names is f. A category keeps its own count where, by
    its share of all mixes, more than f + 3·√f are expected in each of these.

    >>> _with_same_others([{"de": 5, "en": 2}, {"de": 9, "fr": 1, OTHERS: 2}])
    [Counter({'de': 5, '(other)': 2}), Counter({'de': 9, '(other)': 3})]
    """
    total = sum(map(Counter, mixes), Counter[str]())
    least = 0.0
    for mix in mixes:
        if OTHERS in mix:
            fewest = min((n for name, n in mix.items() if name != OTHERS), default=0)
            least = max(least, (fewest + 3 * fewest**0.5) / sum(mix.values()))
    few = {name for name, count in total.items() if count <= least * total.total()} - {OTHERS}
    same = [Counter({name: n for name, n in mix.items() if name not in few}) for mix in mixes]
    for counts, mix in zip(same, mixes, strict=True):
        counts[OTHERS] += sum(mix.get(name, 0) for name in few)
    return [+counts for counts in same]


def _comments(today: Profile, reference: str, days: Sequence[Profile]) -> Iterator[Finding]:
    """Yield the changes of the shares of missing values and of quarantined rows."""
    before = pooled(days)
    for column, gaps in today.missing.items():
        known = with_column(days, column)
        pair = _Pair(
            reference=reference, n=today.comments, reference_n=sum(day.comments for day in known)
        )
        yield pair.change("missing_share_change", column, gaps, before.missing.get(column, 0))
    landed = _Pair(reference=reference, n=today.landed, reference_n=before.landed)
    yield landed.change(
        "quarantined_share_change", "quarantined", today.quarantined, before.quarantined
    )


def with_column(days: Sequence[Profile], column: str) -> list[Profile]:
    """Return the days whose missing values of a column were counted: it may be new.

    >>> len(with_column([Profile(missing={"a": 0}), Profile(missing={"a": 3, "b": 1})], "b"))
    1
    """
    return [day for day in days if column in day.missing or not day.missing]


def compare_scores(counts: Counts, reference: Counts) -> Effect:
    """Return PSI ≥ 0 of two histograms (BINS,), in `QUANTILE_BINS` of the reference.

    >>> day, before = np.zeros(1_000, np.int64), np.zeros(1_000, np.int64)
    >>> day[500], before[400] = 1000, 1000
    >>> compare_scores(day, before).value > 1
    True
    """
    group = quantile_bins(reference)
    day, before = (
        np.bincount(group, weights=side, minlength=QUANTILE_BINS) for side in (counts, reference)
    )
    return population_stability_index(day, before)


def quantile_bins(reference: Counts) -> NDArray[np.int64]:
    """Return the quantile bin (F,) in 0…QUANTILE_BINS−1 of each fine bin of a histogram (F,).

    A fine bin goes where its middle rank lies. So a value that holds most of the mass stays apart
    from what is below and above it, also when there is nothing there in the reference.
    """
    through = np.cumsum(reference)
    rank = (through - reference / 2) / max(int(through[-1]), 1)
    return np.minimum((rank * QUANTILE_BINS).astype(np.int64), QUANTILE_BINS - 1)


def day_metrics(today: Profile, trailing: Sequence[Profile]) -> Iterator[Finding]:
    """Yield the volume ratio, and the shares that are flagged, quarantined and missing.

    Shares have Wilson's interval; those of an empty day are insufficient. The volume of an empty
    day is 0, which is a value.
    """
    yield volume_ratio(today, trailing)
    yield _share("flagged_share", "flagged", today.flagged, today.scored)
    yield _share("quarantined_share", "quarantined", today.quarantined, today.landed)
    for column, gaps in today.missing.items():
        yield _share("missing_share", column, gaps, today.comments)


def volume_ratio(today: Profile, trailing: Sequence[Profile]) -> Finding:
    """Return the landed rows of the day over the median of the trailing days.

    One storm does not move the median.

    >>> volume_ratio(Profile(comments=50), []).reason
    '0 trailing days; 3 are needed'
    """
    volumes = [day.landed for day in trailing]
    usual, reason = median(volumes or [0]), ""
    if len(volumes) < MINIMUM_DAYS:
        reason = f"{len(volumes)} trailing days; {MINIMUM_DAYS} are needed"
    elif not usual:
        reason = "half of the trailing days are empty"
    ratio = None if reason else today.landed / usual
    return Finding(
        metric="volume_ratio",
        feature="comments",
        reference="trailing",
        value=ratio,
        n=today.landed,
        reference_n=sum(volumes),
        reason=reason,
    )


def _share(metric: str, feature: str, part: int, whole: int) -> Finding:
    if not whole:
        return Finding(metric=metric, feature=feature, value=None, n=0, reason="an empty day")
    return Finding(metric=metric, feature=feature, **asdict(share(part, whole)), n=whole)


_SECONDS = 3600.0


@dataclass(frozen=True, kw_only=True)
class Queue:
    """The routed comments of a day in the queue; times in seconds, None where there is none."""

    waiting: int
    decided: int
    #: Of waiting items, since they were queued.
    age_median: float | None = None
    age_oldest: float | None = None
    #: Of decided items, from queued to the first label.
    decision_median: float | None = None


def queue_metrics(queue: Queue) -> Iterator[Finding]:
    """Yield completion, size, ages and speed of a day's queue; times in hours, to a tenth.

    >>> {finding.metric: finding.value for finding in queue_metrics(Queue(waiting=1, decided=3))}
    ... # doctest: +NORMALIZE_WHITESPACE
    {'queue_completion': 0.75, 'queue_waiting': 1.0, 'queue_age_median_hours': None,
     'queue_age_oldest_hours': None, 'queue_decision_median_hours': None}
    """
    queued = queue.waiting + queue.decided
    completion = queue.decided / queued if queued else None
    yield _of_queue("completion", completion, queued, "nothing was queued")
    yield _of_queue("waiting", float(queue.waiting), queued, "")
    for name, seconds, n, reason in (
        ("age_median_hours", queue.age_median, queue.waiting, "no item is waiting"),
        ("age_oldest_hours", queue.age_oldest, queue.waiting, "no item is waiting"),
        ("decision_median_hours", queue.decision_median, queue.decided, "no item is decided"),
    ):
        hours = None if seconds is None else round(seconds / _SECONDS, 1)
        yield _of_queue(name, hours, n, reason)


def _of_queue(name: str, value: float | None, n: int, reason: str) -> Finding:
    why = reason if value is None else ""
    return Finding(metric=f"queue_{name}", feature="queue", value=value, n=n, reason=why)
