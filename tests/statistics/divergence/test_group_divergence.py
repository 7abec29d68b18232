"""The table of groups: against direct computation, and its guarantees by simulation."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from divergent_crowd import crowd
from scipy import stats
from sklearn.metrics import f1_score

from modwatch.common.errors import MetricInputError
from modwatch.statistics.disagreement import Annotations
from modwatch.statistics.divergence import (
    Groups,
    conformity_delta,
    group_report,
    uncertainty_divergence,
)
from modwatch.statistics.divergence.group_divergence import DIVERGENCE
from modwatch.statistics.estimate import holm


def test_values_are_those_of_the_groups_annotations():
    made = crowd(0, people=30, bias=0.2)
    annotations, prob = made.annotations, made.prob
    table = group_report(annotations, prob, made.groups, draws=9).set_index(["group", "metric"])
    conformity = conformity_delta(annotations, prob)
    for number, name in enumerate(made.groups.names):
        mine = annotations.first & (made.groups.code[annotations.annotator] == number)
        decision = prob[annotations.item[mine]] > 0.5
        label = annotations.label[mine]
        deltas = made.groups.code[conformity.annotator] == number
        wanted = {
            "agreement": (decision == label).mean(),
            "f1": f1_score(label, decision),
            "mean_delta": conformity.delta[deltas].mean(),
            "uncertainty_divergence": uncertainty_divergence(
                conformity.signs(), conformity.signs(deltas)
            ),
        }
        for metric, value in wanted.items():
            assert table.loc[(name, metric), "value"] == pytest.approx(value, abs=1e-5)
        assert table.loc[(name, "f1"), "annotations"] == mine.sum()
        assert table.loc[(name, "f1"), "annotators"] == 30


def test_the_divergence_is_from_all_annotations_those_without_a_group_included():
    """Eq. 5: P is of all disaggregated labels in the corpus."""
    made = crowd(0, people=30, bias=0.2)
    code = np.where(made.groups.code == 2, -1, made.groups.code)
    groups = replace(made.groups, names=made.groups.names[:2], code=code)
    with_all, less = (
        group_report(made.annotations, made.prob, of, draws=99).set_index(["metric", "group"])
        for of in (made.groups, groups)
    )
    columns = ["value", "annotators", "annotations"]
    for metric in (DIVERGENCE, "agreement"):
        pd.testing.assert_frame_equal(
            less.loc[metric, columns], with_all.loc[metric, columns].iloc[:2]
        )
    rows = less.loc[DIVERGENCE]
    assert (rows["low"] <= rows["value"]).all()
    assert (rows["value"] <= rows["high"]).all()


def several(seed: int, people: int = 40) -> tuple[Annotations, np.ndarray, Groups]:
    """Return labels of three classes by two groups, who differ in care, with probabilities."""
    prob = np.random.default_rng(0).dirichlet([0.5, 0.5, 0.5], 100)
    rng = np.random.default_rng(seed)
    item, person = np.divmod(np.arange(100 * people), people)
    care = rng.uniform(0.3, 0.7, people)
    drawn = (rng.random((item.size, 1)) > prob[item].cumsum(axis=1)).sum(axis=1)
    label = np.where(rng.random(item.size) < care[person], drawn, rng.integers(0, 3, item.size))
    annotations = Annotations.from_columns(item=item, annotator=person, label=label)
    return (
        annotations,
        prob,
        Groups.from_annotations(annotations, {a: "xy"[a % 2] for a in range(people)}),
    )


def test_three_classes_have_scikit_learns_macro_f1():
    annotations, prob, groups = several(0)
    table = group_report(annotations, prob, groups, draws=9).set_index(["group", "metric"])
    conformity = conformity_delta(annotations, prob)
    for number, name in enumerate("xy"):
        mine = groups.code[annotations.annotator] == number
        decision, label = prob.argmax(axis=1)[annotations.item[mine]], annotations.label[mine]
        deltas = groups.code[conformity.annotator] == number
        wanted = {
            "agreement": (decision == label).mean(),
            "f1": f1_score(label, decision, average="macro"),
            "mean_delta": conformity.delta[deltas].mean(),
        }
        for metric, value in wanted.items():
            row = table.loc[(name, metric)]
            assert row["value"] == pytest.approx(value, abs=1e-6)
            assert row["low"] < value < row["high"]


@pytest.mark.simulation
def test_intervals_cover_the_figure_of_all_such_people():
    """`benchmarks/group_coverage.py` draws more."""
    large = crowd(99, people=3_000, bias=0.1)
    truth = group_report(large.annotations, large.prob, large.groups, draws=1)
    truth = truth.set_index(["metric", "group"])
    hits: dict[str, list[bool]] = {}
    for seed in range(50):
        made = crowd(seed, people=20, bias=0.1)
        table = group_report(made.annotations, made.prob, made.groups, draws=1)
        table = table.set_index(["metric", "group"])
        own = (table["low"] <= truth["value"]) & (truth["value"] <= table["high"])
        gap = truth["difference"].between(table["difference_low"], table["difference_high"])
        for metric in ("agreement", "f1", DIVERGENCE):
            hits.setdefault(metric, []).extend(own[metric])
        hits.setdefault("difference", []).extend(gap["agreement"])
    for metric, held in hits.items():
        assert 0.91 <= np.mean(held) <= 0.995, metric


def test_small_groups_are_shrunk_more():
    rng = np.random.default_rng(0)
    sizes = {f"g{n}": 40 for n in range(6)} | {"few": 5}
    names = [name for name, size in sizes.items() for _ in range(size)]
    person = np.repeat(np.arange(len(names)), 30)
    item = rng.integers(0, 200, person.size)
    share = np.repeat([0.5 if name == "few" else 0.8 for name in names], 30)
    label = (rng.random(person.size) < share).astype(int)
    annotations = Annotations.from_columns(item=item, annotator=person, label=label)
    groups = Groups.from_annotations(annotations, dict(enumerate(names)))
    table = group_report(annotations, np.full(len(annotations.items), 0.9), groups, draws=9)
    rows = table[table["metric"] == "agreement"].set_index("group")
    overall = rows["value"].drop("few").mean()
    assert rows.loc["few", "value"] < rows.loc["few", "shrunk"] < overall
    moved = (rows["shrunk"] - rows["value"]).abs()
    assert moved.idxmax() == "few"


def test_holm_is_statsmodels_textbook():
    """Sorted p-values times the number that is left, never decreasing, at most 1."""
    p = np.array([0.01, 0.04, 0.03, np.nan, 0.5])
    assert holm(p) == pytest.approx([0.04, 0.09, 0.09, np.nan, 0.5], nan_ok=True)
    assert (holm(p)[[0, 1, 2, 4]] >= stats.false_discovery_control(p[[0, 1, 2, 4]])).all()


def test_suppressed_groups_have_a_reason_and_no_figures():
    made = crowd(0, people=10)
    names = {a: ("rare" if a < 2 else f"group {a % 2}") for a in range(30)}
    table = group_report(
        made.annotations, made.prob, Groups.from_annotations(made.annotations, names), draws=9
    )
    rare = table[table["group"] == "rare"]
    assert rare["reason"].tolist() == ["fewer than 5 annotators"]
    assert rare.drop(columns=["group", "reason"]).isna().all().all()


def test_equal_labels():
    annotations = Annotations.from_columns(
        item=np.tile([0, 1], 10), annotator=np.repeat(np.arange(10), 2), label=[0] * 20,
        classes=(0, 1),
    )  # fmt: skip
    groups = Groups.from_annotations(annotations, {a: "x" if a < 5 else "y" for a in range(10)})
    table = group_report(annotations, [0.1, 0.2], groups, draws=9).set_index(["group", "metric"])
    value, low, high = table.loc[("x", "agreement"), ["value", "low", "high"]]
    assert (value, high) == (1.0, 1.0)
    assert 0.3 < low < 0.6, "five people who are alike do not make sure that others are"
    less = table.loc[("x", "agreement"), ["difference", "difference_low", "difference_high"]]
    assert less.iloc[1] < less.iloc[0] == 0 < less.iloc[2]
    assert np.isnan(table.loc[("x", "f1"), "value"])
    assert "undefined" in table.loc[("x", "f1"), "reason"]


def test_without_a_majority_there_is_no_divergence():
    annotations = Annotations.from_columns(
        item=np.repeat(np.arange(4), 10), annotator=np.tile(np.arange(10), 4),
        label=np.tile([0] * 5 + [1] * 5, 4),
    )  # fmt: skip
    groups = Groups.from_annotations(annotations, {a: "xy"[a % 2] for a in range(10)})
    table = group_report(annotations, np.full(4, 0.3), groups, draws=9).set_index("metric")
    for metric in ("mean_delta", DIVERGENCE):
        assert table.loc[metric, ["value", "low", "high", "p_value"]].isna().all(axis=None)
        assert (table.loc[metric, "reason"].str.contains("undefined")).all()


def test_groups_of_other_annotators_are_refused():
    made, other = crowd(0, people=10), crowd(0, people=11)
    with pytest.raises(MetricInputError, match="groups are of 34 annotators, and annotations of 3"):
        group_report(made.annotations, made.prob, other.groups)


def test_one_of_many_groups_can_be_found():
    """Corrected for 160 rows, the least p-value of 1,000 permutations would be 0.16."""
    rng = np.random.default_rng(0)
    people, items = 200, 30
    label = rng.random((items, people)) < 0.5
    label[:, :5] = False
    annotations = Annotations.from_columns(
        item=np.arange(items).repeat(people),
        annotator=np.tile(np.arange(people), items),
        label=label.ravel().astype(int),
    )
    groups = Groups.from_annotations(
        annotations, {person: f"{person // 5:02}" for person in range(people)}
    )
    table = group_report(annotations, np.full(items, 0.9), groups)
    agreement = table[table["metric"] == "agreement"].set_index("group")["p_holm"]
    assert agreement["00"] < 0.05
    assert (agreement.drop("00") > 0.05).all()
