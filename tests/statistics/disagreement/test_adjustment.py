"""Adjusted metrics: equal to plain ones without flips, and to the truth of simulated people."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from disagreeing_people import World, world
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import (
    average_precision_score,
    brier_score_loss,
    f1_score,
    log_loss,
    precision_score,
    recall_score,
    roc_auc_score,
)

from modwatch import statistics as metrics
from modwatch.common.errors import MetricInputError
from modwatch.statistics.disagreement import (
    Annotations,
    adjusted,
    adjusted_metrics,
    agreement_with_people,
    estimate_flip_rates,
    fixed_flip_rate,
    primary_labels,
)

LABELS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 1)), min_size=2, max_size=40)


@given(
    labels=LABELS,
    prob=st.lists(st.sampled_from([0.1, 0.2, 0.5, 0.7, 0.9]), min_size=6, max_size=6),
    review_fraction=st.sampled_from([0.0, 0.3, 1.0]),
)
def test_raw_is_the_metric_of_every_annotation(labels, prob, review_fraction):
    """Against the plain functions on one row an annotation, weighted so that items count alike."""
    item = [row for row, _ in labels]
    label = [row for _, row in labels]
    annotations = Annotations.from_columns(
        item=item, annotator=range(len(item)), label=label, classes=(0, 1)
    )
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
            "review_effectiveness": metrics.review_effectiveness(**review),
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
        **{
            name: adjusted(
                getattr(metrics, name),
                made.opinion,
                made.prob,
                y_score=score[: made.prob.size],
                review_fraction=0.1,
            )
            for name in ("oc_auroc", "review_effectiveness")
        },
    }


def misses(annotators: int, *, hard: bool) -> tuple[pd.DataFrame, float]:
    """Return the mean errors by metric and column over four worlds, and that of Eq. 2's AUROC."""
    tables, clipped = [], []
    for seed in range(4):
        made = world(seed, annotators=annotators, hard=hard)
        rates = estimate_flip_rates(made.annotations, by=made.prob)
        table = adjusted_metrics(made.annotations, made.prob, rates)
        true = pd.Series(truth(made))
        tables.append(table.loc[true.index, ["adjusted", "raw", "majority"]].sub(true, axis=0))
        share = made.annotations.counts()[:, 1] / annotators
        flip = rates.rates()
        clipped.append(float(adjusted(metrics.auroc, share, made.prob, flip) or 0) - true["auroc"])
    return sum(tables) / len(tables), float(np.mean(clipped))


@pytest.mark.simulation
@pytest.mark.parametrize(("annotators", "hard"), [(3, False), (20, True)])
def test_planted_primary_labels_are_recovered(annotators, hard):
    """Within 0.01 on average, where raw and majority labels miss by more."""
    found, clipped = misses(annotators, hard=hard)
    assert (found["adjusted"].abs() < 0.01).all()
    assert (found["raw"] < -0.01).all()
    assert abs(found.loc["auroc", "raw"]) > 0.03
    assert abs(found.loc["auroc", "majority"]) > 0.01
    if not hard:
        assert clipped < -0.03


def test_weights_are_the_expectation_of_ten_draws():
    made = world(1, items=3_000, annotators=10)
    share = made.annotations.counts()[:, 1] / 10
    exact = adjusted(metrics.auroc, share, made.prob, 0.1)
    toxic = primary_labels(np.stack([1 - share, share], 1), 0.1)[:, 1:]
    drawn = (np.random.default_rng(2).random((share.size, 10)) < toxic).astype(int)
    sampled = metrics.auroc(drawn.ravel(), np.repeat(made.prob, 10))
    assert sampled == pytest.approx(exact, abs=0.01)


@dataclass(frozen=True, kw_only=True)
class Three:
    """Labels of three classes by six people, who flip a share of theirs, and a model."""

    annotations: Annotations
    #: (I,) code of the class that everybody would give.
    primary: np.ndarray
    #: (I, 3) probabilities.
    prob: np.ndarray


def three_classes(seed: int = 0, *, items: int = 2_000, flip: float = 0.15) -> Three:
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet([0.3, 0.5, 0.8], items)
    primary = truth.argmax(axis=1)
    flipped = (primary[:, None] + rng.integers(1, 3, (items, 6))) % 3
    label = np.where(rng.random((items, 6)) < flip, flipped, primary[:, None])
    annotations = Annotations.from_columns(
        item=np.repeat(np.arange(items), 6), annotator=np.tile(np.arange(6), items),
        label=label.ravel(),
    )  # fmt: skip
    prob = 0.6 * truth + 0.4 * rng.dirichlet([1, 1, 1], items)
    return Three(annotations=annotations, primary=primary, prob=prob)


