"""Calibration: distortions undone, order kept, the choice honest."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit

from modwatch.common.errors import ModelError
from modwatch.models.calibration import (
    METHODS,
    Calibration,
    best_f1_threshold,
    choose_calibration,
    fit_calibration,
    prevalence_weights,
    prior_shift,
)


def drawn(rng: np.random.Generator, prob: np.ndarray) -> np.ndarray:
    return (rng.random(prob.size) < prob).astype(np.int64)


def test_platt_undoes_a_known_distortion():
    rng = np.random.default_rng(0)
    true = rng.normal(0, 2, 40_000)
    made = fit_calibration(expit(3 * true + 1), drawn(rng, expit(true)), "platt")
    assert made.parameters[0] == pytest.approx(1 / 3, rel=0.05)
    assert made.parameters[1] == pytest.approx(-1 / 3, abs=0.05)


def test_isotonic_follows_any_increasing_shape():
    rng = np.random.default_rng(0)
    prob = rng.random(60_000)
    true = np.where(prob < 0.5, 0.1 + 0.2 * prob, 0.4 + 0.5 * prob)
    made = fit_calibration(prob, drawn(rng, true), "isotonic")
    inside = (np.abs(prob - 0.5) > 0.02) & (prob > 0.02) & (prob < 0.98)
    assert np.abs(made(prob) - true)[inside].max() < 0.05


@pytest.mark.parametrize("method", METHODS)
@given(seed=st.integers(0, 1_000), size=st.integers(4, 60))
def test_the_order_of_comments_stays(method, seed, size):
    rng = np.random.default_rng(seed)
    prob = rng.random(size)
    label = np.arange(size) % 2
    fitted = fit_calibration(prob, label, method)
    made = replace(fitted, prior_shift=prior_shift(0.5, 0.1))
    grid = np.linspace(0.001, 0.999, 500)
    assert (np.diff(made(grid)) >= 0).all()
    assert ((made(grid) >= 0) & (made(grid) <= 1)).all()
    if method != "isotonic":
        apart = made(grid) < 1 - 1e-9  # nearer to 1, floats run out
        assert (np.diff(made(grid)[apart]) > 0).all()


def test_isotonic_makes_no_ties_of_what_was_none():
    rng = np.random.default_rng(3)
    prob = rng.random(2_000)
    made = fit_calibration(prob, drawn(rng, prob**2), "isotonic")
    assert np.unique(made(prob)).size > 0.99 * prob.size


@pytest.mark.parametrize("method", METHODS)
def test_separated_classes_stay_finite(method):
    prob, label = expit(np.array([-40.0, -1, 1, 40])), np.array([0, 0, 1, 1])
    made = fit_calibration(prob, label, method)
    assert np.isfinite(made(np.array([0.0, 0.5, 1.0]))).all()


def test_both_classes_are_required():
    with pytest.raises(ModelError, match="requires both"):
        fit_calibration(np.full(3, 0.5), np.zeros(3, dtype=int), "platt")
    with pytest.raises(ModelError, match="two of each"):
        choose_calibration(np.full(3, 0.5), np.array([0, 0, 1]), seed=0)


def test_a_calibrated_model_is_left_alone():
    rng = np.random.default_rng(4)
    prob = expit(rng.normal(-2, 2, 5_000))
    choice = choose_calibration(prob, drawn(rng, prob), seed=0)
    assert choice.calibration.method == "none"
    assert set(choice.log_loss) == set(METHODS)


def test_the_choice_undoes_over_confidence_with_few_parameters():
    rng = np.random.default_rng(5)
    true = rng.normal(-1, 2, 5_000)
    choice = choose_calibration(expit(3 * true), drawn(rng, expit(true)), seed=0)
    assert choice.calibration.method == "platt"
    assert choice.log_loss["platt"] < choice.log_loss["none"]


def test_the_choice_does_not_flatter_isotonic_regression():
    """Fitted and measured on the same few comments, isotonic regression would always win."""
    chosen = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        true = rng.normal(0, 1.5, 150)
        chosen.append(choose_calibration(expit(2 * true), drawn(rng, expit(true)), seed=0))
    assert sum(item.calibration.method == "isotonic" for item in chosen) == 0


def test_out_of_fold_probabilities_are_not_the_fitted_ones():
    rng = np.random.default_rng(6)
    prob = rng.random(200)
    choice = choose_calibration(prob, drawn(rng, prob), seed=0, methods=["isotonic"])
    assert not np.allclose(choice.prob, choice.calibration(prob))


def test_prior_shift_keeps_calibration_at_another_prevalence():
    """Saerens et al.: draw at 50 %, correct to 2 %, and the mean probability is 2 %."""
    rng = np.random.default_rng(1)
    label = (rng.random(200_000) < 0.02).astype(int)
    score = rng.normal(2.0 * label, 1.0)  # log likelihood ratio is 2·score − 2
    calibration = Calibration(method="none", prior_shift=prior_shift(0.5, 0.02))
    assert calibration(expit(2 * score - 2)).mean() == pytest.approx(0.02, rel=0.05)


def test_no_shift_to_the_same_prevalence():
    assert prior_shift(0.3, 0.3) == 0
    prob = np.array([0.0, 0.2, 1.0])
    assert Calibration(method="none")(prob).tolist() == prob.tolist()


def test_any_shape_is_calibrated_one_by_one():
    made = Calibration(method="platt", parameters=(2.0, 0.5))
    prob = np.array([[0.1, 0.2], [0.3, 0.9]])
    expected = expit(2 * logit(prob) + 0.5)
    assert made(prob) == pytest.approx(expected)
    assert logit(made(prob)).shape == (2, 2)


def test_threshold_splits_a_separated_split():
    prob, label = np.array([0.1, 0.2, 0.6, 0.8]), np.array([0, 0, 1, 1])
    assert best_f1_threshold(prob, label, np.ones(4)) == pytest.approx(0.4)


def test_rarer_toxicity_raises_the_threshold():
    rng = np.random.default_rng(2)
    label = rng.integers(0, 2, 5_000)
    prob = expit(rng.normal(2.0 * label - 1, 1.0))
    common, rare = (
        best_f1_threshold(prob, label, prevalence_weights(label, share)) for share in (0.5, 0.02)
    )
    assert rare > common


def test_prevalence_weights_average_one_and_hit_the_prevalence():
    label = np.array([1, 0, 0, 0])
    weight = prevalence_weights(label, 0.1)
    assert weight.mean() == pytest.approx(1)
    assert np.average(label, weights=weight) == pytest.approx(0.1)
