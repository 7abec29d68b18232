"""Expected performance: closed forms, the truth of calibrated days, the error of others."""

import numpy as np
import pytest

from modwatch.common.errors import MetricInputError
from modwatch.statistics.collaboration import collaborative, model_metrics
from modwatch.statistics.collaboration.collaborative import review_scores
from modwatch.statistics.drift.cbpe import expected_performance
from modwatch.statistics.drift.day_comparison import Finding

NAMES = (
    "cbpe_oc_accuracy",
    "cbpe_review_efficiency",
    "cbpe_accuracy",
)


def expected(prob: np.ndarray, **options: object) -> dict[str, Finding]:
    of_score = {name: options.pop(name) for name in ("strategy",) if name in options}
    threshold = options.get("threshold", 0.5)
    score = review_scores(prob, **of_score, threshold=threshold)
    options = {"review_fraction": 0.1} | options
    found = {item.metric: item for item in expected_performance(prob, score, **options)}
    assert tuple(found) == NAMES
    return found


def true_figures(label: np.ndarray, prob: np.ndarray, threshold: float = 0.5) -> list[float]:
    """Return the same three figures from labels."""
    score = review_scores(prob, threshold=threshold)
    at = {"review_fraction": 0.1, "threshold": threshold}
    return [
        collaborative.oc_accuracy(label, prob, score, **at),
        collaborative.review_efficiency(label, prob, score, **at),
        model_metrics.accuracy(label, prob, threshold=threshold),
    ]


def test_a_calibrated_day_is_as_expected():
    """The mean over labels is the value, and the interval holds 95 % of them."""
    rng, threshold = np.random.default_rng(1), 0.3
    prob = np.round(rng.beta(0.3, 1.5, 2_000), 2)  # with ties
    found = expected(prob, threshold=threshold)
    labels = rng.random((300, prob.size)) < prob
    true = np.array([true_figures(label, prob, threshold) for label in labels])
    noise = true.std(axis=0) / np.sqrt(len(true))
    values = np.array([found[name].value for name in NAMES])
    assert (abs(true.mean(axis=0) - values) < 4 * noise).all()
    low, high = (np.array([getattr(found[name], end) for name in NAMES]) for end in ("low", "high"))
    held = ((low <= true) & (true <= high)).mean(axis=0)
    assert ((held > 0.91) & (held < 0.99)).all()  # three standard errors


def test_scores_that_say_nothing():
    found = expected(np.full(1_000, 0.3))
    assert found["cbpe_accuracy"].value == pytest.approx(0.7)
    assert found["cbpe_oc_accuracy"].value == pytest.approx(0.1 + 0.9 * 0.7)
    assert found["cbpe_review_efficiency"].value == pytest.approx(0.3)


@pytest.mark.parametrize("score", [0.0, 1.0])
def test_one_class_only(score):
    found = expected(np.full(1_000, score))
    accuracy = found["cbpe_accuracy"]
    assert (accuracy.value, accuracy.low, accuracy.high) == (1, 1, 1)
    assert found["cbpe_review_efficiency"].value == 0


@pytest.mark.parametrize("size", [0, 1, 199])
def test_too_few_comments(size):
    found = expected(np.full(size, 0.4))
    assert {match.reason for match in found.values()} == {
        f"{size} comments of the day; 200 are needed"
    }
    assert {match.value for match in found.values()} == {None}


def test_nothing_and_everything_reviewed():
    prob = np.random.default_rng(3).random(1_000)
    nothing, everything = expected(prob, review_fraction=0), expected(prob, review_fraction=1)
    assert nothing["cbpe_oc_accuracy"].value == pytest.approx(nothing["cbpe_accuracy"].value)
    efficiency = nothing["cbpe_review_efficiency"]
    assert efficiency.reason == "0 comments in its denominator; 10 are needed"
    perfect = everything["cbpe_oc_accuracy"]
    assert (perfect.value, perfect.low, perfect.high) == (1, 1, 1)


@pytest.mark.parametrize("strategy", ["uncertainty", "toxicity", "hybrid"])
def test_identity_of_the_paper(strategy):
    """OC-Acc = Acc + (k/n)·RE, Eq. 2 of Kivlichan et al. (2021)."""
    found = expected(np.random.default_rng(4).random(997), strategy=strategy)
    values = {name: item.value for name, item in found.items()}
    gain = 99 / 997 * values["cbpe_review_efficiency"]
    assert values["cbpe_oc_accuracy"] == pytest.approx(values["cbpe_accuracy"] + gain)


def test_the_order_of_the_rows_changes_no_bit():
    rng = np.random.default_rng(0)
    prob = rng.beta(0.4, 3, 999)
    findings = [
        [
            (item.value, item.low, item.high)
            for item in expected_performance(p, review_scores(p), review_fraction=0.1)
        ]
        for p in (prob, rng.permutation(prob))
    ]
    assert findings[0] == findings[1]


def test_expected_performance_of_decisions_that_contradict_the_scores():
    """Four kinds of comments, in the head: 500 each of (0.9, 0.9 unflagged, 0.1 flagged, 0.1)."""
    prob = np.repeat([0.9, 0.9, 0.1, 0.1], 500)
    flagged = np.repeat([True, False, True, False], 500)
    found = expected(prob, flagged=flagged)
    assert found["cbpe_accuracy"].value == pytest.approx(0.5)  # (0.9 + 0.1 + 0.1 + 0.9) / 4
    other = np.random.default_rng(1).permutation(prob.size)
    assert expected(prob[other], flagged=flagged[other]) == found
    with pytest.raises(MetricInputError):
        expected(prob, flagged=flagged[1:])
