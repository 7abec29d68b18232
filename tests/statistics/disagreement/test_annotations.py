"""Annotations as codes: first labels, retests, counts, majority."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.common.errors import MetricInputError
from modwatch.statistics.disagreement import Annotations, majority

ROWS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=60
)


def of(rows: list[tuple[int, int, int]]) -> Annotations:
    item, annotator, label = zip(*rows, strict=True)
    return Annotations.from_columns(item=item, annotator=annotator, label=label, classes=(0, 1, 2))


@given(rows=ROWS)
def test_every_label_is_an_annotation_or_a_retest(rows):
    annotations = of(rows)
    seen: dict[tuple[int, int], int] = {}
    pairs = []
    for item, annotator, label in rows:
        if (item, annotator) in seen:
            pairs.append((item, annotator, seen[item, annotator], label))
        seen[item, annotator] = label
    retests = annotations.retests
    found = zip(
        annotations.items[retests.item].tolist(),
        annotations.annotators[retests.annotator].tolist(),
        retests.first.tolist(),
        retests.second.tolist(),
        strict=True,
    )
    assert sorted(found) == sorted(pairs)
    assert annotations.counts().sum() == len(seen) == annotations.first.sum()


@given(rows=ROWS, seed=st.integers(0, 99))
def test_the_order_of_items_and_people_does_not_matter(rows, seed):
    """Only the order of one annotator's labels of one item does."""
    once = list({(item, annotator): label for item, annotator, label in rows}.items())
    shuffled = np.random.default_rng(seed).permutation(len(once))
    one = of([(*key, label) for key, label in once])
    other = of([(*once[i][0], once[i][1]) for i in shuffled])
    place = pd.Index(other.items).get_indexer(one.items)
    assert np.array_equal(one.counts(), other.counts()[place])


def test_ids_may_be_text_and_classes_words():
    annotations = Annotations.from_columns(
        item=["x", "y"], annotator=["ann", "bob"], label=["rude", "fine"], classes=["fine", "rude"]
    )
    assert annotations.counts().tolist() == [[0, 1], [1, 0]]
    assert annotations.of_annotators(np.array([True, False])).counts().tolist() == [[0, 1], [0, 0]]


def test_ties_go_to_the_last_class_and_are_reported():
    label, tied = majority(np.array([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0], [3.0, 2.0, 0.0]]))
    assert label.tolist() == [2, 2, 0]
    assert tied.tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"item": [], "annotator": [], "label": []}, "there is no annotation"),
        ({"item": [1], "annotator": [1, 2], "label": [0, 1]}, "different lengths"),
        ({"item": [1, None], "annotator": [1, 2], "label": [0, 1]}, "1 values of item are missing"),
        ({"item": [1, 2], "annotator": [1, 2], "label": [0, np.nan]}, "values of label are missi"),
        ({"item": [1, 2], "annotator": [1, 2], "label": [1, 1]}, "2 to 100 different classes"),
        (
            {"item": [1, 2], "annotator": [1, 2], "label": [0, 7], "classes": [0, 1]},
            "1 labels are outside the 2 classes",
        ),
    ],
)
def test_bad_columns_are_named(columns, message):
    with pytest.raises(MetricInputError, match=message):
        Annotations.from_columns(**columns)  # type: ignore[arg-type]
