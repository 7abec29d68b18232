"""Adjusted metrics: equal to plain ones without flips, and to the truth of simulated people."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss

from disagreement.people import World, world
from modwatch import metrics
from modwatch.disagreement import (
    Annotations,
    adjusted,
    adjusted_accuracy,
    adjusted_metrics,
    estimate_flip_rates,
    fixed_flip_rate,
    primary_labels,
    sample_primary_labels,
    signed_shares,
)
from modwatch.errors import MetricInputError

LABELS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 1)), min_size=2, max_size=40)


@given(
    labels=LABELS,
    prob=st.lists(st.sampled_from([0.1, 0.2, 0.5, 0.7, 0.9]), min_size=6, max_size=6),
    review_fraction=st.sampled_from([0.0, 0.3, 1.0]),
)
def test_raw_is_the_metric_of_every_annotation(
    labels: list[tuple[int, int]], prob: list[float], review_fraction: float
) -> None:
    """Against the plain functions on one row an annotation, weighted so that items count alike."""
    item = [each for each, _ in labels]
    label = [each for _, each in labels]
    annotations = Annotations.of(item=item, annotator=range(len(item)), label=label, classes=(0, 1))
    p = np.array(prob)[annotations.items]
    rows = p[annotations.item]
    weight = 1 / annotations.counts().sum(axis=1)[annotations.item]
    table = adjusted_metrics(
        annotations, p, fixed_flip_rate(annotations, 0.0), review_fraction=review_fraction
    )
    given_rows = {"y_true": label, "y_prob": rows, "sample_weight": weight}
    plain = {
        "accuracy": metrics.accuracy(**given_rows),
        "precision": metrics.precision(**given_rows),
        "recall": metrics.recall(**given_rows),
        "auroc": metrics.auroc(**given_rows),
        "average_precision": metrics.auprc(**given_rows, interpolation="step"),
    }
    if review_fraction in (0, 1):  # elsewhere ⌊αn⌋ differs from α·Σw
        score = metrics.review_scores(rows, "uncertainty")
        review = {**given_rows, "y_score": score, "review_fraction": review_fraction}
        plain |= {
            "oc_accuracy": metrics.oc_accuracy(**review),
            "oc_auroc": metrics.oc_auroc(**review),
            "oc_average_precision": metrics.oc_auprc(**review, interpolation="step"),
            "review_efficiency": metrics.review_efficiency(**review),
        }
    for name, value in plain.items():
        wanted = np.nan if value is None else value
        assert table.loc[name, "raw"] == pytest.approx(wanted, abs=1e-9, nan_ok=True), name
        assert table.loc[name, "adjusted"] == pytest.approx(wanted, abs=1e-9, nan_ok=True), name


def truth(made: World) -> dict[str, float | None]:
    score = metrics.review_scores(np.tile(made.prob, 2), "uncertainty")
    return {
        "auroc": adjusted(metrics.auroc, made.opinion, made.prob),
        "accuracy": adjusted(metrics.accuracy, made.opinion, made.prob),
        "recall": adjusted(metrics.recall, made.opinion, made.prob),
        "precision": adjusted(metrics.precision, made.opinion, made.prob),
        "average_precision": adjusted(metrics.auprc, made.opinion, made.prob, interpolation="step"),
        "oc_auroc": adjusted(
            metrics.oc_auroc,
            made.opinion,
            made.prob,
            y_score=score[: made.prob.size],
            review_fraction=0.1,
        ),
    }


@pytest.mark.simulation
@pytest.mark.parametrize(("annotators", "hard"), [(5, False), (3, False), (20, True)])
def test_planted_primary_labels_are_recovered(annotators: int, hard: bool) -> None:
    """Within 0.01 on average, where raw labels miss by more (and Eq. 2 with few annotators)."""
    columns = ["adjusted", "raw"]
    misses: dict[str, list[list[float]]] = {}
    clipped = []
    for seed in range(8):
        made = world(seed, annotators=annotators, hard=hard)
        rates = estimate_flip_rates(made.annotations, by=made.prob)
        table = adjusted_metrics(made.annotations, made.prob, rates)
        for name, value in truth(made).items():
            misses.setdefault(name, []).append((table.loc[name, columns] - value).tolist())
        share = made.annotations.counts()[:, 1] / annotators
        paper = adjusted(metrics.auroc, share, made.prob, rates.rates())
        clipped.append(float(paper or 0) - float(truth(made)["auroc"] or 0))
    for name, found in misses.items():
        ours, raw = np.mean(found, axis=0)
        assert abs(ours) < 0.01, name
        assert abs(raw) > 1.5 * abs(ours), name
    assert abs(misses["auroc"][0][1]) > 0.01
    if not hard:
        assert np.mean(clipped) < -0.05


def test_weights_are_the_expectation_of_ten_draws() -> None:
    made = world(1, items=3_000, annotators=10)
    share = made.annotations.counts()[:, 1] / 10
    exact = adjusted(metrics.auroc, share, made.prob, 0.1)
    drawn = sample_primary_labels(primary_labels(np.stack([1 - share, share], 1), 0.1), seed=2)
    sampled = metrics.auroc(drawn.ravel(), np.repeat(made.prob, 10))
    assert sampled == pytest.approx(exact, abs=0.01)


def test_a_model_that_predicts_the_majority_reaches_the_oracle() -> None:
    made = world(2, annotators=10)
    rates = estimate_flip_rates(made.annotations)
    label = (made.annotations.counts()[:, 1] >= 5).astype(float)
    table = adjusted_metrics(made.annotations, label, rates)
    assert table.loc[["accuracy", "auroc"], "normalised"].tolist() == [1.0, 1.0]
    assert table.loc["accuracy", "majority"] == 1.0
    assert table.loc["accuracy", "raw"] < table.loc["accuracy", "adjusted"] < 1
    assert table.loc["accuracy", "low"] < table.loc["accuracy", "adjusted"]
    assert table.loc["accuracy", "adjusted"] < table.loc["accuracy", "high"]


def test_three_classes() -> None:
    rng = np.random.default_rng(0)
    primary = rng.integers(0, 3, (2_000, 1)).repeat(6, axis=1)
    flipped = (primary + rng.integers(1, 3, primary.shape)) % 3
    label = np.where(rng.random(primary.shape) < 0.15, flipped, primary)
    annotations = Annotations.of(
        item=np.repeat(np.arange(2_000), 6), annotator=np.tile(np.arange(6), 2_000),
        label=label.ravel(),
    )  # fmt: skip
    decision = np.where(rng.random(2_000) < 0.7, primary[:, 0], (primary[:, 0] + 1) % 3)
    found = adjusted_accuracy(annotations, decision, fixed_flip_rate(annotations, 0.15))
    truth_of_all = (decision == primary[:, 0]).mean()
    assert found["adjusted"] == pytest.approx(truth_of_all, abs=0.01)
    assert found["raw"] < found["adjusted"] - 0.05


def test_any_metric_of_label_probability_and_weight() -> None:
    def brier(label: np.ndarray, prob: np.ndarray, sample_weight: np.ndarray) -> float:
        return float(brier_score_loss(label, prob, sample_weight=sample_weight))

    found = adjusted(brier, [0.5, 1.0], [0.5, 0.8])
    assert found == pytest.approx((0.25 + 0.04) / 2)
    assert signed_shares([1.0, 0.0], 0.0).tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("prob", "message"),
    [
        ([0.1, float("nan")], "y_prob contains NaN"),
        ([0.1, 1.1], r"y_prob contains values outside \[0, 1\]"),
        ([0.1], "y_prob has 1 values for 2 items"),
    ],
)
def test_bad_probabilities_are_named(prob: list[float], message: str) -> None:
    annotations = Annotations.of(item=[0, 1], annotator=[0, 0], label=[0, 1])
    with pytest.raises(MetricInputError, match=message):
        adjusted_metrics(annotations, prob, fixed_flip_rate(annotations, 0.0))


def test_items_without_labels_and_other_classes_are_refused() -> None:
    annotations = Annotations.of(item=[0, 1], annotator=[0, 1], label=[0, 1])
    some = annotations.of_annotators(np.array([True, False]))
    with pytest.raises(MetricInputError, match="1 items have no annotation"):
        adjusted_metrics(some, [0.1, 0.2], fixed_flip_rate(some, 0.0))
    three = Annotations.of(item=[0, 1, 2], annotator=[0, 1, 2], label=[0, 1, 2])
    with pytest.raises(MetricInputError, match="use adjusted_accuracy"):
        adjusted_metrics(three, [0.1, 0.2, 0.3], fixed_flip_rate(three, 0.0))
    with pytest.raises(MetricInputError, match="one of the 3 classes"):
        adjusted_accuracy(three, [0, 1, 9], fixed_flip_rate(three, 0.0))
