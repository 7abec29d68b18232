"""κ between and within groups, against an enumeration of all pairs."""

from itertools import permutations

import numpy as np
import pytest
from divergent_crowd import crowd
from sklearn.metrics import cohen_kappa_score

from modwatch.statistics.disagreement import Annotations
from modwatch.statistics.divergence import Groups, kappa_table, shared_items


@pytest.mark.parametrize("classes", [2, 3])
def test_it_is_scikit_learns_kappa_of_all_pairs(classes):
    rng = np.random.default_rng(classes)
    rows = {
        (int(i), int(a)): 0
        for i, a in zip(rng.integers(0, 40, 400), rng.integers(0, 12, 400), strict=True)
    }
    item, annotator = np.array(list(rows)).T
    label = (item + (rng.random(item.size) < 0.4) * rng.integers(1, classes, item.size)) % classes
    annotations = Annotations.from_columns(item=item, annotator=annotator, label=label)
    names = {a: "xyz"[a % 3] for a in range(12)}
    groups = Groups.from_annotations(annotations, names, minimum=1)
    table, shared = kappa_table(annotations, groups, minimum=1), shared_items(annotations, groups)
    assert (table["group"] + table["other"]).tolist() == ["xx", "xy", "xz", "yy", "yz", "zz"]
    for row in table.to_dict("records"):
        one, other = row["group"], row["other"]
        pairs: list[tuple[int, int]] = []
        places = 0
        for place in np.unique(item):
            here = [
                (names[int(a)], int(y), int(a))
                for a, y in zip(annotator[item == place], label[item == place], strict=True)
            ]
            pairs += [
                (first[1], second[1])
                for first, second in permutations(here, 2)
                if (first[0], second[0]) == (one, other)
            ]
            places += any((a[0], b[0]) == (one, other) for a, b in permutations(here, 2))
        assert row["items"] == shared.loc[one, other] == shared.loc[other, one] == places
        left, right = zip(*pairs, strict=True)
        assert row["kappa"] == pytest.approx(cohen_kappa_score(left, right))
        assert row["low"] < row["kappa"] < row["high"]


@pytest.mark.simulation
def test_intervals_cover_the_kappa_of_all_such_people():
    """300 pairs of groups, of items that stay: for those of which items are a sample it is wide."""
    large = crowd(99, people=2_000, bias=0.1)
    truth = kappa_table(large.annotations, large.groups)["kappa"]
    hits = []
    for seed in range(50):
        made = crowd(seed, people=20, bias=0.1)
        table = kappa_table(made.annotations, made.groups)
        hits.append(truth.between(table["low"], table["high"]))
    assert np.mean(hits) >= 0.93


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("items", "toxic", "error", "people", "least"),
    [
        (60, 0.02, 0.005, 20, 0.0),
        (200, 0.02, 0.005, 20, 0.2),
        (200, 0.1, 0.005, 20, 1.0),
        (60, 0.5, 0.05, 6, 1.0),
        (300, 0.2, 0.45, 20, 1.0),
    ],
)
def test_intervals_cover_or_are_not_given(items, toxic, error, people, least):
    """Of items drawn anew each time; `least` of the tables are given."""
    share = toxic * (1 - error) + (1 - toxic) * error
    chance = share**2 + (1 - share) ** 2
    truth = (1 - 2 * error * (1 - error) - chance) / (1 - chance)
    rng, hits = np.random.default_rng(1), []
    item, annotator = np.divmod(np.arange(items * people), people)
    groups = dict.fromkeys(range(people), "x")
    for _ in range(100):
        label = (rng.random(items) < toxic)[item] ^ (rng.random(item.size) < error)
        made = Annotations.from_columns(
            item=item, annotator=annotator, label=label + 0, classes=(0, 1)
        )
        (row,) = kappa_table(made, Groups.from_annotations(made, groups)).to_dict("records")
        if not np.isnan(row["low"]):
            hits.append(row["low"] <= truth <= row["high"])
    assert len(hits) >= 100 * least
    assert not hits or np.mean(hits) >= 0.93 or len(hits) <= 5


def test_without_pairs_or_variety_there_is_none():
    annotations = Annotations.from_columns(
        item=[0, 1], annotator=["a", "b"], label=[0, 0], classes=(0, 1)
    )
    groups = Groups.from_annotations(annotations, {"a": "x", "b": "y"}, minimum=1)
    assert kappa_table(annotations, groups)["kappa"].isna().all()
    same = Annotations.from_columns(item=[0, 0], annotator=["a", "b"], label=[0, 0], classes=(0, 1))
    table = kappa_table(same, groups, minimum=1)
    assert table[["kappa", "low", "high"]].isna().all(axis=None)


def test_few_shared_items_have_no_kappa():
    number = 29
    item = np.arange(number + 1).repeat(2)
    annotations = Annotations.from_columns(
        item=item, annotator=np.tile(["a", "b"], number + 1), label=item % 2
    )
    groups = Groups.from_annotations(annotations, {"a": "x", "b": "y"}, minimum=1)
    assert shared_items(annotations, groups).loc["x", "y"] == number + 1
    table = kappa_table(annotations, groups)
    assert table["items"].tolist() == [0, number + 1, 0]
    assert table["kappa"][1] == 1
    one_less = Annotations.from_columns(
        item=item[2:], annotator=np.tile(["a", "b"], number), label=item[2:] % 2
    )
    assert np.isnan(kappa_table(one_less, groups)["kappa"][1])


def test_people_who_all_agree_do_not_make_sure_that_others_would():
    label = np.arange(40).repeat(10) % 2
    annotations = Annotations.from_columns(
        item=np.arange(40).repeat(10), annotator=np.tile(np.arange(10), 40), label=label
    )
    groups = Groups.from_annotations(annotations, {a: "xy"[a % 2] for a in range(10)})
    table = kappa_table(annotations, groups)
    assert (table["kappa"] == 1).all()
    assert (table["high"] == 1).all()
    assert table["low"].between(0, 0.5).all()
