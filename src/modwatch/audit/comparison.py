"""The design that Modwatch's is measured against: the paper's pilot.

It works on the number of comments and of positives of each stratum, all labels being known: for
simulation. Random sampling is the same with a single stratum.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modwatch.audit import allocation, checks
from modwatch.audit.counts import StratumCounts
from modwatch.errors import MetricInputError

Ints = NDArray[np.int64]

#: The paper's recommendation: strata of the same size, and labels of each to begin with.
PILOT_BINS, PILOT_LABELS = 8, 50

#: The generator draws from populations that are smaller.
_MOST = 10**9


def draw(
    population: ArrayLike,
    positives: ArrayLike,
    labels: ArrayLike,
    generator: np.random.Generator,
    *,
    repetitions: int | None = None,
) -> Ints:
    """Return how many positives a sample without replacement of each stratum shows (R, H) or (H,).

    MetricInputError unless positives and labels are part of a population under 10⁹ a stratum.

    >>> draw([10, 10], [10, 0], [3, 4], np.random.default_rng(0)).tolist()
    [3, 0]
    """
    given = {"population": population, "positives": positives, "labels": labels}
    sizes, found, drawn = (checks.whole_numbers(*each) for each in given.items())
    if not sizes.shape == found.shape == drawn.shape:
        raise MetricInputError("population, positives and labels differ in length")
    if (np.maximum(found, drawn) > sizes).any() or (sizes >= _MOST).any():
        raise MetricInputError(
            f"a stratum has more positives or labels than comments, or {_MOST} comments or more"
        )
    shape = found.shape if repetitions is None else (repetitions, found.size)
    return generator.hypergeometric(found, sizes - found, drawn, size=shape)


def pilot_audit(
    population: ArrayLike,
    positives: ArrayLike,
    score: ArrayLike,
    labels: int,
    generator: np.random.Generator,
    *,
    pilot: int = PILOT_LABELS,
) -> StratumCounts:
    """Return one audit by the paper's design: a pilot, its allocation, and all labels pooled.

    `population` N_h, `positives` K_h and mean `score`, each (H,); `labels` in all. Pooling is what
    the paper does (section 4.4); it is biased, since where the pilot found positives by chance
    more labels are spent and where it found none fewer.
    """
    sizes = checks.strata_sizes(population)
    known = checks.whole_numbers("positives", positives)
    first = np.minimum(sizes, pilot)
    seen = draw(sizes, known, first, generator)
    total = allocation.pilot(sizes, first, seen, labels)
    more = draw(sizes - first, known - seen, total - first, generator)
    return StratumCounts.of(population=sizes, labels=total, positives=seen + more, score=score)
