"""Two-phase labels of one score against closed forms: a mixture of two binomial distributions.

With one score, the labels are a mixture of two binomial distributions: its moments give the
parameters (Blischke 1964), and the information of both phases adds up.
"""

import numpy as np
import pytest
from scipy import stats

from modwatch.statistics.label_truth import ErrorEvidence, GivenLabels, TrueLabels, true_labels
from modwatch.statistics.live.estimator import Estimator
from modwatch.statistics.live.labelled_day import Confirmations, LabelledDay
from modwatch.statistics.live.sample import Sample

#: Share of toxic comments, false-positive rate, false-negative rate.
TRUE = (0.3, 0.05, 0.15)

#: Comments of a day, and labels of its slice.
COMMENTS, LABELS = 200_000, 4000

WIDTH = 2 * stats.norm.ppf(0.975)


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


def slice_of(first, further):
    """Return a day of one score: first labels (n,) of its slice, `further` row and label."""
    size = first.size
    stratum, label = np.full(COMMENTS, -1), np.zeros(COMMENTS, np.int64)
    stratum[:size], label[:size] = 1, first
    return LabelledDay(
        prob=np.full(COMMENTS, 0.3),
        stratum=stratum,
        label=label,
        labelled=stratum >= 0,
        population=np.array([0, COMMENTS]),
        sample=np.array([0, size]),
        confirmations=Confirmations(row=further[0], label=further[1]),
    )


def double_sample(parameters, confirmed):
    """Return first and true labels (n,), and which (n,) are confirmed, by first label."""
    prevalence, up, down = parameters
    truth = np.arange(LABELS) < round(LABELS * prevalence)
    place = np.where(truth, np.cumsum(truth), np.cumsum(~truth)) - 1
    first = truth ^ (place < np.where(truth, down * truth.sum(), up * (~truth).sum()))
    chosen = np.zeros(LABELS, bool)
    for label in (False, True):
        for true in (False, True):
            rows = np.flatnonzero((first == label) & (truth == true))
            chosen[rows[: round(confirmed[int(label)] * rows.size)]] = True
    return first.astype(np.int64), truth.astype(np.int64), chosen


def labels_of_first_phase(first, truth, chosen):
    """Return the true labels: those confirmed are known, others are like them by first label."""
    generator = np.random.default_rng(0)
    draws = []
    for label in (0, 1):
        toxic, size = truth[chosen & (first == label)].sum(), (chosen & (first == label)).sum()
        draws.append(generator.beta(toxic + 1e-9, size - toxic + 1e-9, 1000))
    prob = np.column_stack([np.zeros(1000), np.ones(1000), *draws])
    return TrueLabels(
        cell=np.where(chosen, truth, 2 + first),
        group=np.zeros(first.size, np.int64),
        labelled=np.ones(first.size, np.bool_),
        prior=prob,
        prob=prob,
        false_positive=np.zeros((1000, 1)),
        false_negative=np.zeros((1000, 1)),
    )


def by_cochran(first, truth, chosen):
    """Return the share of double sampling for stratification, and its error (Cochran, 12.2)."""
    parts = [(first == label) for label in (0, 1)]
    weight = np.array([part.mean() for part in parts])
    share = np.array([truth[part & chosen].mean() for part in parts])
    taken = np.array([chosen[part].mean() for part in parts])
    whole = weight @ share
    first_phase = whole * (1 - whole) * (1 / LABELS - 1 / COMMENTS)
    second_phase = (weight * share * (1 - share) * (1 / taken - 1)).sum() / LABELS
    return whole, np.sqrt(first_phase + second_phase)


#: As routed: all toxic labels of the slice are confirmed, and few others.
CONFIRMED = (0.05, 1.0)


@pytest.mark.parametrize("parameters", [(0.05, 0.02, 0.2), (0.2, 0.05, 0.3), (0.4, 0.05, 0.1)])
def test_the_error_of_a_double_sample_is_that_of_cochran(parameters):
    first, truth, chosen = double_sample(parameters, CONFIRMED)
    further = np.flatnonzero(chosen)
    sample = Sample([slice_of(first, (further, truth[further]))])
    labels = labels_of_first_phase(first, truth, chosen)
    estimates = Estimator(sample, threshold=0.5, seed=0, labels=labels).of_the_model()
    ours = next(estimate for estimate in estimates if estimate.metric == "prevalence")
    value, error = by_cochran(first, truth, chosen)
    assert ours.value == pytest.approx(value, abs=0.15 * error)
    assert (ours.high - ours.low) / WIDTH == pytest.approx(error, rel=0.06)
