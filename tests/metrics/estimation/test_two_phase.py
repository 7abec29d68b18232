"""Two-phase labels of one score against closed forms: a mixture of two binomial distributions.

With one score, the labels are a mixture of two binomial distributions: its moments give the
parameters (Blischke 1964), and the information of both phases adds up. Weighted figures of
confirmations are compared with svy, the survey package.
"""

import numpy as np
import polars
import pytest
import svy
from scipy import stats

from modwatch.metrics import observed_agreement
from modwatch.metrics.estimation.annotators import GivenLabels, true_labels

#: Share of toxic comments, false-positive rate, false-negative rate.
TRUE = (0.3, 0.05, 0.15)


def chances(parameters, labels):
    """Return the probabilities of 0 … `labels` toxic ones among so many."""
    prevalence, up, down = parameters
    k = np.arange(labels + 1)
    return prevalence * stats.binom.pmf(k, labels, 1 - down) + (1 - prevalence) * stats.binom.pmf(
        k, labels, up
    )


def information(parameters, labels):
    """Return the information (3, 3) of one comment with so many labels on the parameters."""
    step = 1e-6 * np.eye(3)
    slopes = [
        (chances(parameters + each, labels) - chances(parameters - each, labels)) / 2e-6
        for each in step
    ]
    return np.einsum("ik,jk,k->ij", slopes, slopes, 1 / chances(parameters, labels))


def by_moments(counts):
    """Return the parameters that have these counts of 0 … 3 toxic labels (Blischke 1964)."""
    k = np.arange(4)
    one, two, three = (
        float(counts @ np.prod([k - i for i in range(r)], axis=0)) / counts.sum() / falling
        for r, falling in ((1, 3), (2, 6), (3, 6))
    )
    total = (three - one * two) / (two - one**2)
    product = total * one - two
    root = np.sqrt(total**2 - 4 * product)
    low, high = (total - root) / 2, (total + root) / 2
    return np.array([(one - low) / (high - low), low, 1 - high])


def labels_of(single, triple):
    """Return labels with these counts of toxic ones among one label, and among three."""
    given = np.repeat([1, 3], [single.sum(), triple.sum()])
    toxic = np.concatenate([np.repeat(np.arange(2), single), np.repeat(np.arange(4), triple)])
    return GivenLabels(
        prob=np.full(given.size, 0.3),
        group=np.zeros(given.size, np.int64),
        given=given.astype(np.int64),
        toxic=toxic.astype(np.int64),
    )


def expected(size, labels):
    return np.rint(size * chances(np.array(TRUE), labels)).astype(np.int64)


@pytest.mark.parametrize(("single", "triple"), [(0, 4000), (16_000, 2000), (4000, 800)])
def test_rates_and_their_spread_are_those_of_the_mixture(single, triple):
    counts = expected(triple, 3)
    found = true_labels(labels_of(expected(single, 1), counts))
    drawn = np.column_stack(
        [found.prior[:, 0], found.false_positive[:, 0], found.false_negative[:, 0]]
    )
    told = single * information(np.array(TRUE), 1) + triple * information(np.array(TRUE), 3)
    error = np.sqrt(np.diag(np.linalg.inv(told)))
    assert drawn.std(axis=0) == pytest.approx(error, rel=0.15)
    assert drawn.mean(axis=0) == pytest.approx(by_moments(counts), abs=0.3 * error.max())


def test_further_labels_and_further_comments_narrow_the_rates():
    spread = [
        float(true_labels(labels_of(expected(single, 1), expected(triple, 3))).prior[:, 0].std())
        for single, triple in ((0, 500), (8000, 500), (8000, 2000))
    ]
    assert spread == sorted(spread, reverse=True)


def test_weighted_agreement_is_that_of_svy():
    rng = np.random.default_rng(2)
    probability = np.where(rng.random(500) < 0.5, 0.1, 1.0)
    first = (rng.random(500) < 0.4).astype(int)
    second = first ^ (rng.random(500) < 0.2)
    table = polars.DataFrame({"agree": (first == second).astype(int), "weight": 1 / probability})
    sample = svy.Sample(table, svy.Design(wgt="weight"))
    (theirs,) = (e for e in sample.estimation.prop("agree").estimates if e.y_level == 1)
    ours = observed_agreement(first, second, sample_weight=1 / probability)
    assert ours.value == pytest.approx(theirs.est, rel=1e-12)
    # The same error: ours is in the width of its interval.
    assert (ours.high - ours.low) / 2 / 1.96 == pytest.approx(theirs.se, rel=0.1)
