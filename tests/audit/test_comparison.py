"""The paper's own audit, as the one to compare with."""

import numpy as np
import pytest

from modwatch.audit.comparison import PILOT_BINS, PILOT_LABELS, draw, pilot_audit
from modwatch.errors import ModwatchError


def test_the_recommendation_is_eight_bins_of_fifty():
    assert (PILOT_BINS, PILOT_LABELS) == (8, 50)


def test_draws_are_without_replacement():
    found = draw([20, 50], [5, 10], [10, 50], np.random.default_rng(0), repetitions=20_000)
    assert found.shape == (20_000, 2)
    assert (found[:, 1] == 10).all()
    assert found[:, 0].max() == 5
    assert found[:, 0].mean() == pytest.approx(2.5, abs=0.03)
    assert found[:, 0].var() == pytest.approx(10 * 0.25 * 0.75 * 10 / 19, rel=0.05)


def test_the_pilot_is_part_of_the_audit():
    made = pilot_audit([1_000] * 8, [0] * 7 + [500], [0.1] * 8, 600, np.random.default_rng(0))
    assert made.labels.sum() == 600
    assert made.labels.min() >= PILOT_LABELS
    assert made.labels[-1] == made.labels.max()
    assert (made.positives[:-1] == 0).all()


def test_pooling_a_pilot_misses_positives():
    """Rare positives in half of the strata: where the pilot missed them fewer labels go."""
    generator = np.random.default_rng(1)
    positives = [100, 100, 100, 100, 2_000, 4_000, 10_000, 15_000]
    truth = sum(positives) / 400_000
    shares = [
        float(pilot_audit([50_000] * 8, positives, [0.1] * 8, 1_000, generator).rate())
        for _ in range(4_000)
    ]
    assert np.mean(shares) < truth - 4 * np.std(shares) / np.sqrt(4_000)


@pytest.mark.parametrize(
    "call",
    [
        lambda g: draw([10], [11], [5], g),
        lambda g: draw([10], [5], [11], g),
        lambda g: draw([10, 10], [5], [5], g),
        lambda g: draw([10**9], [5], [5], g),
        lambda g: draw([10], [-1], [5], g),
        lambda g: draw([10], [0.5], [5], g),
        lambda g: pilot_audit([10], [11], [0.1], 5, g),
        lambda g: pilot_audit([], [], [], 5, g),
        lambda g: pilot_audit([100], [10], [0.1], 20, g),
        lambda g: pilot_audit([100], [10], [0.1, 0.2], 60, g),
    ],
)
def test_what_does_not_fit_is_refused(call):
    with pytest.raises(ModwatchError):
        call(np.random.default_rng(0))
