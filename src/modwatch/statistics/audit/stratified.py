"""Labels and positives by stratum: the input of all estimators of an audit.

Arrays of positives may have a leading axis of repetitions (…, H), so that simulations run the same
code as audits.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modwatch.common.errors import MetricInputError
from modwatch.statistics.arguments import Floats, Ints, shares, strata_sizes, whole_numbers


@dataclass(frozen=True, kw_only=True)
class StratumCounts:
    """One stage of a stratified sample without replacement.

    >>> counts = StratumCounts.from_arrays(population=[900, 100], labels=[30, 20], positives=[0, 8],
    ...                           score=[0.01, 0.4])
    >>> round(float(counts.weighted().rate), 6)
    0.04
    """

    #: (H,) comments N_h ≥ 1.
    population: Ints
    #: (H,) labels n_h in 1…N_h.
    labels: Ints
    #: (…, H) positives k_h in 0…n_h.
    positives: Ints
    #: (H,) mean score of the stratum's comments, in [0, 1].
    score: Floats

    @classmethod
    def from_arrays(
        cls, *, population: ArrayLike, labels: ArrayLike, positives: ArrayLike, score: ArrayLike
    ) -> "StratumCounts":
        """Return validated counts; MetricInputError names the problem otherwise."""
        given = {"population": population, "labels": labels, "positives": positives}
        sizes, drawn, positive = (whole_numbers(*column) for column in given.items())
        expected = shares("score", score)
        if not expected.size:
            raise MetricInputError("There are no strata; an estimate needs at least one.")
        if not sizes.shape == drawn.shape == expected.shape == positive.shape[-1:]:
            raise MetricInputError(
                "population, labels, positives and score must have equal lengths."
            )
        if (drawn < 1).any() or (drawn > sizes).any():
            raise MetricInputError("A stratum has no labels, or more labels than comments.")
        if (positive > drawn).any():
            raise MetricInputError("A stratum has more positives than labels.")
        return cls(population=sizes, labels=drawn, positives=positive, score=expected)

    def weighted(self) -> "WeightedCounts":
        """Return the stratified estimate of the share of positives (Eq. 5 and 6)."""
        whole = self.population.sum()
        return WeightedCounts(
            weight=self.population / (whole * self.labels),
            labels=self.labels,
            positives=self.positives,
            score=self.score,
            unseen=1 - self.labels / self.population,
        )


@dataclass(frozen=True, kw_only=True)
class WeightedCounts:
    """A share estimated by Σ weight_c × positives_c over cells c, with Σ weight × labels = 1."""

    #: (C,) increase of the share by one positive.
    weight: Floats
    #: (C,) labels of the cell.
    labels: Ints
    #: (…, C) positives among them.
    positives: Ints
    #: (C,) mean score of the comments that the cell represents, in [0, 1].
    score: Floats
    #: (C,) factor of the variance in [0, 1]: 1 − n/N, 0 where every comment was labelled.
    unseen: Floats

    @classmethod
    def concatenated(cls, parts: Sequence["WeightedCounts"]) -> "WeightedCounts":
        """Return the cells of all parts, whose weights refer to the whole."""
        names = [field.name for field in fields(cls)]
        return cls(
            **{name: np.concatenate([getattr(p, name) for p in parts], axis=-1) for name in names}
        )

    def part(self, cells: NDArray[np.bool_]) -> "WeightedCounts":
        """Return some of the cells (C,), as the share of what they represent."""
        mass = float((self.weight * self.labels)[cells].sum())
        return WeightedCounts(
            weight=self.weight[cells] / mass,
            labels=self.labels[cells],
            positives=self.positives[..., cells],
            score=self.score[cells],
            unseen=self.unseen[cells],
        )

    @property
    def rate(self) -> Floats:
        """(…) estimated share."""
        return np.asarray(self.positives @ self.weight)

    @property
    def cell_rates(self) -> Floats:
        """(…, C) share of positives by cell, for the variance; of all where a cell has one label.

        One label does not show how much labels vary; see "adjust" in Lumley (2010), *Complex
        Surveys*, on strata with a single unit.
        """
        return np.where(self.labels > 1, self.positives / self.labels, self.rate[..., None])

    @property
    def variance(self) -> Floats:
        """(…) textbook variance Σ w² n² (1−f) p̂(1−p̂)/(n−1), f to the first power.

        Eq. 7 of the paper squares 1−f; see Cochran (1977), section 5.3.
        """
        rate = self.cell_rates
        one_less = np.maximum(self.labels - 1, 1)
        factor = (self.weight * self.labels) ** 2 * self.unseen / one_less
        return np.asarray((rate * (1 - rate)) @ factor)


def combine(
    stages: Sequence[StratumCounts], shares: Sequence[float], *, population: ArrayLike
) -> WeightedCounts:
    """Return the share estimated from all stages of an adaptive audit.

    Each stage draws from the comments that earlier stages left, and counts the positives of those
    as known. Conditionally it is unbiased, and so is the sum with `shares` that were fixed before
    the first label; pooling the labels of all stages would be biased. `stages[s].population`
    (H,) is the population left before stage s, `population` (H,) the whole; `shares` > 0 sum to 1.
    MetricInputError when a stage does not represent all comments that earlier stages left.

    >>> first = StratumCounts.from_arrays(population=[100], labels=[10], positives=[1], score=[0.1])
    >>> second = StratumCounts.from_arrays(population=[90], labels=[30], positives=[4], score=[0.1])
    >>> round(float(combine([first, second], [0.25, 0.75], population=[100]).rate), 6)
    0.1225
    """
    if len(shares) != len(stages) or not all(share > 0 for share in shares):
        raise MetricInputError("Each stage must have a share above 0.")
    if abs(sum(shares) - 1) > 1e-9:
        raise MetricInputError(f"Shares of the stages must sum to 1, got {sum(shares)}.")
    if len({stage.positives.shape[:-1] for stage in stages}) > 1:
        raise MetricInputError("All stages must have the same number of repetitions.")
    left = whole = int(strata_sizes(population).sum())
    parts = []
    for number, (stage, share) in enumerate(zip(stages, shares, strict=True)):
        if stage.population.sum() != left:
            raise MetricInputError(
                f"Stage {number + 1} represents {stage.population.sum()} comments, but {left} are "
                "left; include all comments that earlier stages did not label."
            )
        left -= int(stage.labels.sum())
        of_stage = share * stage.population / (whole * stage.labels)
        known = sum(shares[number + 1 :]) / whole
        weight = of_stage + known
        unseen = (1 - stage.labels / stage.population) * (of_stage / weight) ** 2
        parts.append(replace(stage.weighted(), weight=weight, unseen=unseen))
    return WeightedCounts.concatenated(parts)
