"""Metrics among the tools of scikit-learn: scorers and displays."""

import sys

import numpy as np
import pytest
from matplotlib import pyplot as plt
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import StratifiedKFold, cross_validate

from modwatch.common.errors import MetricInputError
from modwatch.statistics import (
    REVIEW_FRACTIONS,
    CollaborationCurveDisplay,
    accuracy,
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


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


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


def test_a_collaboration_curve_is_drawn_from_an_estimator_and_from_predictions():
    one = CollaborationCurveDisplay.from_estimator(MODEL, X, Y, metric="oc_auroc")
    two = CollaborationCurveDisplay.from_predictions(
        Y, PROB, metric="oc_auroc", name="again", ax=one.ax_, curve_kwargs={"linestyle": ":"}
    )
    expected = [oc_auroc(Y, PROB, review_fraction=alpha) for alpha in REVIEW_FRACTIONS]
    for shown in (one, two):
        assert shown.line_.get_ydata().tolist() == shown.y.tolist() == expected
        assert shown.line_.get_xdata().tolist() == list(REVIEW_FRACTIONS)
    assert two.figure_ is one.figure_ is one.ax_.figure
    assert two.line_.get_linestyle() == ":"
    assert one.ax_.get_ylabel() == "oc auroc"
    legend = [text.get_text() for text in one.ax_.get_legend().get_texts()]
    assert legend == ["LogisticRegression", "again"]
    assert one.plot().ax_ is not two.ax_


def test_a_collaboration_curve_takes_the_arguments_of_its_metric():
    score = review_scores(PROB, "toxicity")
    given = {"threshold": 0.2, "sample_weight": np.arange(1, 401)}
    shown = CollaborationCurveDisplay.from_predictions(
        Y, PROB, score, metric="review_efficiency", review_fractions=[0, 0.3], **given
    )
    assert np.isnan(shown.y[0])
    assert shown.y[1] == review_efficiency(Y, PROB, score, review_fraction=0.3, **given)
    with pytest.raises(MetricInputError, match="metric must be one of"):
        CollaborationCurveDisplay.from_predictions(Y, PROB, metric="auroc")


def test_the_positive_class_of_an_estimator_is_named():
    names = np.where(Y == 1, "Toxic", "non-toxic")  # "Toxic" comes first
    named = LogisticRegression().fit(X, names)
    shown = CollaborationCurveDisplay.from_estimator(
        named, X, names, pos_label="Toxic", review_fractions=[0]
    )
    assert shown.y.tolist() == [accuracy(Y, PROB)]
    with pytest.raises(MetricInputError, match="1 is no class of the estimator"):
        CollaborationCurveDisplay.from_estimator(named, X, names)


def test_without_matplotlib_the_error_is_that_of_scikit_learn(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"CollaborationCurveDisplay\.plot requires matplotlib"):
        CollaborationCurveDisplay.from_predictions(Y, PROB)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        CollaborationCurveDisplay([0, 1], [0, 1]).plot()
