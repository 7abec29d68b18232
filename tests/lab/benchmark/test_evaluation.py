"""The figures of a run: extremes that can be done in the head, and the metrics themselves."""

import numpy as np
import pytest

from modwatch import statistics as metrics
from modwatch.statistics.collaboration.collaborative import REVIEW_FRACTIONS
from modwatch_lab.benchmark.evaluation import (
    FINDING_FRACTIONS,
    advantage,
    advantage_draws,
    curve_rows,
)


@pytest.fixture
def scored():
    rng = np.random.default_rng(3)
    prob = rng.beta(0.5, 2.0, 2_000)
    label = (rng.random(2_000) < prob).astype(np.float64)
    return label, prob, np.where(label == 1, 1.0, 4.5)


def test_curves_are_the_metrics(scored):
    label, prob, weight = scored
    rows = curve_rows(label, prob, weight)
    assert [row["alpha"] for row in rows] == list(REVIEW_FRACTIONS) * 2
    for row in rows:
        score = metrics.review_scores(prob, row["strategy"])
        direct = metrics.oc_auprc(
            label, prob, score, review_fraction=row["alpha"], sample_weight=weight
        )
        assert row["oc_auprc"] == pytest.approx(direct, abs=1e-12)


def test_undefined_metrics_are_none():
    rows = curve_rows(np.zeros(10), np.linspace(0, 0.4, 10), np.ones(10))
    assert rows[0]["oc_auroc"] is None
    assert rows[0]["review_efficiency"] is None  # nothing of 10 comments is reviewed at α = 0.001


def test_below_a_half_both_strategies_review_the_same_comments():
    rng = np.random.default_rng(0)
    prob = rng.uniform(0, 0.49, 500)
    label = (rng.random(500) < prob).astype(np.float64)
    assert advantage(label, prob, np.ones(500)).tolist() == [0.0] * len(FINDING_FRACTIONS)


def test_toxic_comments_without_errors_waste_the_reviews_by_toxicity():
    # 100 toxic comments scored 0.99 need no review; the errors are around 0.5.
    label = np.array([1.0] * 100 + [0.0] * 10 + [1.0] * 10 + [0.0] * 880)
    prob = np.array([0.99] * 100 + [0.55] * 10 + [0.45] * 10 + [0.01] * 880)
    ones = np.ones(1_000)
    gained = advantage(label, prob, ones, [0.02])
    assert gained[0] == pytest.approx(1 - metrics.auroc(label, prob), abs=1e-12)


def test_bootstrap_samples_are_paired_between_models(scored):
    label, prob, weight = scored
    draws = advantage_draws(label, prob, weight, 20)
    assert draws.shape == (20, len(FINDING_FRACTIONS))
    assert np.array_equal(draws, advantage_draws(label, prob, weight, 20))
    inner = np.quantile(draws, [0.0, 1.0], axis=0)
    value = advantage(label, prob, weight)
    assert ((inner[0] < value) & (value < inner[1])).all()
