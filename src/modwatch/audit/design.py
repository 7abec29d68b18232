"""From the scores of a period to strata and numbers of labels: what an audit's plan freezes."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modwatch.audit import allocation, checks
from modwatch.audit.allocation import FLOOR
from modwatch.audit.recalibration import prior_shift, shifted
from modwatch.audit.strata import METHODS, Strata, strata
from modwatch.errors import DesignError, MetricInputError
from modwatch.metrics.inputs import Floats

Ints = NDArray[np.int64]

ALLOCATIONS = ("neyman", "proportional", "equal")

#: Part of the labels that flagged comments get, at least and at most: precision needs some, and
#: recall hardly gains by more.
FLAGGED_LEAST, FLAGGED_MOST = 0.1, 0.5

#: Flagged comments differ less, so fewer strata do.
_FLAGGED_BINS = 4
#: Their scores foretell less, so that half of their labels are spread proportionally.
_FLAGGED_FLOOR = 0.5


@dataclass(frozen=True, kw_only=True)
class DesignOptions:
    """What an auditor may choose; DesignError for what is impossible.

    >>> DesignOptions().method, DesignOptions().bins, DesignOptions().floor
    ('neyman', 8, 0.4)
    """

    method: str = "neyman"
    bins: int = 8
    #: neyman | proportional | equal
    allocation: str = "neyman"
    #: Part of the labels in [0, 1] that `neyman` spreads proportionally.
    floor: float = FLOOR
    #: Part of the labels for flagged comments in (0, 1); None: what serves recall best.
    flagged_share: float | None = None
    #: Share of positives among the unflagged, as far as known, to recalibrate the scores by.
    expected_prevalence: float | None = None

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise DesignError(f"the strata method is {self.method!r}; it must be one of {METHODS}")
        if self.allocation not in ALLOCATIONS:
            raise DesignError(f"the allocation is {self.allocation!r}; choose from {ALLOCATIONS}")
        if self.bins < 1:
            raise DesignError(f"the number of strata is {self.bins}; it must be at least 1")
        if not 0 <= self.floor <= 1:
            raise DesignError(f"the floor of the allocation is {self.floor}; it must lie in [0, 1]")
        for name in ("flagged_share", "expected_prevalence"):
            value = getattr(self, name)
            if value is not None and not 0 < value < 1:
                raise DesignError(f"{name} is {value}; it must lie in (0, 1)")


@dataclass(frozen=True, kw_only=True)
class ScoreCounts:
    """The scores of flagged or of unflagged comments: distinct values, and how many have each.

    MetricInputError for scores outside [0, 1], negative counts, or more of the one than the other.
    """

    #: (m,) in [0, 1].
    score: Floats
    #: (m,) ≥ 0.
    count: Ints

    def __post_init__(self) -> None:
        score = checks.shares("score", self.score)
        if checks.whole_numbers("count", self.count).shape != score.shape:
            raise MetricInputError("score and count differ in length; pass one count a score")

    @classmethod
    def of(cls, score: ArrayLike) -> "ScoreCounts":
        """Return the counts of the scores (n,) of single comments."""
        value, count = np.unique(checks.shares("score", score), return_counts=True)
        return cls(score=value, count=count.astype(np.int64))

    @property
    def comments(self) -> int:
        """How many comments there are."""
        return int(self.count.sum())


@dataclass(frozen=True, kw_only=True)
class SideDesign:
    """Strata of one side and the labels of each."""

    strata: Strata
    #: (H,) comments of each.
    population: Ints
    #: (H,) comments to label of each.
    labels: Ints
    #: (H,) mean score, recalibrated when a prevalence was expected.
    score: Floats


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
    """Return the design of an audit of `labels` labels in all.

    Raises:
        DesignError: no comment, or fewer labels than the strata need.

    >>> scores = np.linspace(0, 0.5, 2000) ** 4
    >>> made = design(ScoreCounts.of([0.9] * 50), ScoreCounts.of(scores), 300)
    >>> made.labels, made.unflagged.labels.sum() > made.flagged.labels.sum()
    (300, np.True_)
    """
    checks.budget(labels)
    sides = _stratified(flagged, unflagged, options)
    if not any(sides):
        raise DesignError("the period has no comment; audit one that has some")
    parts = _split(sides, labels, options)
    made = [
        side and replace(side, labels=_allocated(side, part, options, floor))
        for side, part, floor in zip(
            sides, parts, (max(options.floor, _FLAGGED_FLOOR), options.floor), strict=True
        )
    ]
    return Design(flagged=made[0], unflagged=made[1])


def _stratified(
    flagged: ScoreCounts, unflagged: ScoreCounts, options: DesignOptions
) -> tuple[SideDesign | None, SideDesign | None]:
    """Return both sides, no label given out yet."""
    shift = 0.0
    if options.expected_prevalence is not None and unflagged.comments:
        shift = prior_shift(unflagged.score, options.expected_prevalence, counts=unflagged.count)
    return (
        _side(flagged, shift, replace(options, bins=min(options.bins, _FLAGGED_BINS))),
        _side(unflagged, shift, options),
    )


def _side(scores: ScoreCounts, shift: float, options: DesignOptions) -> SideDesign | None:
    if not scores.comments:
        return None
    chance = shifted(scores.score, shift)
    cut = strata(
        scores.score,
        method=options.method,
        bins=options.bins,
        counts=scores.count,
        expected=chance,
    )
    stratum = cut.assign(scores.score)
    size = np.bincount(stratum, weights=scores.count, minlength=len(cut))
    mean = np.bincount(stratum, weights=scores.count * chance, minlength=len(cut)) / size
    return SideDesign(
        strata=cut,
        population=size.astype(np.int64),
        labels=np.zeros(len(cut), dtype=np.int64),
        score=mean,
    )


def _split(
    sides: tuple[SideDesign | None, SideDesign | None], labels: int, options: DesignOptions
) -> tuple[int, int]:
    """Return how many of the labels each side gets: its strata's minima at least."""
    flagged, unflagged = sides
    sizes = [int(side.population.sum()) if side else 0 for side in sides]
    least = [
        int(np.minimum(side.population, allocation.MINIMUM).sum()) if side else 0 for side in sides
    ]
    if labels < sum(least):
        number = sum(len(side.strata) for side in sides if side)
        raise DesignError(
            f"{labels} labels are too few for {number} strata of at least {allocation.MINIMUM}; "
            f"spend {sum(least)} or more, or take fewer strata"
        )
    if not flagged or not unflagged:
        return min(labels, sizes[0]), min(labels, sizes[1])
    share = options.flagged_share
    if share is None:
        # Recall's relative variance is the sum of both sides', each c/n: n goes by √c.
        costs = [_relative_cost(flagged), _relative_cost(unflagged)]
        share = costs[0] / max(sum(costs), 1e-300)  # nothing to find where all scores are 0 or 1
        share = float(np.clip(share, FLAGGED_LEAST, FLAGGED_MOST))
    first = int(np.clip(round(share * labels), least[0], min(labels - least[1], sizes[0])))
    second = min(labels - first, sizes[1])
    return min(labels - second, sizes[0]), second


def _relative_cost(side: SideDesign) -> float:
    """Return √n times the coefficient of variation of the side's positives, as the scores tell."""
    weight = side.population / side.population.sum()
    rate = float(weight @ side.score)
    return float(weight @ np.sqrt(side.score * (1 - side.score))) / max(rate, 1e-12)


def _allocated(side: SideDesign, labels: int, options: DesignOptions, floor: float) -> Ints:
    if options.allocation == "equal":
        return allocation.equal(side.population, labels)
    if options.allocation == "proportional":
        return allocation.proportional(side.population, labels)
    spread = np.sqrt(side.score * (1 - side.score))
    return allocation.neyman(side.population, spread, labels, floor=floor)
