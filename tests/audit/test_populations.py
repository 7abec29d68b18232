"""Made-up populations are what they say they are."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from modwatch.audit.populations import SCORES, simulate
from modwatch.errors import DesignError


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
    told, true = (np.bincount(place, weights=w) / np.bincount(place) for w in (value, label))
    assert told == pytest.approx(true, abs=0.01)


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
        ({"score": "blind"}, "the score is 'blind'"),
        ({"prevalence": 0.0}, "the prevalence is 0.0"),
        ({"prevalence": 0.5}, "the prevalence is 0.5"),
        ({"prevalence": float("nan")}, "the prevalence is nan"),
        ({"hidden": 1.0}, "the hidden part 1.0"),
        ({"prevalence": 0.4}, "leave no prevalence of 0.4"),
        ({"comments": 20, "prevalence": 0.001}, "make more comments"),
    ],
)
def test_impossible_populations_are_refused(changes, message):
    wanted = {"prevalence": 0.02, "score": "sharp", "comments": 5_000} | changes
    with pytest.raises(DesignError, match=message):
        simulate(**wanted)
