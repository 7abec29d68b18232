"""Disagreement among annotators: which part of it is opinion, and what it does to a metric.

    >>> from modwatch.statistics.disagreement import flip_rate, primary_labels
    >>> round(float(flip_rate(0.18)), 3)
    0.1
    >>> primary_labels([0.8, 0.2], 0.1).round(3).tolist()
    [0.875, 0.125]

An annotator's *primary label* of an item is the one that they would give most often; a label that
differs from it is a *slip*, its probability the *flip rate*. Annotators whose primary labels differ
disagree; of two different labels of one item by one annotator, one is a slip (Gordon et al. 2021,
*The Disagreement Deconvolution*).

    data           Annotations, majority
    flip rates     flip_rate, estimate_flip_rates, retest_flip_rates, svd_flip_rates,
                   fixed_flip_rate
    distributions  primary_labels, primary_shares
    metrics        adjusted_metrics, agreement_with_people, adjusted

`docs/groups.md` explains them. Invalid arguments raise `modwatch.common.errors.MetricInputError`.
"""

from modwatch.statistics.disagreement.adjustment import (
    ADJUSTED_METRICS,
    adjusted,
    adjusted_metrics,
)
from modwatch.statistics.disagreement.annotations import Annotations, Retests, majority
from modwatch.statistics.disagreement.factorisation import estimate_flip_rates, svd_flip_rates
from modwatch.statistics.disagreement.flip_rates import (
    FlipRates,
    fixed_flip_rate,
    flip_rate,
    retest_flip_rates,
)
from modwatch.statistics.disagreement.others import agreement_with_people
from modwatch.statistics.disagreement.primary import (
    primary_labels,
    primary_shares,
)

__all__ = [
    "ADJUSTED_METRICS", "Annotations", "FlipRates", "Retests", "adjusted",
    "adjusted_metrics", "agreement_with_people", "estimate_flip_rates",
    "fixed_flip_rate", "flip_rate", "majority", "primary_labels", "primary_shares",
    "retest_flip_rates", "svd_flip_rates",
]  # fmt: skip
