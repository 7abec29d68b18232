"""Effect sizes: closed forms, properties, and that the size of a sample does not make them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from modwatch.statistics.drift.distance import (
    SMOOTHING,
    Effect,
    jensen_shannon,
    population_stability_index,
    share,
    share_change,
)

MANY = 10**10  # so many that chance adds nothing
WIDTH = 1 / 1000

histograms = st.lists(st.integers(0, 1000), min_size=4, max_size=4).filter(any)


def test_psi_of_two_points():
    even, odd = (0.99 * share + SMOOTHING / 2 for share in (0.9, 0.1))
    expected = (even - 0.5) * math.log(even / 0.5) + (odd - 0.5) * math.log(odd / 0.5)
    assert population_stability_index([9 * MANY, MANY], [MANY, MANY]).value == pytest.approx(
        expected
    )


def test_jensen_shannon_of_three_points():
    half = jensen_shannon([MANY, MANY, 0], [0, MANY, MANY])
    assert half.value == pytest.approx(0.5)
    assert jensen_shannon([3, 0], [0, 9]).value == pytest.approx(1)


@given(histograms, histograms)
def test_bounds_and_symmetry(day, before):
    for effect, upper in ((population_stability_index, math.inf), (jensen_shannon, 1)):
        found, back = effect(day, before), effect(before, day)
        assert 0 <= found.low <= found.value <= found.high <= upper
        assert (found.value, found.low, found.high) == pytest.approx(
            (back.value, back.low, back.high)
        )


@given(histograms, st.integers(1, 100))
def test_the_same_shares_are_no_distance(day, times):
    more = [times * count for count in day]
    for effect in (
        population_stability_index(day, more),
        jensen_shannon(day, more),
    ):
        assert effect.value == pytest.approx(0, abs=1e-12)
        assert effect.low <= 0 <= effect.high + 1e-12


def population(mean: float) -> np.ndarray:
    """Return the shares (1000,) of a crowd of scores near 0, as of toxicity."""
    return np.diff(stats.beta.cdf(np.linspace(0, 1, 1001), 6 * mean / (1 - mean), 6))


USUAL, SHIFTED = population(0.1), population(0.13)


def quantile_group(reference: np.ndarray) -> np.ndarray:
    """Return the decile (1000,) of each bin."""
    rank = (np.cumsum(reference) - reference / 2) / reference.sum()
    return np.minimum((10 * rank).astype(int), 9)


def effects(day: np.ndarray, before: np.ndarray) -> list[Effect]:
    deciles = quantile_group(before)
    ten = [np.bincount(deciles, side, 10) for side in (day, before)]
    return [
        population_stability_index(*ten),
        jensen_shannon(*ten),
    ]


def simulated(day: np.ndarray, n: int, m: int, *, runs: int = 100) -> np.ndarray:
    """Return value, low and high (runs, 2, 3) of the effects of samples of n and m."""
    rng = np.random.default_rng(n)
    samples = ((rng.multinomial(n, day), rng.multinomial(m, USUAL)) for _ in range(runs))
    return np.array([[(e.value, e.low, e.high) for e in effects(*pair)] for pair in samples])


def truth(day: np.ndarray) -> np.ndarray:
    exact = effects(np.rint(MANY * day), np.rint(MANY * USUAL))
    return np.array([effect.value for effect in exact])


@pytest.mark.parametrize(("n", "m"), [(500, 7_000), (500_000, 7_000_000)])
def test_one_population_shows_next_to_nothing_at_any_size(n, m):
    runs = simulated(USUAL, n, m)
    psi, shannon = runs[:, :, 0].mean(axis=0)
    chance = 9 * (1 / n + 1 / m)  # what a plain PSI would show on average
    assert psi < 0.25 * chance
    assert psi < 0.01
    assert shannon < 0.002
    told_apart = (runs[:, :, 1] > 0).mean(axis=0)
    assert (told_apart <= 0.05).all()


@pytest.mark.parametrize(("day", "n"), [(USUAL, 200), (SHIFTED, 1_000)], ids=["usual", "shifted"])
def test_intervals_hold(day, n):
    runs, expected = simulated(day, n, 5 * n), truth(day)
    held = (runs[:, :, 1] <= expected + 1e-9) & (expected - 1e-9 <= runs[:, :, 2])
    assert (held.mean(axis=0) >= 0.91).all()  # 95 % less two standard errors


@pytest.mark.parametrize(
    ("counts", "bounds"), [((56, 70, 48, 80), (0.0524, 0.3339)), ((9, 10, 3, 10), (0.1705, 0.8090))]
)
def test_change_of_a_share_as_published(counts, bounds):
    """Newcombe (1998), table II, method 10."""
    change = share_change(*counts)
    assert (change.low, change.high) == pytest.approx(bounds, abs=5e-5)


@given(st.integers(0, 300), st.integers(1, 300))
def test_share_has_wilsons_interval(part, more):
    whole = part + more
    wilson = stats.binomtest(part, whole).proportion_ci(method="wilson")
    found = share(part, whole)
    assert (found.low, found.high) == pytest.approx((wilson.low, wilson.high), abs=1e-9)
    assert found.low <= found.value <= found.high


@pytest.mark.parametrize("part", [0, 5])
def test_an_equal_share_has_not_changed(part):
    change = share_change(part, 10, part, 10)
    assert change.value == 0
