"""The design of an audit: strata of the scores of a period, and the labels of each.

Edges of strata are values that occur among the scores. Written into a plan and applied to the same
comments in any order, they give the same strata.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from modwatch.common.errors import DesignError, MetricInputError
from modwatch.statistics import arguments
from modwatch.statistics.arguments import Floats, Ints, budget, shares, whole_numbers
from modwatch.statistics.audit.allocation import (
    MINIMUM,
    WORST_CASE,
    neyman,
    safe_minima,
)
from modwatch.statistics.audit.stratified import StratumCounts
from modwatch.statistics.recalibration import (
    EXPECTED,
    Calibration,
    KnownLabels,
    calibrated,
    shift_to_mean,
    shrunk,
)

#: Part of the mass that is spread evenly, so that the stratum of the lowest scores does not contain
#: nearly all comments.
EVEN_SHARE = 0.25


@dataclass(frozen=True, kw_only=True)
class Strata:
    """Ranges of the score: stratum h is edges[h−1] ≤ score < edges[h], in ascending order."""

    #: (H−1,) inner edges, ascending.
    edges: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.edges) + 1

    def assign(self, score: ArrayLike) -> Ints:
        """Return the stratum (n,) in 0…H−1 of each score (n,); MetricInputError outside [0, 1].

        >>> Strata(edges=(0.5,)).assign([0.2, 0.5, 0.9]).tolist()
        [0, 1, 1]
        """
        values = shares("score", score)
        return np.searchsorted(np.array(self.edges), values, side="right").astype(np.int64)


def strata(
    score: ArrayLike,
    *,
    bins: int = 8,
    counts: ArrayLike | None = None,
    expected: ArrayLike | None = None,
) -> Strata:
    """Return at most `bins` strata of the scores (n,) in [0, 1].

    Strata have equal sums of √(p(1−p)), the standard deviation of the label under a calibrated
    score p, but for `EVEN_SHARE` (Wei et al., section 4.4). `counts` (n,) is the number of comments
    with each score, 1 by default; pass a histogram for a population too large for memory.
    `expected` (n,) is the p of each, such as the recalibrated score; the score itself by default.
    Equal scores stay in one stratum, and empty strata are left out.

    Raises:
        DesignError: fewer than one bin, no comment.
        MetricInputError: scores outside [0, 1], negative counts, arrays of different lengths.

    >>> strata([0.1, 0.2, 0.3, 0.9], bins=2).edges
    (0.3,)
    """
    if bins < 1:
        raise DesignError(f"Number of strata must be at least 1, got {bins}.")
    values = shares("score", score)
    ones = np.ones(values.size)
    number = ones if counts is None else arguments.counted("counts", counts)
    chance = values if expected is None else shares("expected", expected)
    arguments.same_length(score=values, counts=number, expected=chance)
    value, where = np.unique(values, return_inverse=True)
    frequency = np.bincount(where, weights=number, minlength=value.size).astype(np.float64)
    chance = np.bincount(where, weights=number * chance, minlength=value.size).astype(np.float64)
    value, chance, frequency = (column[frequency > 0] for column in (value, chance, frequency))
    if not value.size:
        raise DesignError("There are no comments to stratify; choose a period with comments.")
    mass = _mass(frequency, chance / frequency)
    middle = np.cumsum(mass) - mass / 2
    place = middle / mass.sum() * bins
    # Rounded, so that the order of summation does not decide ties.
    stratum = np.minimum(np.floor(np.round(place, 9)), bins - 1)
    first = np.flatnonzero(np.diff(stratum)) + 1
    return Strata(edges=tuple(float(edge) for edge in value[first]))


def _mass(frequency: Floats, chance: Floats) -> Floats:
    """Return the mass (m,) of each score; strata have equal sums of it."""
    spread = frequency * np.sqrt(chance * (1 - chance))
    even = np.asarray(frequency / frequency.sum())
    if not spread.any():
        return even
    return np.asarray((1 - EVEN_SHARE) * spread / spread.sum() + EVEN_SHARE * even)


#: Minimum and maximum share of the labels for flagged comments: precision needs some, and recall
#: hardly improves with more.
FLAGGED_LEAST, FLAGGED_MOST = 0.1, 0.5

#: Flagged comments vary less and need fewer strata.
_FLAGGED_BINS = 4

_NOTHING_KNOWN: Mapping[str, KnownLabels] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class DesignOptions:
    """Options of the design; DesignError for values out of range.

    >>> DesignOptions().bins, DesignOptions().worst_case
    (8, 1.1)
    """

    #: At most; fewer where the labels are too few for the promise of `worst_case`.
    bins: int = 8
    #: At most how many times the variance of a random sample of the side with as many labels the
    #: allocation allows, ≥ 1, whatever the labels turn out to be.
    worst_case: float = WORST_CASE
    #: Share of the labels for flagged comments in (0, 1); None: optimal for recall.
    flagged_share: float | None = None
    #: Expected share of positives among the unflagged in (0, 1), in place of labels known before.
    expected_prevalence: float | None = None

    def __post_init__(self) -> None:
        if self.bins < 1:
            raise DesignError(f"Number of strata must be at least 1, got {self.bins}.")
        if not 1 <= self.worst_case < np.inf:
            raise DesignError(
                f"The worst case must be a number of at least 1, got {self.worst_case}."
            )
        for name in ("flagged_share", "expected_prevalence"):
            value = getattr(self, name)
            if value is not None and not 0 < value < 1:
                raise DesignError(f"{name} must be in (0, 1), got {value}.")


@dataclass(frozen=True, kw_only=True)
class ScoreCounts:
    """The scores of flagged or of unflagged comments: distinct values and their counts.

    MetricInputError for scores outside [0, 1], negative counts, or different lengths.
    """

    #: (m,) in [0, 1].
    score: Floats
    #: (m,) ≥ 0.
    count: Ints

    def __post_init__(self) -> None:
        score = shares("score", self.score)
        if whole_numbers("count", self.count).shape != score.shape:
            raise MetricInputError("score and count must have equal lengths.")

    @classmethod
    def from_scores(cls, score: ArrayLike) -> "ScoreCounts":
        """Return the counts of the scores (n,) of single comments."""
        value, count = np.unique(shares("score", score), return_counts=True)
        return cls(score=value, count=count.astype(np.int64))

    @property
    def comments(self) -> int:
        """Number of comments."""
        return int(self.count.sum())


@dataclass(frozen=True, kw_only=True)
class SideDesign:
    """Strata of one side of the decision, and the labels of each."""

    strata: Strata
    #: (H,) comments of each.
    population: Ints
    #: (H,) comments to label of each.
    labels: Ints
    #: (H,) mean recalibrated score.
    score: Floats
    calibration: Calibration = field(default_factory=Calibration)

    def draw(self, score: ArrayLike, generator: np.random.Generator) -> Ints:
        """Return the rows of the comments to label, by the scores (n,) of all of the side."""
        stratum = self.strata.assign(score)
        if (np.bincount(stratum, minlength=len(self.strata)) != self.population).any():
            raise DesignError("Scores are not those that the strata were designed for.")
        rows = [
            generator.choice(np.flatnonzero(stratum == number), labels, replace=False)
            for number, labels in enumerate(self.labels)
        ]
        return np.sort(np.concatenate(rows))

    def counts(self, score: ArrayLike, label: ArrayLike) -> StratumCounts:
        """Return the counts by stratum of labelled comments, by score (m,) and label (m,) 0 or 1.

        MetricInputError when a stratum has no labels.
        """
        stratum, strata_ = self.strata.assign(score), len(self.strata)
        return StratumCounts.from_arrays(
            population=self.population,
            labels=np.bincount(stratum, minlength=strata_),
            positives=np.bincount(stratum, weights=arguments.labels(label), minlength=strata_),
            score=self.score,
        )


@dataclass(frozen=True, kw_only=True)
class Design:
    """Both sides; None for a side without comments."""

    flagged: SideDesign | None
    unflagged: SideDesign | None

    @property
    def labels(self) -> int:
        """Labels of both sides."""
        return sum(int(side.labels.sum()) for side in (self.flagged, self.unflagged) if side)


def design(
    flagged: ScoreCounts,
    unflagged: ScoreCounts,
    labels: int,
    options: DesignOptions = DesignOptions(),
    known: Mapping[str, KnownLabels] = _NOTHING_KNOWN,
) -> Design:
    """Return the design of an audit with a budget of `labels` for both sides.

    `known` holds labels of random comments from before the audit, of the sides `flagged` and
    `unflagged`; they recalibrate the scores, unless `options` expect a prevalence. On each side the
    estimate has at most `options.worst_case` times the variance of a random sample with as many
    labels of that side, however wrong the scores are.

    Raises:
        DesignError: no comments, or fewer labels than the minima of the strata.

    >>> scores = np.linspace(0, 0.5, 2000) ** 4
    >>> made = design(ScoreCounts.from_scores([0.9] * 50), ScoreCounts.from_scores(scores), 300)
    >>> made.labels, made.unflagged.labels.sum() > made.flagged.labels.sum()
    (300, np.True_)
    """
    budget(labels)
    both = (flagged, unflagged)
    most_bins = (min(options.bins, _FLAGGED_BINS), options.bins)
    maps = _calibrations(flagged, unflagged, options, known)
    sides = [
        _side(scores, calibration, bins) if scores.comments else None
        for scores, calibration, bins in zip(both, maps, most_bins, strict=True)
    ]
    if not any(sides):
        raise DesignError("The period has no comments; choose another.")
    parts = _split((sides[0], sides[1]), labels, options)
    made = [
        side and _allocated(side, scores, part, options)
        for side, scores, part in zip(sides, both, parts, strict=True)
    ]
    return Design(flagged=made[0], unflagged=made[1])


def sizes_and_means(
    cut: Strata, scores: ScoreCounts, calibration: Calibration
) -> tuple[Ints, Floats]:
    """Return the comments (H,) of each stratum and their mean recalibrated score, 0 without any."""
    stratum, count = cut.assign(scores.score), scores.count
    size = np.bincount(stratum, weights=count, minlength=len(cut)).astype(np.int64)
    chance = calibration.probability(scores.score)
    total = np.bincount(stratum, weights=count * chance, minlength=len(cut))
    return size, np.asarray(total / np.maximum(size, 1))


def _calibrations(
    flagged: ScoreCounts,
    unflagged: ScoreCounts,
    options: DesignOptions,
    known: Mapping[str, KnownLabels],
) -> tuple[Calibration, Calibration]:
    """Return the calibration of the scores of each side."""
    expected = options.expected_prevalence
    if expected is not None and unflagged.comments:
        shift = shift_to_mean(unflagged.score, expected, counts=unflagged.count)
        made = Calibration(intercept=shift, source=EXPECTED)
        return made, made
    sides = {"flagged": flagged, "unflagged": unflagged}
    first, second = (
        calibrated(scores.score, scores.count, known[name])
        if scores.comments and name in known and known[name].label.size
        else (shrunk(scores.score, scores.count) if scores.comments else Calibration())
        for name, scores in sides.items()
    )
    return first, second


def _side(scores: ScoreCounts, calibration: Calibration, bins: int) -> SideDesign:
    """Return a side in at most `bins` strata, before allocation."""
    cut = strata(
        scores.score,
        bins=bins,
        counts=scores.count,
        expected=calibration.probability(scores.score),
    )
    size, mean = sizes_and_means(cut, scores, calibration)
    return SideDesign(
        strata=cut,
        population=size,
        labels=np.zeros(len(cut), dtype=np.int64),
        score=mean,
        calibration=calibration,
    )


def _split(
    sides: tuple[SideDesign | None, SideDesign | None], labels: int, options: DesignOptions
) -> tuple[int, int]:
    """Return the labels of each side: at least the minima of its strata."""
    flagged, unflagged = sides
    sizes = [int(side.population.sum()) if side else 0 for side in sides]
    least = [int(np.minimum(side.population, MINIMUM).sum()) if side else 0 for side in sides]
    if labels < sum(least):
        number = sum(len(side.strata) for side in sides if side)
        raise DesignError(
            f"{labels} labels are too few for {number} strata with at least {MINIMUM} each; "
            f"use {sum(least)} or more, or fewer strata"
        )
    if not flagged or not unflagged:
        return min(labels, sizes[0]), min(labels, sizes[1])
    share = options.flagged_share
    if share is None:
        # The relative variance of recall is the sum of both sides' c/n: optimal n ∝ √c.
        costs = [_relative_cost(flagged), _relative_cost(unflagged)]
        share = costs[0] / max(sum(costs), 1e-300)  # 0 where all scores are 0 or 1
        share = float(np.clip(share, FLAGGED_LEAST, FLAGGED_MOST))
    first = int(np.clip(round(share * labels), least[0], min(labels - least[1], sizes[0])))
    second = min(labels - first, sizes[1])
    return min(labels - second, sizes[0]), second


def _relative_cost(side: SideDesign) -> float:
    """Return √n times the coefficient of variation of the side's positives, by the scores."""
    weight = side.population / side.population.sum()
    rate = float(weight @ side.score)
    return float(weight @ np.sqrt(side.score * (1 - side.score))) / max(rate, 1e-12)


def _allocated(
    side: SideDesign, scores: ScoreCounts, labels: int, options: DesignOptions
) -> SideDesign:
    """Return the side with its labels, in fewer strata if the labels are too few for so many."""
    bins = len(side.strata)
    # One stratum is a random sample, and always possible.
    while safe_minima(side.population, labels, options.worst_case).sum() > labels:
        bins -= 1
        side = _side(scores, side.calibration, bins)
    spread = np.sqrt(side.score * (1 - side.score))
    worst = options.worst_case
    return replace(side, labels=neyman(side.population, spread, labels, worst_case=worst))
