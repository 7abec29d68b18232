"""The choice of the estimator of flip rates."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from modwatch.common.errors import MetricInputError
from modwatch.statistics.disagreement.annotations import Annotations
from modwatch.statistics.disagreement.factorisation import svd_flip_rates
from modwatch.statistics.disagreement.flip_rates import (
    MINIMUM_ITEMS,
    MINIMUM_RETESTS,
    FlipRates,
    annotator_flip_rates,
    groups_differ,
    retest_flip_rates,
    variation,
)

#: Annotators an item from which on the share of minority labels tells more of items than of slips.
_MANY = 10


def estimate_flip_rates(
    annotations: Annotations,
    *,
    by: ArrayLike | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> FlipRates:
    """Return flip rates by the estimator that the data allow; its `reason` says why that one.

    With 100 retests: by annotator if each annotator has 200 retests and their rates differ, more
    than those of strata of items; by strata of items if these differ; else one rate for all. Strata
    are those of `by` (I,), such as a model's probability, if it is given and items have fewer than
    ten annotators (median); else those of the share of minority labels. With fewer retests:
    `svd_flip_rates`, with `seed` and `progress`.

    Raises:
        MetricInputError: labels that were given again differ as often as by chance, or there are
            neither retests nor annotators who gave many labels to the same items.
    """
    retests = annotations.retests
    if retests.item.size < MINIMUM_ITEMS:
        return svd_flip_rates(annotations, seed=seed, progress=progress)
    several = np.median(annotations.counts().sum(axis=1)) >= _MANY
    by = None if several else by
    given = np.bincount(retests.annotator, minlength=len(annotations.annotators))
    if given.min() < MINIMUM_RETESTS or not groups_differ(retests.annotator, retests.differ):
        return retest_flip_rates(annotations, by=by)
    of_annotators = annotator_flip_rates(annotations)
    try:
        of_strata = retest_flip_rates(annotations, by=by)
    except MetricInputError:  # a stratum at chance
        return of_annotators
    return max(of_annotators, of_strata, key=variation)
