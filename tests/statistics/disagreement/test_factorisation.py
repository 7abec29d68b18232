"""Flip rates by matrix factorisation: planted groups of people."""

import numpy as np
import pandas as pd
import pytest
from disagreeing_people import world

from modwatch.common.errors import MetricInputError
from modwatch.statistics.disagreement import Annotations, estimate_flip_rates, svd_flip_rates


def grouped(flip: float, seed: int = 0, classes: int = 2) -> Annotations:
    """Return labels of two groups of people with opposite opinions on half of the items."""
    rng = np.random.default_rng(seed)
    items, people, row = 600, 60, 20
    item = np.repeat(np.arange(items), row)
    person = np.concatenate([rng.permutation(people)[:row] for _ in range(items)])
    toxic = rng.random(items) < 0.5
    disputed = rng.random(items) < 0.5
    primary = toxic[item] ^ (disputed[item] & (person % 2 == 1))
    flipped = rng.random(item.size) < flip
    label = np.where(flipped, (primary + rng.integers(1, classes, item.size)) % classes, primary)
    return Annotations.from_columns(
        item=item, annotator=person, label=label, classes=range(classes)
    )


def test_opinions_of_groups_are_not_taken_for_flips():
    calls: list[tuple[int, int]] = []
    found = svd_flip_rates(grouped(0.15), progress=lambda done, all_: calls.append((done, all_)))
    assert found.method == "svd"
    assert found.mean == pytest.approx(0.15, abs=0.03)
    assert "mispredicts" in found.reason
    assert calls[-1][0] == calls[-1][1]


def test_three_classes():
    assert svd_flip_rates(grouped(0.1, classes=3)).mean == pytest.approx(0.1, abs=0.03)


def test_it_is_chosen_without_retests_and_repeatable():
    one, other = (estimate_flip_rates(grouped(0.1), seed=3) for _ in range(2))
    assert one.method == "svd"
    assert "too few retests" in one.reason
    assert one.table.equals(other.table)


def test_the_bounds_contain_the_rate_of_slips():
    """The share of the labels fitted that are mispredicted is below and above the rate."""
    made = world(0, annotators=20, hard=True, retests=0)
    found = svd_flip_rates(made.annotations)
    assert found.method == "svd"
    assert found.rates("low").max() == 0
    assert made.flip_rate < float(found.rates("high").mean()) < 0.3


def test_labels_of_people_without_camps_have_no_figure():
    """Ratings by taste: no one's labels tell of another's, and few of them are slips."""
    rng = np.random.default_rng(0)
    rating = np.clip(np.rint(rng.uniform(1, 5, (300, 1)) + rng.normal(0, 0.7, (300, 6))), 1, 5)
    made = Annotations.from_columns(
        item=np.repeat(np.arange(300), 6), annotator=np.tile(np.arange(6), 300),
        label=rating.ravel().astype(int),
    )  # fmt: skip
    with pytest.raises(MetricInputError, match="a model without factors predicts labels best"):
        svd_flip_rates(made)


def test_ratings_are_predicted_as_numbers():
    """Two camps rate from 1 to 5, and slip by one; numbers may come as texts."""
    rng = np.random.default_rng(0)
    person = np.stack([rng.permutation(40)[:20] for _ in range(600)])
    opinion = np.where(person % 2, rng.integers(1, 6, (600, 1)), rng.integers(1, 6, (600, 1)))
    slip = rng.random(person.shape) < 0.1
    rating = opinion + np.where(slip, np.where(opinion == 5, -1, 1), 0)
    columns = {"item": np.repeat(np.arange(600), 20), "annotator": person.ravel()}
    labels = rating.ravel(), rating.ravel().astype(str), np.array([*"?abcde"])[rating.ravel()]
    found, text, named = (
        svd_flip_rates(Annotations.from_columns(**columns, label=label)) for label in labels
    )
    assert found.mean == pytest.approx(0.1, abs=0.02)
    assert found.table.equals(text.table)
    assert not found.table.equals(named.table)


def test_the_order_of_the_annotations_does_not_matter():
    made = grouped(0.1)
    shuffled = np.random.default_rng(1).permutation(made.item.size)
    one, other = (
        Annotations.from_columns(
            item=made.items[made.item[rows]].astype(str),
            annotator=made.annotators[made.annotator[rows]].astype(str),
            label=made.label[rows],
        )
        for rows in (np.arange(made.item.size), shuffled)
    )
    assert not np.array_equal(one.items, other.items)
    first, second = svd_flip_rates(one), svd_flip_rates(other)
    assert first.table.equals(second.table)
    assert first.reason == second.reason
    places = pd.Index(other.items).get_indexer(one.items)
    assert np.array_equal(first.row, second.row[places])


def test_one_annotator_is_not_enough():
    alone = Annotations.from_columns(item=[0, 1], annotator=["ann", "ann"], label=[0, 1])
    with pytest.raises(MetricInputError, match="no item has labels of two annotators"):
        svd_flip_rates(alone)


def test_annotators_without_identity_are_not_enough():
    """A label each: their biases would explain everything."""
    item = np.repeat(np.arange(100), 5)
    label = np.random.default_rng(0).integers(0, 2, item.size)
    nameless = Annotations.from_columns(item=item, annotator=np.arange(item.size), label=label)
    with pytest.raises(MetricInputError, match=r"annotators gave 1\.0 labels on average"):
        estimate_flip_rates(nameless)


def test_labels_that_are_all_alike_are_named():
    made = Annotations.from_columns(
        item=[0, 0, 1, 1], annotator=[0, 1, 0, 1], label=[1] * 4, classes=(0, 1)
    )
    with pytest.raises(MetricInputError, match="all labels are the same"):
        svd_flip_rates(made)
