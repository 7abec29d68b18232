"""Many categories, and few rows: samples of one population are alike, and a shift is found."""

import numpy as np
import pytest

from modwatch.data.validation.profiles import trailing_findings
from modwatch.statistics.drift.day_comparison import OTHERS
from modwatch.statistics.drift.distance import Effect, jensen_shannon, population_stability_index
from modwatch.statistics.drift.profile import Profile

DIVERGENCES = (population_stability_index, jensen_shannon)
RUNS = 100


def shares(tail: str, categories: int) -> np.ndarray:
    """Return shares (categories,) with a tail of this shape."""
    rank = np.arange(1, categories + 1)
    huge = np.where(rank == 1, 0.9, 0.1 / categories)
    made = {"zipf": rank**-1.1, "uniform": rank**0.0, "geometric": 0.9**rank + 1e-9, "huge": huge}
    return made[tail] / made[tail].sum()


def found(
    day: np.ndarray, before: np.ndarray, n: int, m: int, *, runs: int = RUNS
) -> list[list[Effect]]:
    """Return PSI and Jensen–Shannon of pairs of samples."""
    rng = np.random.default_rng(n + m)
    pairs = [(rng.multinomial(n, day), rng.multinomial(m, before)) for _ in range(runs)]
    return [[effect(*pair) for pair in pairs] for effect in DIVERGENCES]


@pytest.mark.parametrize(
    ("tail", "categories", "n", "m"),
    [
        ("zipf", 100, 220, 3_080),  # a hundred languages of a small platform
        ("zipf", 2, 20, 20),
        ("uniform", 1_000, 2_000, 2_000),
        ("geometric", 300, 10_000, 140_000),
        ("huge", 300, 20, 280),
    ],
)
def test_samples_of_one_population_are_alike(tail, categories, n, m):
    mix = shares(tail, categories)
    for effects in found(mix, mix, n, m):
        # At most 7 %, and two standard errors of the simulation.
        assert np.mean([effect.low > 0 for effect in effects]) <= 0.1
        assert all(effect.low <= effect.value <= effect.high for effect in effects)


@pytest.mark.parametrize(("categories", "n"), [(100, 220), (300, 2_000)])
def test_a_fifth_that_moves_between_two_languages_is_found(categories, n):
    usual = shares("zipf", categories)
    moved = usual.copy()
    moved[:2] += np.array([-1, 1]) * min(0.2, 0.8 * usual[0])
    for effects in found(moved, usual, n, 14 * n, runs=50):
        assert np.mean([effect.low > 0 for effect in effects]) >= 0.9


@pytest.mark.parametrize(("categories", "n"), [(2, 5), (10, 20), (100, 2_000)])
def test_intervals_of_few_rows_hold(categories, n):
    usual = shares("zipf", categories)
    moved = usual[::-1] / 3 + 2 * usual / 3
    for effect, effects in zip(DIVERGENCES, found(moved, usual, n, 14 * n), strict=True):
        truth = effect(np.rint(1e12 * moved), np.rint(1e12 * usual)).value
        assert np.mean([one.low <= truth <= one.high for one in effects]) >= 0.87


def test_three_against_three_may_be_chance():
    assert jensen_shannon([3, 0], [0, 3]).low == 0
    assert jensen_shannon([30, 0], [0, 30]).low > 0.3


def profile(counts: np.ndarray, most: int) -> Profile:
    """Return the profile of a day of languages, all but the `most` frequent as one."""
    ordered = sorted(enumerate(counts.tolist()), key=lambda item: -item[1])
    mix = {f"language {name}": count for name, count in ordered[:most] if count}
    if rest := sum(count for _, count in ordered[most:]):
        mix[OTHERS] = rest
    return Profile(comments=int(counts.sum()), categories={"language": mix})


def test_a_new_language_is_found_among_languages_that_are_not_named():
    rng = np.random.default_rng(0)
    usual = shares("zipf", 60)
    days = [profile(rng.multinomial(2_000, np.append(usual, 0)), 20) for _ in range(14)]
    today = profile(rng.multinomial(2_000, np.append(0.8 * usual, 0.2)), 20)
    assert trailing_findings(today, days)["jensen_shannon", "language"].low > 0
