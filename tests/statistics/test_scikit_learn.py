"""Metrics among the tools of scikit-learn: scorers."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import StratifiedKFold, cross_validate

from modwatch.statistics import (
    oc_accuracy,
    oc_auprc,
    oc_auroc,
    review_effectiveness,
    review_efficiency,
    review_scores,
)

METRICS = (oc_accuracy, oc_auprc, oc_auroc, review_effectiveness, review_efficiency)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))
Y = (X[:, 0] + RNG.normal(size=400) > 0.8).astype(int)
MODEL = LogisticRegression().fit(X, Y)
PROB = MODEL.predict_proba(X)[:, 1]


@pytest.mark.parametrize("metric", METRICS)
def test_a_metric_without_review_scores_is_a_scorer(metric):
    splits = StratifiedKFold(3)
    scorer = make_scorer(metric, response_method="predict_proba", review_fraction=0.1)
    found = cross_validate(LogisticRegression(), X, Y, cv=splits, scoring=scorer)["test_score"]
    expected = []
    for train, test in splits.split(X, Y):
        prob = LogisticRegression().fit(X[train], Y[train]).predict_proba(X[test])[:, 1]
        score = review_scores(prob, "uncertainty")
        expected.append(metric(Y[test], prob, score, review_fraction=0.1))
    assert found == pytest.approx(expected)
