"""Two models on the same comments."""

import numpy as np
import pytest

from modwatch import statistics as metrics
from modwatch.statistics.collaboration.model_comparison import ScoredByModel, compare_models


def community(seed: int, n: int = 2_000):
    rng = np.random.default_rng(seed)
    latent = rng.normal(-2, 2, n)
    y = (rng.random(n) < 1 / (1 + np.exp(-latent))).astype(int)
    return rng, latent, y


def model(rng, latent, noise: float, threshold: float = 0.5) -> ScoredByModel:
    seen = latent + rng.normal(0, noise, latent.size)
    return ScoredByModel(prob=1 / (1 + np.exp(-seen)), threshold=threshold)


def compared(y, one, other, **options):
    options = {"review_fraction": 0.1, "draws": 100} | options
    return compare_models(y, one, other, **options).set_index("metric")


def test_values_are_the_plain_metrics():
    rng, latent, y = community(0)
    one, other = model(rng, latent, 1), model(rng, latent, 2, threshold=0.3)
    found = compared(y, one, other)
    score = metrics.review_scores(other.prob, "uncertainty", threshold=0.3)
    assert found.loc["oc_auroc", "challenger"] == metrics.oc_auroc(
        y, other.prob, score, review_fraction=0.1
    )
    assert found.loc["average_precision", "champion"] == metrics.auprc(
        y, one.prob, interpolation="step"
    )
    assert found.loc["calibration_auprc", "challenger"] == metrics.calibration_auprc(
        y, other.prob, threshold=0.3
    )
    assert found["difference"].tolist() == pytest.approx(
        (found["challenger"] - found["champion"]).tolist()
    )


def test_the_same_model_is_not_worse():
    rng, latent, y = community(1)
    one = model(rng, latent, 1)
    found = compared(y, one, one, margin=0)
    assert (found[["difference", "low", "high"]] == 0).all(axis=None)
    assert set(found["verdict"]) == {"not worse"}


def test_exchanged_models_have_exchanged_verdicts():
    rng, latent, y = community(2, 4_000)
    good, bad = model(rng, latent, 0.1), model(rng, latent, 4)
    there, back = compared(y, bad, good)["verdict"], compared(y, good, bad)["verdict"]
    assert set(there.drop("calibration_auprc")) == {"better"}
    assert set(back.drop("calibration_auprc")) == {"worse"}


def test_fewer_errors_are_not_held_against_a_model():
    """Chance of Calibration AUPRC is the error rate: the bad model has the higher one."""
    rng, latent, y = community(2, 4_000)
    found = compared(y, model(rng, latent, 4), model(rng, latent, 0.1))
    assert found.loc["calibration_auprc", "high"] < 0
    assert found.loc["calibration_auprc", "verdict"] == "unclear"


def test_few_comments_are_unclear_whatever_the_bare_difference():
    rng, latent, y = community(3, 60)
    found = compared(y, model(rng, latent, 1), model(rng, latent, 1))
    assert found.loc["average_precision", "verdict"] == "unclear"


def test_a_gap_between_groups_counts_against_the_challenger():
    rng, latent, y = community(4, 4_000)
    one = model(rng, latent, 0.5)
    groups = [["a"] if k % 2 else ["b"] for k in range(y.size)]
    biased = np.where(np.arange(y.size) % 2, latent + 2, latent - 1)
    other = ScoredByModel(prob=1 / (1 + np.exp(-biased)), threshold=0.5)
    found = compared(y, one, other, groups=groups)
    assert found.loc["false_positive_rate_gap", "verdict"] == "worse"
    assert found.loc["false_positive_rate_gap", "difference"] < 0


def test_small_groups_are_left_out():
    rng, latent, y = community(5)
    one = model(rng, latent, 1)
    found = compared(y, one, one, groups=[["a"]] * 40 + [[]] * (y.size - 40))
    assert "false_positive_rate_gap" not in found.index


def test_one_class_has_accuracy_only():
    one = ScoredByModel(prob=[0.1, 0.2], threshold=0.5)
    found = compare_models([0, 0], one, one, review_fraction=0.5, draws=3)
    assert found["metric"].tolist() == ["accuracy"]
