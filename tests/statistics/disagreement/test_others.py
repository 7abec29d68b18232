"""Agreement with people whose label did not make the decision: exact, bounded, and covering."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.statistics.disagreement import (
    Annotations,
    adjusted_metrics,
    agreement_with_people,
    fixed_flip_rate,
)


def annotations_of(labels: np.ndarray, people: np.ndarray | None = None) -> Annotations:
    """Return annotations (I, k) by people (I, k); everybody labels one item if not given."""
    items, row = labels.shape
    people = np.arange(labels.size).reshape(labels.shape) if people is None else people
    return Annotations.from_columns(
        item=np.repeat(np.arange(items), row), annotator=people.ravel(),
        label=labels.ravel().astype(int), classes=(0, 1),
    )  # fmt: skip


def value_of(annotations: Annotations, flip: float = 0.0, **options: object) -> float:
    return agreement_with_people(annotations, fixed_flip_rate(annotations, flip), **options).known[
        0
    ]


LABELS = st.lists(
    st.lists(st.integers(0, 2), min_size=2, max_size=6), min_size=1, max_size=6
).filter(lambda rows: len({label for row in rows for label in row}) > 1)


@given(LABELS)
def test_each_label_is_judged_by_the_majority_of_the_others(rows):
    """Against a plain loop; a tie with the label counts half way from chance to a pair."""
    item = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    label = np.concatenate(rows)
    made = Annotations.from_columns(
        item=item, annotator=np.arange(item.size), label=label, classes=(0, 1, 2)
    )
    pairs = np.mean([
        np.mean([a == b for i, a in enumerate(row) for j, b in enumerate(row) if i != j])
        for row in rows
    ])  # fmt: skip

    def right(row: list[int], place: int) -> float:
        others = row[:place] + row[place + 1 :]
        most = max(others.count(label) for label in others)
        tied = {label for label in others if others.count(label) == most}
        if row[place] not in tied:
            return 0.0
        chance = 1 / len(tied)
        return 1.0 if len(tied) == 1 else chance + max(pairs - chance, 0) / 2

    wanted = np.mean([np.mean([right(row, place) for place in range(len(row))]) for row in rows])
    assert value_of(made) == pytest.approx(wanted)
    prob = np.tile([1.0, 0.0, 0.0], (len(rows), 1))
    table = adjusted_metrics(made, prob, fixed_flip_rate(made, 0.0))
    assert table.loc["accuracy", "oracle"] == pytest.approx(wanted)


def test_slips_are_taken_out():
    """Ten people who all agree flip a tenth of their labels; some flip more than others."""
    rng = np.random.default_rng(0)
    truth, people = rng.random(3_000) < 0.4, np.tile(np.arange(10), (3_000, 1))
    rate = np.linspace(0.02, 0.18, 10)
    made = annotations_of(truth[:, None] ^ (rng.random((3_000, 10)) < rate), people)
    assert value_of(made) == pytest.approx(0.9, abs=0.01)
    assert value_of(made, 0.1) == pytest.approx(1, abs=0.01)


def test_a_decision_is_compared_with_every_label():
    labels = np.array([[1, 1, 0], [0, 0, 0]])
    assert value_of(annotations_of(labels), decision=[1, 1]) == pytest.approx(1 / 3)
    weighted = value_of(annotations_of(labels), decision=[1, 1], sample_weight=[1, 0])
    assert weighted == pytest.approx(2 / 3)


def test_one_label_an_item_has_no_others():
    made = annotations_of(np.array([[1], [0]]))
    found = agreement_with_people(made, fixed_flip_rate(made, 0.0))
    assert found.status == "insufficient"
    assert found.reason == "no item has labels of two annotators"
    table = adjusted_metrics(made, [0.2, 0.7], fixed_flip_rate(made, 0.0))
    assert table["oracle"].isna().all()
    assert table["normalised"].isna().all()


def test_single_labels_are_no_part_of_the_normalised_score():
    """The model is wrong where there is one label only."""
    item, label = [0, 0, 1, 1, 2], [1, 1, 0, 0, 0]
    made = Annotations.from_columns(item=item, annotator=range(5), label=label)
    table = adjusted_metrics(made, [0.9, 0.1, 0.9], fixed_flip_rate(made, 0.0))
    assert table.loc["accuracy", ["adjusted", "oracle", "normalised"]].tolist() == [2 / 3, 1, 1]


def test_people_who_all_agree_have_an_interval():
    low, high = (
        agreement_with_people(made, fixed_flip_rate(made, 0.0)).known[1:]
        for made in (annotations_of(np.tile([[0, 0], [1, 1]], (rows, 1))) for rows in (10, 1_000))
    )
    assert 0.85 < low[0] < 0.95
    assert 0.998 < high[0] < low[1] == high[1] == 1


@pytest.mark.simulation
@pytest.mark.parametrize("voters", [2, 3])
def test_intervals_cover_for_other_people_and_items(voters):
    def draw(rng: np.random.Generator, items: int, people: int, row: int) -> Annotations:
        person = rng.random((items, people)).argsort(axis=1)[:, :row]
        threshold = rng.normal(0.45, 0.25, people)[person]
        likely = 1 / (1 + np.exp(-(rng.beta(0.7, 1.5, items)[:, None] - threshold) / 0.08))
        return annotations_of(rng.random(likely.shape) < likely, person)

    rng = np.random.default_rng(9)
    large = draw(rng, 20_000, 300, voters + 1).counts()
    share = large[:, 1] / (voters + 1)
    without = [right_of_votes(large, label) for label in (0, 1)]
    truth = float(((1 - share) * without[0] + share * without[1]).mean())
    found = []
    for seed in range(60):  # 95 %, less two standard errors
        made = draw(np.random.default_rng(seed), 300, 40, voters)
        found.append(agreement_with_people(made, fixed_flip_rate(made, 0.0)).known)
    value, low, high = np.transpose(found)
    assert np.mean((low <= truth) & (truth <= high)) >= 0.9
    assert np.mean(value) == pytest.approx(truth, abs=0.02)


def right_of_votes(counts: np.ndarray, label: int) -> np.ndarray:
    """Return how often the majority without a label of the class is the class; ties half."""
    own, other = counts[:, label] - 1, counts[:, 1 - label]
    return np.where(own == other, 0.5, own > other)
