"""What was drawn and found, stratum by stratum: all that estimators need to know of an audit.

Arrays of positives may have a leading axis of repetitions (…, H), so that simulations run the very
code that audits run.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modwatch.audit import checks
from modwatch.errors import MetricInputError
from modwatch.metrics.inputs import Floats

Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class StratumCounts:
    """One stage of a stratified sample without replacement.

    >>> counts = StratumCounts.of(population=[900, 100], labels=[30, 20], positives=[0, 8],
    ...                           score=[0.01, 0.4])
    >>> round(float(counts.rate()), 6)
    0.04
    """

    #: (H,) comments N_h ≥ 1.
    population: Ints
    #: (H,) labels n_h in 1…N_h.
    labels: Ints
    #: (…, H) positives k_h in 0…n_h.
    positives: Ints
    #: (H,) mean score of the stratum's comments, in [0, 1]: where positives are to be expected.
    score: Floats

    @classmethod
    def of(
        cls, *, population: ArrayLike, labels: ArrayLike, positives: ArrayLike, score: ArrayLike
    ) -> "StratumCounts":
        """Return checked counts; MetricInputError names what does not fit."""
        given = {"population": population, "labels": labels, "positives": positives}
        sizes, drawn, found = (checks.whole_numbers(*each) for each in given.items())
        expected = checks.shares("score", score)
        if not expected.size:
            raise MetricInputError("there is no stratum; an estimate needs one at least")
        if not sizes.shape == drawn.shape == expected.shape == found.shape[-1:]:
            raise MetricInputError("population, labels, positives and score differ in length")
        if (drawn < 1).any() or (drawn > sizes).any():
            raise MetricInputError("a stratum has no label, or more labels than comments")
        if (found > drawn).any():
            raise MetricInputError("a stratum has more positives than labels")
        return cls(population=sizes, labels=drawn, positives=found, score=expected)

    def rate(self) -> Floats:
        """Return the stratified estimate (…) of the share of positives (Eq. 5 and 6)."""
        weight = self.population / self.population.sum()
        return np.asarray((self.positives / self.labels) @ weight)

    def weighted(self) -> "WeightedCounts":
        """Return the same as a weighted sum of counts."""
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
    """A share that is estimated by Σ weight_c × positives_c over cells c, Σ weight × labels = 1."""

    #: (C,) what one positive adds to the share.
    weight: Floats
    #: (C,) labels of the cell.
    labels: Ints
    #: (…, C) positives among them.
    positives: Ints
    #: (C,) mean score of the comments that the cell stands for, in [0, 1].
    score: Floats
    #: (C,) factor of the variance in [0, 1]: 1 − n/N, 0 where every comment was labelled.
    unseen: Floats

    @property
    def rate(self) -> Floats:
        """(…) estimated share."""
        return np.asarray(self.positives @ self.weight)

    @property
    def variance(self) -> Floats:
        """(…) textbook variance Σ w² n² (1−f) p̂(1−p̂)/(n−1), f to the first power.

        Eq. 7 of the paper squares 1−f; see Cochran (1977), section 5.3.
        """
        rate = self.positives / self.labels
        one_less = np.maximum(self.labels - 1, 1)
        factor = (self.weight * self.labels) ** 2 * self.unseen / one_less
        return np.asarray((rate * (1 - rate)) @ factor)

    @property
    def degrees_of_freedom(self) -> int:
        """Labels less cells, at least 1."""
        return max(int(self.labels.sum()) - self.labels.size, 1)


def combine(
    stages: Sequence[StratumCounts], shares: Sequence[float], *, population: ArrayLike
) -> WeightedCounts:
    """Return the share that the stages of an adaptive audit tell together.

    Each stage draws from what the stages before it left; its estimate counts their positives as
    known. Given those, it is free of bias, and with `shares` fixed before the first label so is
    the whole: pooling the labels of all stages would not be. `stages[s].population` (H,) is what
    was left before stage s; `population` (H,) the whole; `shares` > 0 sum to 1. MetricInputError
    when a stage does not draw from all that the stages before it left.

    >>> first = StratumCounts.of(population=[100], labels=[10], positives=[1], score=[0.1])
    >>> second = StratumCounts.of(population=[90], labels=[30], positives=[4], score=[0.1])
    >>> round(float(combine([first, second], [0.25, 0.75], population=[100]).rate), 6)
    0.1225
    """
    if len(shares) != len(stages) or not all(share > 0 for share in shares):
        raise MetricInputError("each stage must have a share of more than 0")
    if abs(sum(shares) - 1) > 1e-9:
        raise MetricInputError(f"the shares of the stages sum to {sum(shares)}; they must sum to 1")
    if len({stage.positives.shape[:-1] for stage in stages}) > 1:
        raise MetricInputError("the stages differ in repetitions; pass as many of each")
    left = whole = int(checks.strata_sizes(population).sum())
    parts = []
    for number, (stage, share) in enumerate(zip(stages, shares, strict=True)):
        if stage.population.sum() != left:
            raise MetricInputError(
                f"stage {number + 1} stands for {stage.population.sum()} comments where {left} are "
                "left; pass all that the stages before it did not label"
            )
        left -= int(stage.labels.sum())
        of_stage = share * stage.population / (whole * stage.labels)
        known = sum(shares[number + 1 :]) / whole
        weight = of_stage + known
        unseen = (1 - stage.labels / stage.population) * (of_stage / weight) ** 2
        parts.append((weight, stage.labels, stage.positives, stage.score, unseen))
    weight, labels, positives, score, unseen = (
        np.concatenate(column, axis=-1) for column in zip(*parts, strict=True)
    )
    return WeightedCounts(
        weight=weight, labels=labels, positives=positives, score=score, unseen=unseen
    )