def macro(label: np.ndarray, prob: np.ndarray) -> dict[str, float]:
    """Return what scikit-learn calls macro, one-vs-rest."""
    decision, of_classes = prob.argmax(axis=1), np.eye(3)[label]
    return {
        "accuracy": float((label == decision).mean()),
        "precision": precision_score(label, decision, average="macro"),
        "recall": recall_score(label, decision, average="macro"),
        "f1": f1_score(label, decision, average="macro"),
        "auroc": roc_auc_score(of_classes, prob, average="macro"),
        "average_precision": average_precision_score(of_classes, prob, average="macro"),
    }


def test_three_classes_are_scikit_learns_macro_metrics():
    made = three_classes(items=500)
    table = adjusted_metrics(
        made.annotations, made.prob, fixed_flip_rate(made.annotations, 0.0), review_fraction=0.0
    )
    every = macro(made.annotations.label, made.prob[made.annotations.item])
    for name, value in every.items():
        assert table.loc[name, "raw"] == pytest.approx(value), name
        if f"oc_{name}" in table.index:  # nothing is reviewed
            assert table.loc[f"oc_{name}", "raw"] == pytest.approx(value), name


def test_planted_labels_of_three_classes_are_recovered():
    made = three_classes()
    table = adjusted_metrics(made.annotations, made.prob, fixed_flip_rate(made.annotations, 0.15))
    for name, value in macro(made.primary, made.prob).items():
        assert table.loc[name, "adjusted"] == pytest.approx(value, abs=0.01), name
        assert table.loc[name, "raw"] < value - 0.05, name
    decision = made.prob.argmax(axis=1)
    rates = fixed_flip_rate(made.annotations, 0.15)
    for column, chosen in (("adjusted", np.eye(3)[decision]), ("oracle", None)):
        alone = agreement_with_people(made.annotations, rates, decision=chosen)
        assert table.loc["accuracy", column] == pytest.approx(alone.value)


def nearly_by_chance() -> Annotations:
    """Return labels of two people of 150 items; 66 of those given again differ."""
    rng = np.random.default_rng(0)
    item, person = np.tile(np.arange(150), 3), np.repeat([0, 1, 0], 150)
    label = (rng.random(450) < 0.5).astype(int)
    label[300:] = label[:150] ^ (np.arange(150) < 66)
    return Annotations.from_columns(item=item, annotator=person, label=label)


def test_flip_rates_that_may_be_those_of_chance_leave_one_end_open():
    made = nearly_by_chance()
    rates = estimate_flip_rates(made)
    assert rates.rates("high").max() == 0.5
    rng = np.random.default_rng(1)
    table = adjusted_metrics(made, rng.random(150), rates)
    known = table.dropna(subset="adjusted")
    assert len(known) == len(table)
    assert (known["low"] <= known["adjusted"] + 1e-9).all()
    assert (known["adjusted"] <= known["high"] + 1e-9).all()
    assert ((known["low"] == 0) | (known["high"] == 1)).all()
    assert agreement_with_people(made, rates, decision=np.zeros(150)).high == 1


def test_any_metric_of_label_probability_and_weight():
    def brier(label: np.ndarray, prob: np.ndarray, sample_weight: np.ndarray) -> float:
        return float(brier_score_loss(label, prob, sample_weight=sample_weight))

    found = adjusted(brier, [0.5, 1.0], [0.5, 0.8])
    assert found == pytest.approx((0.25 + 0.04) / 2)
    made = three_classes(items=300)
    share = made.annotations.counts() / 6
    one = adjusted(log_loss, share, made.prob)
    assert one == pytest.approx(log_loss(made.annotations.label, made.prob[made.annotations.item]))


def test_probabilities_that_do_not_fit_and_items_without_labels_are_refused():
    two = Annotations.from_columns(item=[0, 1], annotator=[0, 1], label=[0, 1])
    three = Annotations.from_columns(item=[0, 1, 2], annotator=[0, 1, 2], label=[0, 1, 2])
    for made, prob, options, message in (
        (two, [0.1, np.nan], {}, "y_prob contains NaN"),
        (two, [0.1, 1.1], {}, r"y_prob contains values outside \[0, 1\]"),
        (two, [0.1], {}, "y_prob has 1 values for 2 items"),
        (two.of_annotators(np.array([True, False])), [0.1, 0.2], {}, "1 items have no annotation"),
        (three, [0.1, 0.2, 0.3], {}, r"y_prob has shape \(3,\).*pass one of each class"),
        (three, np.eye(3), {"strategy": "hybrid"}, "'hybrid' is for two classes"),
        (three, np.ones((3, 3)), {}, "does not sum to 1"),
    ):
        with pytest.raises(MetricInputError, match=message):
            adjusted_metrics(made, prob, fixed_flip_rate(made, 0.0), **options)
    with pytest.raises(MetricInputError, match="3 items and 3 classes"):
        agreement_with_people(three, fixed_flip_rate(three, 0.0), decision=[0, 1, 1])
