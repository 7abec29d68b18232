"""The table of groups: against direct computation, and its guarantees by simulation."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import f1_score

from divergence.crowd import crowd
from modwatch.disagreement import Annotations
from modwatch.divergence import (
    Groups,
    conformity_delta,
    group_report,
    uncertainty_divergence,
)
from modwatch.errors import MetricInputError
from modwatch.metrics.significance import holm


def test_values_are_those_of_the_groups_annotations() -> None:
    made = crowd(0, people=30, bias=0.2)
    annotations, prob = made.annotations, made.prob
    table = group_report(annotations, prob, made.groups, draws=9).set_index(["group", "metric"])
    conformity = conformity_delta(annotations, prob)
    everybody = made.groups.code >= 0
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
                conformity.signs(everybody[conformity.annotator]), conformity.signs(deltas)
            ),
        }
        for metric, value in wanted.items():
            assert table.loc[(name, metric), "value"] == pytest.approx(value, abs=1e-5)
        assert table.loc[(name, "f1"), "annotations"] == mine.sum()
        assert table.loc[(name, "f1"), "annotators"] == 30


def test_the_order_of_people_does_not_matter() -> None:
    made = crowd(3, people=12)
    shuffled = np.random.default_rng(0).permutation(made.annotations.item.size)
    other = Annotations.of(
        item=made.annotations.items[made.annotations.item[shuffled]],
        annotator=made.annotations.annotators[made.annotations.annotator[shuffled]],
        label=made.annotations.label[shuffled],
    )
    names = dict(zip(made.annotations.annotators, made.groups.code, strict=True))
    groups = Groups.of(other, {a: f"group {g}" for a, g in names.items() if g >= 0})
    prob = dict(zip(made.annotations.items, made.prob, strict=True))
    again = np.array([prob[each] for each in other.items])
    columns = ["value", "low", "high", "difference", "shrunk"]
    one = group_report(made.annotations, made.prob, made.groups, draws=9)[columns]
    two = group_report(other, again, groups, draws=9)[columns]
    once = made.annotations.first.all()  # somebody's repeated label depends on the order
    if once:
        assert np.allclose(one, two, equal_nan=True)


@pytest.mark.simulation
@pytest.mark.parametrize("people", [20, 100])
def test_intervals_cover_the_figure_of_all_such_people(people: int) -> None:
    """`benchmarks/group_coverage.py` draws more."""
    large = crowd(99, people=8_000, bias=0.1)
    truth = group_report(large.annotations, large.prob, large.groups, draws=1)
    truth = truth.set_index(["group", "metric"])["value"]
    hits = []
    for seed in range(120):
        made = crowd(seed, people=people, bias=0.1)
        table = group_report(made.annotations, made.prob, made.groups, draws=1)
        table = table[table["metric"].isin(["agreement", "f1"])].set_index(["group", "metric"])
        hits.append(
            ((table["low"] <= truth[table.index]) & (truth[table.index] <= table["high"])).to_list()
        )
    assert 0.92 <= np.mean(hits) <= 0.985


@pytest.mark.simulation
def test_a_bias_of_five_points_is_found_and_none_is_not() -> None:
    found = {0.0: 0, 0.063: 0}  # 6.3 % of the labels that agree are 5 points of agreement
    gaps = []
    for bias in found:
        for seed in range(60):
            made = crowd(seed, people=100, bias=bias)
            table = group_report(made.annotations, made.prob, made.groups, draws=200, seed=seed)
            row = table[(table["group"] == "group 2") & (table["metric"] == "agreement")].iloc[0]
            found[bias] += row["p_value"] < 0.05
            gaps.append(row["difference"])
    assert np.mean(gaps[60:]) == pytest.approx(-0.05, abs=0.01)
    assert found[0.0] <= 8  # 3 expected
    assert found[0.063] >= 48


def test_small_groups_are_shrunk_more() -> None:
    rng = np.random.default_rng(0)
    sizes = {f"g{n}": 40 for n in range(6)} | {"few": 5}
    names = [name for name, size in sizes.items() for _ in range(size)]
    person = np.repeat(np.arange(len(names)), 30)
    item = rng.integers(0, 200, person.size)
    share = np.repeat([0.5 if name == "few" else 0.8 for name in names], 30)
    label = (rng.random(person.size) < share).astype(int)
    annotations = Annotations.of(item=item, annotator=person, label=label)
    groups = Groups.of(annotations, dict(enumerate(names)))
    table = group_report(annotations, np.full(len(annotations.items), 0.9), groups, draws=9)
    rows = table[table["metric"] == "agreement"].set_index("group")
    overall = rows["value"].drop("few").mean()
    assert rows.loc["few", "value"] < rows.loc["few", "shrunk"] < overall
    moved = (rows["shrunk"] - rows["value"]).abs()
    assert moved.idxmax() == "few"


def test_holm_is_statsmodels_textbook() -> None:
    """Sorted p-values times the number that is left, never decreasing, at most 1."""
    p = np.array([0.01, 0.04, 0.03, np.nan, 0.5])
    assert holm(p) == pytest.approx([0.04, 0.09, 0.09, np.nan, 0.5], nan_ok=True)
    assert (holm(p)[[0, 1, 2, 4]] >= stats.false_discovery_control(p[[0, 1, 2, 4]])).all()


def test_suppressed_groups_have_a_reason_and_no_figures() -> None:
    made = crowd(0, people=10)
    names = {a: ("rare" if a < 2 else f"group {a % 2}") for a in range(30)}
    table = group_report(made.annotations, made.prob, Groups.of(made.annotations, names), draws=9)
    rare = table[table["group"] == "rare"]
    assert rare["reason"].tolist() == ["fewer than 5 annotators"]
    assert rare.drop(columns=["group", "reason"]).isna().all().all()


def test_equal_labels_and_three_classes() -> None:
    annotations = Annotations.of(
        item=np.tile([0, 1], 10), annotator=np.repeat(np.arange(10), 2), label=[0] * 20,
        classes=(0, 1),
    )  # fmt: skip
    groups = Groups.of(annotations, {a: "x" if a < 5 else "y" for a in range(10)})
    table = group_report(annotations, [0.1, 0.2], groups, draws=9).set_index(["group", "metric"])
    assert table.loc[("x", "agreement"), ["value", "low", "high"]].tolist() == [1.0, 1.0, 1.0]
    assert np.isnan(table.loc[("x", "f1"), "value"])
    assert "undefined" in table.loc[("x", "f1"), "reason"]
    three = Annotations.of(item=[0, 0, 0], annotator=[0, 1, 2], label=[0, 1, 2])
    with pytest.raises(MetricInputError, match="two classes"):
        group_report(three, [[0.2, 0.3, 0.5]], groups)


def test_one_of_many_groups_can_be_found() -> None:
    """Corrected for 160 rows, the least p-value of 1,000 permutations would be 0.16."""
    rng = np.random.default_rng(0)
    people, items = 200, 30
    label = rng.random((items, people)) < 0.5
    label[:, :5] = False
    annotations = Annotations.of(
        item=np.arange(items).repeat(people),
        annotator=np.tile(np.arange(people), items),
        label=label.ravel().astype(int),
    )
    groups = Groups.of(annotations, {person: f"{person // 5:02}" for person in range(people)})
    table = group_report(annotations, np.full(items, 0.9), groups)
    agreement = table[table["metric"] == "agreement"].set_index("group")["p_holm"]
    assert agreement["00"] < 0.05
    assert (agreement.drop("00") > 0.05).all()
