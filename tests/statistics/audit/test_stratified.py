"""Estimators against everything that could have been drawn from tiny populations."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from modwatch.statistics.audit.stratified import StratumCounts, combine


def stage(population, labels, positives):
    return StratumCounts.from_arrays(
        population=population, labels=labels, positives=positives, score=[0.1] * len(population)
    )


def samples(population, positives, labels):
    """Yield the positives of each possible sample and its probability."""
    law = [
        [(k, stats.hypergeom.pmf(k, N, K, n)) for k in range(n + 1)]
        for N, K, n in zip(population, positives, labels, strict=True)
    ]
    for found in itertools.product(*law):
        chance = math.prod(p for _, p in found)
        if chance > 0:
            yield [k for k, _ in found], chance


POPULATION, POSITIVES, LABELS = [7, 5, 3], [2, 3, 0], [3, 2, 2]
TRUTH = sum(POSITIVES) / sum(POPULATION)


def test_rate_and_variance_are_free_of_bias():
    rows = [
        (p, float(made.rate), float(made.variance))
        for k, p in samples(POPULATION, POSITIVES, LABELS)
        for made in [stage(POPULATION, LABELS, k).weighted()]
    ]
    chance, rate, variance = np.array(rows).T
    assert chance.sum() == pytest.approx(1)
    assert chance @ rate == pytest.approx(TRUTH)
    assert chance @ variance == pytest.approx(chance @ (rate - TRUTH) ** 2)


def test_a_census_has_no_variance():
    assert stage([5, 7], [5, 7], [2, 7]).weighted().variance == 0


WHOLE, KNOWN, FIRST = (8, 7), (2, 3), (2, 2)


def adaptive(most, least):
    """Yield every audit in two stages, its chance first: more labels go where more was found."""
    for one, p in samples(WHOLE, KNOWN, FIRST):
        left = [N - n for N, n in zip(WHOLE, FIRST, strict=True)]
        rest = [K - k for K, k in zip(KNOWN, one, strict=True)]
        more = (most, least) if one[0] > one[1] else (least, most)
        for two, q in samples(left, rest, more):
            yield p * q, stage(WHOLE, FIRST, one), stage(left, more, two)


class TestCombine:
    """Stages, the later of which go where the earlier found something."""

    TRUTH = sum(KNOWN) / sum(WHOLE)

    @pytest.mark.parametrize("shares", [(0.5, 0.5), (0.2, 0.8), (0.9, 0.1)])
    def test_adaptive_stages_are_free_of_bias(self, shares):
        rows = [
            (p, float(combine(stages, shares, population=WHOLE).rate))
            for p, *stages in adaptive(4, 1)
        ]
        chance, rate = np.array(rows).T
        assert chance.sum() == pytest.approx(1)
        assert chance @ rate == pytest.approx(self.TRUTH, abs=1e-12)

    def test_the_variance_is_free_of_bias(self):
        """With two labels or more in each stratum and stage: a single one tells no variance."""
        rows = [
            (p, float(made.rate), float(made.variance))
            for p, *stages in adaptive(3, 2)
            for made in [combine(stages, (0.4, 0.6), population=WHOLE)]
        ]
        chance, rate, variance = np.array(rows).T
        assert chance @ variance == pytest.approx(chance @ (rate - self.TRUTH) ** 2)

    def test_a_single_stage_is_itself(self):
        one = stage([900, 100], [30, 20], [[1, 8], [2, 3]])
        alone, made = one.weighted(), combine([one], [1.0], population=[900, 100])
        for name in ("rate", "variance", "weight", "unseen"):
            assert getattr(made, name) == pytest.approx(getattr(alone, name))

    def test_three_stages_are_the_weighted_sum_of_their_estimates(self):
        first, second = stage([50, 40], [5, 4], [1, 2]), stage([45, 36], [5, 6], [0, 3])
        third = stage([40, 30], [4, 5], [2, 2])
        known = [0, 3, 6]
        item = [
            (k + float(s.weighted().rate) * s.population.sum()) / 90
            for k, s in zip(known, (first, second, third), strict=True)
        ]
        made = combine([first, second, third], (0.2, 0.3, 0.5), population=[50, 40])
        assert made.rate == pytest.approx(np.dot((0.2, 0.3, 0.5), item))
        assert made.weight @ made.labels == pytest.approx(1)
        variance = [
            share**2 * s.weighted().variance * (s.population.sum() / 90) ** 2
            for share, s in zip((0.2, 0.3, 0.5), (first, second, third), strict=True)
        ]
        assert made.variance == pytest.approx(sum(variance))

    def test_a_stratum_labelled_whole_is_left_out_of_the_next_stage(self):
        first, second = stage([50, 4], [5, 4], [1, 2]), stage([45], [45], [3])
        made = combine([first, second], (0.5, 0.5), population=[50, 4])
        exact, guess = (1 + 2 + 3) / 54, float(first.weighted().rate)
        assert made.rate == pytest.approx((exact + guess) / 2)
