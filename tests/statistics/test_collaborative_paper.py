"""What Kivlichan et al. (2021) state or print, recomputed."""

import numpy as np
import pytest
from brute_force import alphas, columns, rows, times
from hypothesis import given

from modwatch.statistics.collaboration import collaborative as c
from modwatch.statistics.collaboration import model_metrics
from modwatch.statistics.collaboration.model_metrics import accuracy
from modwatch.statistics.collaboration.review_strategies import review_scores


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
