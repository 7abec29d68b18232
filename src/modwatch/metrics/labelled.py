"""A day of which people labelled a designed sample."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modwatch.errors import MetricInputError
from modwatch.metrics import inputs
from modwatch.metrics.inputs import Floats

Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class LabelledDay:
    """A day's whole population of N comments, of which a designed sample has labels.

    The design is stratified: n_h of N_h comments of stratum h were routed; stratum 0 is the top,
    routed whole. Labels may be missing; within a stratum they are taken to be missing at random.
    """

    #: (N,) in [0, 1]: the score of every comment.
    prob: NDArray[np.floating]
    #: (N,) stratum of every routed comment. Others may hold −1; only whether a comment is of
    #: stratum 0 must be true for all.
    stratum: NDArray[np.integer]
    #: (N,) 0 or 1 where labelled; anything elsewhere.
    label: NDArray[np.generic]
    #: (N,) whether the label is there.
    labelled: NDArray[np.bool_]
    #: (H,) N_h of every stratum of the design, from stratum 0.
    population: NDArray[np.integer]
    #: (H,) n_h of every stratum.
    sample: NDArray[np.integer]

    def __post_init__(self) -> None:
        inputs.probabilities(self.prob)
        size = inputs.same_length(
            prob=self.prob, stratum=self.stratum, label=self.label, labelled=self.labelled
        )
        inputs.same_length(population=self.population, sample=self.sample)
        inputs.labels(self.label[self.labelled])
        if int(self.population.sum()) != size:
            raise MetricInputError(
                f"the design counts {int(self.population.sum())} comments and {size} have scores; "
                "route the day again after scoring"
            )
        self._check_strata()

    def _check_strata(self) -> None:
        seen = self.stratum[self.labelled]
        if seen.size and (seen.min() < 0 or seen.max() >= len(self.population)):
            raise MetricInputError("a labelled comment is of no stratum; pass its routed stratum")
        if (self.sample > self.population).any() or (self.count > self.sample).any():
            raise MetricInputError("a stratum has more labels than sample, or sample than comments")
        if int((self.stratum == 0).sum()) != int(self.population[:1].sum()):
            raise MetricInputError(
                "stratum 0 is not as large as its design; pass it for the whole top"
            )

    @property
    def count(self) -> Ints:
        """(H,) labelled comments of each stratum."""
        seen = self.stratum[self.labelled]
        return np.bincount(seen, minlength=len(self.population)).astype(np.int64)

    def rows(self, repeat: int = 1) -> Ints:
        """Return the positions of the labelled comments, those outside the top `repeat` times.

        But no row more often than it stands for comments of its stratum.
        """
        rows = np.flatnonzero(self.labelled)
        times = np.minimum(repeat, self.population // np.maximum(self.count, 1))
        times[:1] = 1
        return np.repeat(rows, times[self.stratum[rows]])


def fully_labelled(prob: Floats, label: NDArray[np.generic]) -> LabelledDay:
    """Return a day on which everything was reviewed, as in replayed research data.

    >>> fully_labelled(np.array([0.5]), np.array([1])).population.tolist()
    [1]
    """
    size = np.array([len(prob)])
    return LabelledDay(
        prob=prob,
        stratum=np.zeros(len(prob), dtype=np.int64),
        label=label,
        labelled=np.ones(len(prob), dtype=bool),
        population=size,
        sample=size,
    )
