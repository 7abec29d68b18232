"""Two-phase labels of one score against closed forms: a mixture of two binomial distributions.

With one score, the labels are a mixture of two binomial distributions: its moments give the
parameters (Blischke 1964), and the information of both phases adds up.
"""

import numpy as np
import pytest
from scipy import stats

from modwatch.statistics.label_truth import ErrorEvidence, GivenLabels, true_labels

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
        (chances(parameters + item, labels) - chances(parameters - item, labels)) / 2e-6
        for item in step
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


#: No error is shared, as the closed forms suppose.
ALONE = ErrorEvidence.sharing(0, 0)


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


@pytest.mark.parametrize(("single", "triple"), [(0, 4000), (4000, 800)])
def test_rates_and_their_spread_are_those_of_the_mixture(single, triple):
    counts = expected(triple, 3)
    found = true_labels(labels_of(expected(single, 1), counts), ALONE)
    drawn = np.column_stack(
        [found.prior[:, 0], found.false_positive[:, 0], found.false_negative[:, 0]]
    )
    result = single * information(np.array(TRUE), 1) + triple * information(np.array(TRUE), 3)
    error = np.sqrt(np.diag(np.linalg.inv(result)))
    assert drawn.std(axis=0) == pytest.approx(error, rel=0.15)
    assert drawn.mean(axis=0) == pytest.approx(by_moments(counts), abs=0.3 * error.max())
