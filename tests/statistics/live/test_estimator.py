"""Estimates of one sample under errors of the annotators, against draws of the true labels."""

import numpy as np
import pytest

from modwatch.statistics.label_truth import TrueLabels
from modwatch.statistics.live.estimator import Estimator
from modwatch.statistics.live.labelled_day import fully_labelled
from modwatch.statistics.live.sample import Sample

COMMENTS, DRAWS = 2000, 2000


@pytest.fixture(scope="module")
def sample():
    """A day on which everything is labelled, half of it flagged."""
    prob = np.repeat([0.2, 0.8], COMMENTS // 2)
    return Sample([fully_labelled((prob > 0.5).astype(int), prob)])


@pytest.fixture(scope="module")
def labels():
    """Error rates that are unknown in common: both halves are more toxic, or both are less."""
    common = np.random.default_rng(7).normal(0, 0.3, DRAWS)
    chance = 1 / (1 + np.exp(-(np.array([-1.0, 1.0]) + common[:, None])))
    return TrueLabels(
        cell=np.repeat([0, 1], COMMENTS // 2),
        group=np.zeros(COMMENTS, np.int64),
        labelled=np.ones(COMMENTS, bool),
        prior=chance,
        prob=chance,
        false_positive=np.full((DRAWS, 1), 0.05),
        false_negative=np.full((DRAWS, 1), 0.1),
        climbs=np.zeros((2, DRAWS, 1)),
    )


def drawn(labels: TrueLabels) -> dict[str, np.ndarray]:
    """Return draws of the metrics, each from true labels of every comment."""
    toxic = np.random.default_rng(1).binomial(COMMENTS // 2, labels.prob)  # (d, 2)
    quiet, flagged = toxic.T
    return {
        "prevalence": toxic.sum(axis=1) / COMMENTS,
        "precision_flagged": flagged / (COMMENTS // 2),
        "recall_flagged": flagged / (quiet + flagged),
        "accuracy": (flagged + COMMENTS // 2 - quiet) / COMMENTS,
    }


@pytest.mark.parametrize(
    "metric", ["prevalence", "precision_flagged", "recall_flagged", "accuracy"]
)
def test_the_interval_is_that_of_draws_of_the_true_labels(sample, labels, metric):
    estimates = Estimator(sample, threshold=0.5, seed=0, labels=labels).of_the_model()
    found = next(estimate for estimate in estimates if estimate.metric == metric)
    draws = drawn(labels)[metric]
    low, high = np.quantile(draws, [0.025, 0.975])
    assert found.value == pytest.approx(draws.mean(), abs=0.01)
    assert found.high - found.low == pytest.approx(high - low, rel=0.1)
