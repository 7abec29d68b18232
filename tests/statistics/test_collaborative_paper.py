"""What Kivlichan et al. (2021) state or print, recomputed."""

import itertools

import numpy as np
import pytest
from brute_force import alphas, columns, rows, times
from hypothesis import given

from modwatch.statistics.collaboration import collaborative as c
from modwatch.statistics.collaboration import model_metrics
from modwatch.statistics.collaboration.model_metrics import accuracy
from modwatch.statistics.collaboration.review_strategies import review_scores


def community(accuracy, size=10_000):
    """Return labels and probabilities of a model that is as often right as told."""
    rng = np.random.default_rng(1)
    prob = rng.random(size)
    wrong = rng.permutation(size) < round((1 - accuracy) * size)
    return ((prob > 0.5) ^ wrong).astype(int), prob


@given(rows, alphas, times)
def test_equation_2_holds_with_alpha_for_masses(drawn, alpha, times):
    weight = np.array(times[: len(drawn)]) + 0.5
    gain = alpha * (
        c.review_efficiency(*columns(drawn), review_fraction=alpha, sample_weight=weight) or 0
    )
    expected = accuracy(*columns(drawn)[:2], sample_weight=weight) + gain
    assert c.oc_accuracy(
        *columns(drawn), review_fraction=alpha, sample_weight=weight
    ) == pytest.approx(expected)


@pytest.mark.parametrize("printed", [0.9231, 0.9795])  # of tables 2 and 3
def test_the_identities_of_the_appendices_hold_at_the_printed_accuracies(printed):
    label, prob = community(printed)
    assert accuracy(label, prob) == pytest.approx(printed)
    curve = c.collaboration_curve(label, prob).astype(dict.fromkeys(c.METRICS, float))
    gain = curve["alpha"] * curve["review_efficiency"]
    assert np.allclose(curve["oc_accuracy"], printed + gain)  # B: Acc + RE(α)·α
    assert np.allclose(curve["review_effectiveness"], gain / (1 - printed))  # A.2: TP/(TP+FN)
    for row in curve.itertuples():  # B: Acc(1−α)·(1−α) + α
        kept = np.argsort(review_scores(prob, row.strategy))[: round(10_000 * (1 - row.alpha))]
        rest = accuracy(label[kept], prob[kept])
        assert row.oc_accuracy == pytest.approx(rest * (1 - row.alpha) + row.alpha)


@given(rows)
def test_mean_effectiveness_over_capacities_is_the_calibration_auroc(drawn):
    label, prob, _ = columns(drawn)
    area = model_metrics.calibration_auroc(label, prob)
    if area is None:
        return
    score, n = review_scores(prob, "uncertainty"), label.size
    caught = [
        c.review_effectiveness(label, prob, score, review_fraction=k / n) for k in range(n + 1)
    ]
    errors = 1 - accuracy(label, prob)
    assert np.trapezoid(caught, dx=1 / n) == pytest.approx(errors / 2 + (1 - errors) * area)


def test_the_calibration_auprc_is_the_area_of_efficiency_over_effectiveness():
    label, prob = community(0.9, size=60)
    score = review_scores(prob, "uncertainty")
    points = [(0.0, 1.0)]
    for k in range(1, 61):
        args, at = (label, prob, score), {"review_fraction": k / 60}
        points.append((c.review_effectiveness(*args, **at), c.review_efficiency(*args, **at)))
    area = sum((right - left) * re for (left, _), (right, re) in itertools.pairwise(points))
    expected = model_metrics.calibration_auprc(label, prob, interpolation="step")
    assert area == pytest.approx(expected)
