"""The default interval covers finite populations: coverage is counted, not simulated."""

import itertools

import numpy as np
import pytest
from scipy import stats

from modwatch.statistics.audit import finite_inversion as module
from modwatch.statistics.audit.estimates import AuditEstimator
from modwatch.statistics.audit.finite_inversion import (
    EstimateDistribution,
    finite_inversion,
    hypergeometric_interval,
)
from modwatch.statistics.audit.share_interval import IntervalOptions, interval
from modwatch.statistics.audit.stratified import StratumCounts

Sizes = tuple[int, ...]


def samples(labels: Sizes) -> np.ndarray:
    """Return every result (R, H) that a sample can have."""
    return np.array(list(itertools.product(*(range(n + 1) for n in labels))))


def chances(seen: np.ndarray, population: Sizes, truth: Sizes, labels: Sizes) -> np.ndarray:
    """Return the probability (R,) of each result."""
    cells = zip(seen.T, population, truth, labels, strict=True)
    return np.prod([stats.hypergeom.pmf(k, N, K, n) for k, N, K, n in cells], axis=0)


def coverage(population: Sizes, labels: Sizes, score: tuple[float, ...]) -> np.ndarray:
    """Return the exact coverage for every number of positives in every stratum."""
    seen = samples(labels)
    counts = StratumCounts.from_arrays(
        population=population, labels=labels, positives=seen, score=score
    )
    low, high = interval(counts.weighted(), IntervalOptions())
    covered = []
    for truth in itertools.product(*(range(size + 1) for size in population)):
        share = sum(truth) / sum(population)
        inside = (low <= share + 1e-9) & (share <= high + 1e-9)
        covered.append(chances(seen, population, truth, labels)[inside].sum())
    return np.array(covered)


@pytest.mark.parametrize(
    ("population", "labels"), [(100, 76), (100, 99), (30, 10), (7, 3), (60, 1)]
)
def test_of_one_stratum_it_is_never_below_its_level(population, labels):
    assert coverage((population,), (labels,), (0.5,)).min() >= 0.95


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("population", "labels", "score"),
    [
        ((20, 40), (5, 10), (0.2, 0.6)),
        ((20, 20), (20, 8), (0.2, 0.6)),
        ((10, 10, 10), (2, 4, 8), (0.05, 0.1, 0.6)),
    ],
)
def test_of_several_strata_wherever_the_positives_are(population, labels, score):
    """Every number of positives in every stratum: the score may say the opposite of the truth."""
    assert coverage(population, labels, score).min() >= 0.94


METRICS = {
    "recall": lambda tp, fp, fn, tn: tp / (tp + fn) if tp + fn else np.nan,
    "precision": lambda tp, fp, fn, tn: tp / (tp + fp),
    "accuracy": lambda tp, fp, fn, tn: (tp + tn) / (tp + fp + fn + tn),
    "specificity": lambda tp, fp, fn, tn: tn / (tn + fp) if tn + fp else np.nan,
    "prevalence_unflagged": lambda tp, fp, fn, tn: fn / (fn + tn),
    "negative_predictive_value": lambda tp, fp, fn, tn: tn / (fn + tn),
}


@pytest.mark.simulation
@pytest.mark.parametrize("metric", METRICS)
def test_what_is_reported_covers(metric):
    """An interval, or where there are few positives a bound: counted over all samples."""
    flagged, unflagged = (12, 7), (24, 12)
    results = samples((flagged[1], unflagged[1]))
    sides = [
        StratumCounts.from_arrays(
            population=[size[0]], labels=[size[1]], positives=results[:, [side]], score=[0.5]
        ).weighted()
        for side, size in enumerate((flagged, unflagged))
    ]
    sizes = flagged[0], unflagged[0]
    result = []
    for row in range(len(results)):
        one = [type(side)(**vars(side) | {"positives": side.positives[row]}) for side in sides]
        estimate = AuditEstimator(flagged=one[0], unflagged=one[1], comments=sizes).estimate(metric)
        result.append(
            (0.0 if estimate.low is None else estimate.low,
             1.0 if estimate.high is None else estimate.high)
        )  # fmt: skip
    low, high = np.array(result).T
    for tp, fn in itertools.product(range(sizes[0] + 1), range(sizes[1] + 1)):
        truth = METRICS[metric](tp, sizes[0] - tp, fn, sizes[1] - fn)
        if np.isnan(truth):
            continue
        inside = (low <= truth + 1e-9) & (truth <= high + 1e-9)
        chance = chances(results, sizes, (tp, fn), (flagged[1], unflagged[1]))
        assert chance[inside].sum() >= 0.93, (tp, fn)


