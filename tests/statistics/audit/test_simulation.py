"""Simulated populations are what they say they are, and so is the paper's pilot design."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from modwatch.common.errors import DesignError, ModwatchError
from modwatch_lab.audit_designs import (
    PILOT_BINS,
    PILOT_LABELS,
    SCORES,
    draw_positives,
    pilot_audit,
    simulate,
)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("hidden", [0.0, 0.2])
@pytest.mark.parametrize("prevalence", [0.005, 0.08])
def test_the_unflagged_have_the_prevalence(prevalence, hidden, score):
    made = simulate(prevalence=prevalence, score=score, hidden=hidden, comments=50_000)
    assert made.unflagged.label.mean() == pytest.approx(prevalence, rel=0.02)
    assert made.flagged.label.size + made.unflagged.label.size == 50_000
    found, missed = made.flagged.label.sum(), made.unflagged.label.sum()
    assert made.recall == found / (found + missed)


@pytest.mark.parametrize("score", ["sharp", "dull"])
def test_scores_are_calibrated(score):
    made = simulate(prevalence=0.04, score=score)
    value = np.concatenate([made.flagged.score, made.unflagged.score])
    label = np.concatenate([made.flagged.label, made.unflagged.label])
    edges = np.quantile(value, np.linspace(0, 1, 21)[1:-1])
    place = np.searchsorted(edges, value)
    result, true = (np.bincount(place, weights=w) / np.bincount(place) for w in (value, label))
    assert result == pytest.approx(true, abs=0.01)


def test_a_sharp_score_ranks_better_than_a_dull_one_and_hidden_positives_cost():
    def area(**changes):
        made = simulate(**{"prevalence": 0.04, "score": "sharp", "comments": 50_000} | changes)
        return roc_auc_score(
            np.concatenate([made.flagged.label, made.unflagged.label]),
            np.concatenate([made.flagged.score, made.unflagged.score]),
        )

    # Φ(d/√2), the area of the binormal model.
    assert area() == pytest.approx(0.990, abs=0.003)
    assert area(score="dull") == pytest.approx(0.802, abs=0.01)
    assert area(score="miscalibrated") == pytest.approx(area(), abs=0.005)
    assert area(hidden=0.2) == pytest.approx(0.8 * 0.990 + 0.2 * 0.5, abs=0.02)


def test_a_miscalibrated_score_takes_too_much_for_likely():
    made = simulate(prevalence=0.01, score="miscalibrated", comments=50_000)
    assert made.unflagged.score.mean() > 3 * made.unflagged.label.mean()


def test_the_same_seed_makes_the_same_population():
    one, same, other = (
        simulate(prevalence=0.02, score="sharp", comments=5_000, seed=seed) for seed in (1, 1, 2)
    )
    assert np.array_equal(one.unflagged.score, same.unflagged.score)
    assert not np.array_equal(one.unflagged.score, other.unflagged.score)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"score": "blind"}, "Score must be one of .*got 'blind'"),
        ({"prevalence": 0.0}, "Prevalence must be in .*got 0.0"),
        ({"prevalence": 0.5}, "Prevalence must be in .*got 0.5"),
        ({"prevalence": float("nan")}, "Prevalence must be in .*got nan"),
        ({"hidden": 1.0}, "hidden in .* and 1.0"),
        ({"prevalence": 0.4}, "cannot have prevalence 0.4"),
        ({"comments": 20, "prevalence": 0.001}, "use more comments"),
    ],
)
def test_impossible_populations_are_refused(changes, message):
    wanted = {"prevalence": 0.02, "score": "sharp", "comments": 5_000} | changes
    with pytest.raises(DesignError, match=message):
        simulate(**wanted)


def test_the_recommendation_is_eight_bins_of_fifty():
    assert (PILOT_BINS, PILOT_LABELS) == (8, 50)


def test_draws_are_without_replacement():
    found = draw_positives(
        [20, 50], [5, 10], [10, 50], np.random.default_rng(0), repetitions=20_000
    )
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


@pytest.mark.simulation
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
        lambda g: draw_positives([10], [11], [5], g),
        lambda g: draw_positives([10], [5], [11], g),
        lambda g: draw_positives([10, 10], [5], [5], g),
        lambda g: draw_positives([10**9], [5], [5], g),
        lambda g: draw_positives([10], [-1], [5], g),
        lambda g: draw_positives([10], [0.5], [5], g),
        lambda g: pilot_audit([10], [11], [0.1], 5, g),
        lambda g: pilot_audit([], [], [], 5, g),
        lambda g: pilot_audit([100], [10], [0.1], 20, g),
        lambda g: pilot_audit([100], [10], [0.1, 0.2], 60, g),
    ],
)
def test_what_does_not_fit_is_refused(call):
    with pytest.raises(ModwatchError):
        call(np.random.default_rng(0))
