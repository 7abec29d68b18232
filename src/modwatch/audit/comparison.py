"""The design that Modwatch's is measured against: the paper's pilot.

It works on the number of comments and of positives of each stratum, all labels being known: for
simulation. Random sampling is the same with a single stratum.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modwatch.audit import allocation
from modwatch.audit.counts import StratumCounts

Ints = NDArray[np.int64]

#: The paper's recommendation: strata of the same size, and labels of each to begin with.
PILOT_BINS, PILOT_LABELS = 8, 50


def draw(
    population: ArrayLike,
    positives: ArrayLike,
    labels: ArrayLike,
    generator: np.random.Generator,
    *,
    repetitions: int | None = None,
) -> Ints:
    """Return how many positives a sample without replacement of each stratum shows (R, H) or (H,).

    >>> draw([10, 10], [10, 0], [3, 4], np.random.default_rng(0)).tolist()
    [3, 0]
    """
    sizes, found, drawn = (np.asarray(v, np.int64) for v in (population, positives, labels))
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
    sizes, known = np.asarray(population, np.int64), np.asarray(positives, np.int64)
    first = np.minimum(sizes, pilot)
    seen = draw(sizes, known, first, generator)
    total = allocation.pilot(sizes, first, seen, labels)
    more = draw(sizes - first, known - seen, total - first, generator)
    return StratumCounts.of(
        population=sizes, labels=total, positives=seen + more, score=np.asarray(score, np.float64)
    )
