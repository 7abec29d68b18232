"""The design of an audit: strata and labels of each, from the scores of a period."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from modwatch.audit.allocation import FLOOR, MINIMUM, equal, neyman, proportional
from modwatch.audit.arguments import Ints, budget, shares, whole_numbers
from modwatch.audit.recalibration import prior_shift, shifted
from modwatch.audit.strata import METHODS, Strata, strata
from modwatch.audit.stratified import StratumCounts
from modwatch.errors import DesignError, MetricInputError
from modwatch.metrics import inputs
from modwatch.metrics.inputs import Floats

ALLOCATIONS = ("neyman", "proportional", "equal")

#: Minimum and maximum share of the labels for flagged comments: precision needs some, and recall
#: hardly improves with more.
FLAGGED_LEAST, FLAGGED_MOST = 0.1, 0.5

#: Flagged comments vary less and need fewer strata.
_FLAGGED_BINS = 4
#: Their scores predict less; half of their labels are allocated proportionally.
_FLAGGED_FLOOR = 0.5


@dataclass(frozen=True, kw_only=True)
class DesignOptions:
    """Options of the design; DesignError for values out of range.

    >>> DesignOptions().method, DesignOptions().bins, DesignOptions().floor
    ('neyman', 8, 0.4)
    """

    method: str = "neyman"
    bins: int = 8
    #: neyman | proportional | equal
    allocation: str = "neyman"
    #: Share of the labels in [0, 1] that `neyman` allocates proportionally.
    floor: float = FLOOR
    #: Share of the labels for flagged comments in (0, 1); None: optimal for recall.
    flagged_share: float | None = None
    #: Expected share of positives among the unflagged in (0, 1), for recalibration of the scores.
    expected_prevalence: float | None = None

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise DesignError(f"Strata method must be one of {METHODS}, got {self.method!r}.")
        if self.allocation not in ALLOCATIONS:
            raise DesignError(f"Allocation must be one of {ALLOCATIONS}, got {self.allocation!r}.")
        if self.bins < 1:
            raise DesignError(f"Number of strata must be at least 1, got {self.bins}.")
        if not 0 <= self.floor <= 1:
            raise DesignError(f"Floor of the allocation must be in [0, 1], got {self.floor}.")
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
    def of(cls, score: ArrayLike) -> "ScoreCounts":
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
    #: (H,) mean score, recalibrated when a prevalence was expected.
    score: Floats

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
        return StratumCounts.of(
            population=self.population,
            labels=np.bincount(stratum, minlength=strata_),
            positives=np.bincount(stratum, weights=inputs.labels(label), minlength=strata_),
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
) -> Design:
    """Return the design of an audit with a budget of `labels` for both sides.

    Raises:
        DesignError: no comments, or fewer labels than the minima of the strata.

    >>> scores = np.linspace(0, 0.5, 2000) ** 4
    >>> made = design(ScoreCounts.of([0.9] * 50), ScoreCounts.of(scores), 300)
    >>> made.labels, made.unflagged.labels.sum() > made.flagged.labels.sum()
    (300, np.True_)
    """
    budget(labels)
    sides = _stratified(flagged, unflagged, options)
    if not any(sides):
        raise DesignError("The period has no comments; choose another.")
    parts = _split(sides, labels, options)
    made = [
        side and replace(side, labels=_allocated(side, part, options, floor))
        for side, part, floor in zip(
            sides, parts, (max(options.floor, _FLAGGED_FLOOR), options.floor), strict=True
        )
    ]
    return Design(flagged=made[0], unflagged=made[1])


def shift_to(unflagged: ScoreCounts, prevalence: float | None) -> float:
    """Return the shift of the scores to an expected prevalence of the unflagged; 0 without one."""
    if prevalence is None or not unflagged.comments:
        return 0.0
    return prior_shift(unflagged.score, prevalence, counts=unflagged.count)


def sizes_and_means(cut: Strata, scores: ScoreCounts, shift: float) -> tuple[Ints, Floats]:
    """Return the comments (H,) of each stratum and their mean shifted score; 0 without comments."""
    stratum, count = cut.assign(scores.score), scores.count
    size = np.bincount(stratum, weights=count, minlength=len(cut)).astype(np.int64)
    total = np.bincount(stratum, weights=count * shifted(scores.score, shift), minlength=len(cut))
    return size, np.asarray(total / np.maximum(size, 1))


def _stratified(
    flagged: ScoreCounts, unflagged: ScoreCounts, options: DesignOptions
) -> tuple[SideDesign | None, SideDesign | None]:
    """Return both sides before allocation."""
    shift = shift_to(unflagged, options.expected_prevalence)
    return (
        _side(flagged, shift, replace(options, bins=min(options.bins, _FLAGGED_BINS))),
        _side(unflagged, shift, options),
    )


def _side(scores: ScoreCounts, shift: float, options: DesignOptions) -> SideDesign | None:
    if not scores.comments:
        return None
    cut = strata(
        scores.score,
        method=options.method,
        bins=options.bins,
        counts=scores.count,
        expected=shifted(scores.score, shift),
    )
    size, mean = sizes_and_means(cut, scores, shift)
    return SideDesign(
        strata=cut,
        population=size,
        labels=np.zeros(len(cut), dtype=np.int64),
        score=mean,
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


def _allocated(side: SideDesign, labels: int, options: DesignOptions, floor: float) -> Ints:
    if options.allocation == "equal":
        return equal(side.population, labels)
    if options.allocation == "proportional":
        return proportional(side.population, labels)
    spread = np.sqrt(side.score * (1 - side.score))
    return neyman(side.population, spread, labels, floor=floor)
