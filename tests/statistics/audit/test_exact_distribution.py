"""The distribution of an estimate, against the sums over every sample and against draws."""

import itertools

import numpy as np
import pytest
from scipy import stats

from modwatch.statistics.audit import exact_distribution
from modwatch.statistics.audit.exact_distribution import EstimateDistribution
from modwatch.statistics.audit.stratified import StratumCounts

Sizes = tuple[int, ...]


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


@pytest.mark.parametrize("combinations", [1, 12, 10_000])
@pytest.mark.parametrize(
    ("sizes", "labels", "seen"),
    [
        ((20,), (8,), (3,)),
        ((20, 20), (8, 4), (2, 1)),
        ((16, 16, 32), (8, 4, 8), (2, 1, 2)),
        ((16, 8, 8, 16, 8), (4, 4, 4, 2, 2), (0, 3, 1, 1, 0)),
        ((16, 8), (4, 4), (0, 0)),
    ],
)
def test_it_is_the_sum_over_all_samples(
    sizes: Sizes, labels: Sizes, seen: Sizes, combinations: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However cells are grouped; of weights whose sums take whole numbers of steps."""
    monkeypatch.setattr(exact_distribution, "_COMBINATIONS", combinations)
    weight = np.divide(sizes, labels)
    samples = np.array(list(itertools.product(*(range(n + 1) for n in labels))))
    values, observed = samples @ weight, float(np.dot(seen, weight))
    for part in (0, 0.25, 0.5, 1):
        truth = tuple(round(part * size) for size in sizes)
        cells = zip(samples.T, sizes, truth, labels, strict=True)
        chance = np.prod([stats.hypergeom.pmf(k, N, K, n) for k, N, K, n in cells], axis=0)
        below, above = chance[values <= observed].sum(), chance[values >= observed].sum()
        assert both_sides(sizes, labels, seen, truth) == pytest.approx((below, above), abs=1e-12)


def test_many_cells_of_many_labels_are_as_in_simulated_samples() -> None:
    """40,000 samples: an error of 0.013 is found, five standard errors."""
    generator = np.random.default_rng(3)
    sizes, labels = (200, 300, 250, 400, 500, 350), (90, 120, 60, 110, 100, 70)
    truth, seen = (20, 12, 40, 8, 60, 5), (10, 4, 11, 3, 12, 1)
    drawn = generator.hypergeometric(
        truth, np.subtract(sizes, truth), labels, size=(40_000, len(sizes))
    )
    weight = np.divide(sizes, labels)
    values, observed = drawn @ weight, float(np.dot(seen, weight))
    step = observed / 512  # to the nearest of which estimates are counted, cell by cell
    below, above = both_sides(sizes, labels, seen, truth)
    assert below == pytest.approx((values <= observed + step).mean(), abs=0.02)
    assert above == pytest.approx((values >= observed - step).mean(), abs=0.02)
    assert 0.05 < below < 0.95


def test_between_two_whole_numbers_of_positives_it_is_their_mixture() -> None:
    sizes, labels, seen = (20, 30), (8, 9), (2, 1)
    counts = StratumCounts.from_arrays(
        population=sizes, labels=labels, positives=[seen], score=[0.1, 0.1]
    ).weighted()
    distribution = EstimateDistribution(counts, np.array(sizes))
    positives = np.array([[4.0, 3.0], [5.0, 3.0], [4.25, 3.0]])
    few, many, between = distribution.probability(positives, np.zeros(3, np.int64), upper=True)
    assert between == pytest.approx(0.75 * few + 0.25 * many, abs=1e-14)
    assert few > many
