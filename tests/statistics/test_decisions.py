"""One comparison decides: a score that equals the threshold is flagged nowhere."""

import ast
from pathlib import Path

import numpy as np
import pytest

import modwatch
from modwatch.data.sources.landing import OwnScores
from modwatch.models.calibration import best_f1_threshold
from modwatch.statistics import accuracy, fully_labelled, measure_days, recall, reliability_curve
from modwatch.statistics.decisions import is_flagged
from modwatch.statistics.disagreement import Annotations, adjusted_metrics, estimate_flip_rates
from modwatch.statistics.divergence import Groups, group_report

THRESHOLDS = [0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99]


@pytest.mark.parametrize("threshold", THRESHOLDS)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_score_that_equals_the_threshold_is_flagged_nowhere(threshold, kind):
    prob = np.full(60, threshold, kind)
    label = np.arange(60) % 2
    assert not is_flagged(prob, threshold).any()
    assert is_flagged(np.nextafter(np.float32(threshold), np.float32(1)), threshold)
    assert recall(label, prob, threshold=threshold) == 0
    assert accuracy(label, prob.astype(float), threshold=threshold) == 0.5
    day = fully_labelled(label, prob)
    assert not day.decisions(threshold).any()
    figures = measure_days([day], threshold=threshold).set_index("metric")
    assert figures.loc["recall_flagged", "value"] == 0
    own = OwnScores(threshold=threshold)
    assert not own.left_out({"prob": float(kind(threshold))}, available=["prob"])["flagged"]


def test_reports_of_groups_and_annotations_decide_alike():
    rng = np.random.default_rng(0)
    people, items = 12, 200
    opinion = rng.random((items, people)) < rng.random(items)[:, None]
    item, annotator = np.divmod(np.tile(np.arange(items * people), 2), people)
    label = (np.tile(opinion.ravel(), 2) ^ (rng.random(item.size) < 0.05)).astype(int)
    given = Annotations.from_columns(item=item, annotator=annotator, label=label)
    groups = Groups.from_annotations(given, {k: "ab"[k % 2] for k in range(people)})
    for kind in (np.float32, np.float64):
        prob = np.full(items, 0.8, kind)
        table = group_report(given, prob, groups, threshold=0.8, draws=10)
        assert (table.loc[table["metric"] == "f1", "value"] == 0).all(), "nothing is flagged"
        whole = adjusted_metrics(given, prob, estimate_flip_rates(given), threshold=0.8)
        assert whole.loc["recall", "raw"] == 0


def test_a_bin_that_ends_with_a_score_has_it_in_either_width():
    for kind in (np.float32, np.float64):
        curve = reliability_curve([1] * 9, np.arange(1, 10).astype(kind) / kind(10), n_bins=10)
        assert curve["count"].tolist() == [1] * 9 + [0]


def test_a_threshold_between_neighbours_in_float32_separates_them():
    lower = np.float32(0.7)
    for _ in range(20):
        upper = np.nextafter(lower, np.float32(1))
        prob, label = np.array([lower, upper], np.float64), np.array([0, 1], np.int8)
        threshold = best_f1_threshold(prob, label, np.ones(2))
        assert is_flagged(prob, threshold).tolist() == [False, True]
        lower = upper


def test_nothing_else_compares_a_score_with_a_threshold():
    """`label_threshold`, of votes, is no decision of the model."""
    found = []
    for path in Path(modwatch.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Gt | ast.GtE):
                ends = [ast.unparse(end) for end in node.comparators]
                if any(end.rpartition(".")[2] in ("threshold", "_threshold") for end in ends):
                    found.append(f"{path.name}: {ast.unparse(node)}")
    assert found == ["arguments.py: votes > threshold"]