@pytest.mark.parametrize("labels", [3, 25, 40])
def test_the_exact_interval_is_what_its_definition_says(labels):
    """Each share at which neither tail is too unlikely, found by trying all of them."""
    population, tail = 40, 0.025
    for seen in range(labels + 1):
        possible = [
            truth
            for truth in range(population + 1)
            if stats.hypergeom.cdf(seen, population, truth, labels) >= tail
            and stats.hypergeom.sf(seen - 1, population, truth, labels) >= tail
        ]
        ends = hypergeometric_interval(np.array(seen), labels, population)
        assert [round(population * float(end)) for end in ends] == [possible[0], possible[-1]]


def test_of_an_endless_population_it_is_clopper_and_pearsons():
    for seen in (0, 3, 50):
        ends = hypergeometric_interval(np.array(seen), 50, 10**12)
        reference = stats.binomtest(seen, 50).proportion_ci(method="exact")
        assert [float(end) for end in ends] == pytest.approx([reference.low, reference.high])


def test_a_tail_of_0_leaves_everything_that_the_labels_allow():
    low, high = hypergeometric_interval(np.array(3), 10, 100, (0.0, 0.0))
    assert (float(low), float(high)) == (0.03, 0.93)
    counts = StratumCounts.from_arrays(
        population=[20, 20], labels=[10, 10], positives=[1, 2], score=[0.1, 0.2]
    )
    ends = finite_inversion(counts.weighted(), tails=(0.0, 0.0))
    assert [float(end) for end in ends] == pytest.approx([3 / 40, 23 / 40])


def test_many_samples_at_once_give_what_each_gives_alone():
    generator = np.random.default_rng(1)
    labels = [30, 40, 20]
    seen = generator.binomial(labels, [0.1, 0.3, 0.8], size=(250, 3))
    counts = StratumCounts.from_arrays(
        population=[90, 80, 60], labels=labels, positives=seen, score=[0.1, 0.3, 0.8]
    ).weighted()
    together = finite_inversion(counts)
    for row in (0, 99, 100, 249):
        one = type(counts)(**vars(counts) | {"positives": counts.positives[row]})
        alone = finite_inversion(one)
        assert [float(end[row]) for end in together] == pytest.approx([float(e) for e in alone])


def both_sides(sizes: Sizes, labels: Sizes, seen: Sizes, truth: Sizes) -> tuple[float, float]:
    """Return the probability of an estimate no larger, and no smaller, than of `seen`."""
    counts = StratumCounts.from_arrays(
        population=sizes, labels=labels, positives=[seen], score=[0.1] * len(sizes)
    ).weighted()
    distribution = EstimateDistribution(counts, np.array(sizes))
    positives, sample = np.array([truth], dtype=np.float64), np.array([0])
    below, above = (
        distribution.probability(positives, sample, upper=upper) for upper in (True, False)
    )
    return float(below[0]), float(above[0])


@pytest.mark.parametrize("combinations", [1, 10_000])
@pytest.mark.parametrize(
    ("sizes", "labels", "seen"),
    [
        ((20,), (8,), (3,)),
        ((16, 16, 32), (8, 4, 8), (2, 1, 2)),
        ((16, 8, 8, 16, 8), (4, 4, 4, 2, 2), (0, 3, 1, 1, 0)),
        ((16, 8), (4, 4), (0, 0)),
    ],
)
def test_the_distribution_is_the_sum_over_all_samples(
    sizes, labels, seen, combinations, monkeypatch
):
    """However cells are grouped; of weights whose sums take whole numbers of steps."""
    monkeypatch.setattr(module, "_COMBINATIONS", combinations)
    weight = np.divide(sizes, labels)
    samples = np.array(list(itertools.product(*(range(n + 1) for n in labels))))
    values, observed = samples @ weight, float(np.dot(seen, weight))
    for part in (0, 0.25, 0.5, 1):
        truth = tuple(round(part * size) for size in sizes)
        cells = zip(samples.T, sizes, truth, labels, strict=True)
        chance = np.prod([stats.hypergeom.pmf(k, N, K, n) for k, N, K, n in cells], axis=0)
        below, above = chance[values <= observed].sum(), chance[values >= observed].sum()
        assert both_sides(sizes, labels, seen, truth) == pytest.approx((below, above), abs=1e-12)


def test_between_two_whole_numbers_of_positives_it_is_their_mixture():
    sizes, labels, seen = (20, 30), (8, 9), (2, 1)
    counts = StratumCounts.from_arrays(
        population=sizes, labels=labels, positives=[seen], score=[0.1, 0.1]
    ).weighted()
    distribution = EstimateDistribution(counts, np.array(sizes))
    positives = np.array([[4.0, 3.0], [5.0, 3.0], [4.25, 3.0]])
    few, many, between = distribution.probability(positives, np.zeros(3, np.int64), upper=True)
    assert between == pytest.approx(0.75 * few + 0.25 * many, abs=1e-14)
    assert few > many
