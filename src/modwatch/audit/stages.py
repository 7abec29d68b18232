"""The second stage of an adaptive audit: where to label next, given what the first one found."""

import numpy as np
from numpy.typing import NDArray

from modwatch.audit import allocation
from modwatch.audit.counts import StratumCounts
from modwatch.audit.inversion import pattern
from modwatch.errors import DesignError
from modwatch.metrics.inputs import Floats

#: Part of the positives that is taken to be spread evenly when labels are allotted.
_HIDDEN = 0.1

#: Of the labels of a later stage, the part that is spread proportionally.
LATER_FLOOR = 0.25


def next_stage(
    stage: StratumCounts, labels: int, *, floor: float = LATER_FLOOR
) -> NDArray[np.int64]:
    """Return the labels (H,) of the next stage, in strata from which `stage` was drawn.

    Neyman by what was found and, where little was, by the scores. Strata that are labelled whole
    get none. The stages are put together by `counts.combine`, with shares fixed in the plan.
    DesignError when everything is labelled, or the labels are fewer than two a stratum.

    >>> first = StratumCounts.of(population=[900, 100], labels=[30, 30], positives=[0, 15],
    ...                          score=[0.01, 0.5])
    >>> next_stage(first, 100).tolist()
    [72, 28]
    """
    left = stage.population - stage.labels
    some = left > 0
    if not some.any():
        raise DesignError("every comment is labelled already; there is nothing left for a stage")
    sizes = np.zeros(left.size, dtype=np.int64)
    sizes[some] = allocation.neyman(left[some], spread(stage)[some], labels, floor=floor)
    return sizes


def spread(stage: StratumCounts) -> Floats:
    """Return the standard deviation (H,) of the label in each stratum, as far as can be told.

    Where all labels are positive, one positive and one negative more are supposed, as in a pilot.
    """
    counts = stage.weighted()
    share = max(float(counts.rate), 1 / (2 * float(counts.labels.sum())))
    rate = share * ((1 - _HIDDEN) * pattern(counts) + _HIDDEN)
    rate = np.minimum(rate, (stage.labels + 1) / (stage.labels + 2))
    return np.asarray(np.sqrt(rate * (1 - rate)))
