import numpy as np
import pytest

from modwatch.errors import ModelError
from modwatch.models.calibration import (
    Calibration,
    best_f1_threshold,
    platt,
    prevalence_weights,
    prior_shift,
)
from modwatch.models.heads import GaussianLogit


def certain(logit: np.ndarray) -> GaussianLogit:
    return GaussianLogit(mean=logit, variance=np.zeros_like(logit), factor=0.1)


def test_platt_undoes_a_known_distortion() -> None:
    rng = np.random.default_rng(0)
    true = rng.normal(0, 2, 40_000)
    label = (rng.random(40_000) < 1 / (1 + np.exp(-true))).astype(int)
    scale, shift = platt(certain(3 * true + 1), label)
    assert scale == pytest.approx(1 / 3, rel=0.05)
    assert shift == pytest.approx(-1 / 3, abs=0.05)


def test_platt_stays_finite_on_separated_classes() -> None:
    scale, shift = platt(certain(np.array([-1.0, -1, 1, 1])), np.array([0, 0, 1, 1]))
    assert np.isfinite([scale, shift]).all()
    assert scale > 0


def test_platt_needs_both_classes() -> None:
    with pytest.raises(ModelError, match="requires both"):
        platt(certain(np.zeros(3)), np.zeros(3, dtype=int))


def test_prior_shift_keeps_calibration_at_another_prevalence() -> None:
    """Saerens et al.: draw at 50 %, correct to 2 %, and the mean probability is 2 %."""
    rng = np.random.default_rng(1)
    label = (rng.random(200_000) < 0.02).astype(int)
    score = rng.normal(2.0 * label, 1.0)  # log likelihood ratio is 2·score − 2
    calibration = Calibration(scale=1.0, shift=0.0, prior_shift=prior_shift(0.5, 0.02))
    prob = calibration(certain(2 * score - 2)).prob()
    assert prob.mean() == pytest.approx(0.02, rel=0.05)


def test_no_shift_to_the_same_prevalence() -> None:
    assert prior_shift(0.3, 0.3) == 0


def test_threshold_splits_a_separated_split() -> None:
    prob, label = np.array([0.1, 0.2, 0.6, 0.8]), np.array([0, 0, 1, 1])
    assert best_f1_threshold(prob, label, np.ones(4)) == pytest.approx(0.4)


def test_rarer_toxicity_raises_the_threshold() -> None:
    rng = np.random.default_rng(2)
    label = rng.integers(0, 2, 5_000)
    prob = 1 / (1 + np.exp(-rng.normal(2.0 * label - 1, 1.0)))
    common, rare = (
        best_f1_threshold(prob, label, prevalence_weights(label, share)) for share in (0.5, 0.02)
    )
    assert rare > common


def test_prevalence_weights_average_one_and_hit_the_prevalence() -> None:
    label = np.array([1, 0, 0, 0])
    weight = prevalence_weights(label, 0.1)
    assert weight.mean() == pytest.approx(1)
    assert np.average(label, weights=weight) == pytest.approx(0.1)
