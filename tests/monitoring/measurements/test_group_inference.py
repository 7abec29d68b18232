"""Somebody who knows the labels of all people looks for those who chose a group.

They know what the report is made of, and try all sets of people. Which people count in a group
follows from its figures, however they are rounded; which people chose it does not.
"""

import numpy as np
import pytest
from numpy.typing import NDArray

from modwatch.monitoring.measurements.opinions import LabelledComments, opinion_report
from modwatch.review.people.groups import KEPT, draw_group
from modwatch.statistics.disagreement import Annotations
from modwatch.statistics.divergence import conformity_delta

PEOPLE = 20
CHOSEN = ["a"] * 10 + ["b"] * 10
#: (2^20, 20) every set of people.
SETS = ((np.arange(1 << PEOPLE)[:, None] >> np.arange(PEOPLE)) & 1).astype(np.float32)


def labels_of(seed: int, items: int = 300) -> LabelledComments:
    """Return 60 labels a person, of people who differ in strictness."""
    rng = np.random.default_rng(seed)
    toxicity = rng.beta(0.6, 1.2, items)
    item = np.concatenate([rng.choice(items, 60, replace=False) for _ in range(PEOPLE)])
    person = np.arange(PEOPLE).repeat(60)
    strict = rng.normal(0, 0.15, PEOPLE)[person]
    annotations = Annotations.from_columns(
        item=item, annotator=person, label=(rng.random(item.size) < toxicity[item] + strict) * 1
    )
    prob = np.clip(toxicity + rng.normal(0, 0.15, items), 0.01, 0.99)[annotations.items]
    return LabelledComments(
        annotations=annotations, y_prob=prob, weight=np.ones(prob.size), threshold=0.5
    )


def published(labels: LabelledComments, counted: list[str]) -> dict[tuple[str, str], float]:
    """Return the values of a report by group and metric, as they are published."""
    report = opinion_report(labels, dict(enumerate(counted)), minimum=5)  # type: ignore[arg-type]
    table = report.groupings[0].table
    assert table is not None
    return table.set_index(["group", "metric"])["value"].to_dict()


def consistent(
    labels: LabelledComments, figures: dict[tuple[str, str], float]
) -> NDArray[np.bool_]:
    """Return which of `SETS` give the figures that were published of the group a, and of b."""
    of, decision = labels.annotations, labels.y_prob > labels.threshold
    toxic, decided = of.label == 1, decision[of.item]

    def count(rows: NDArray[np.bool_], who: NDArray[np.int32] = of.annotator) -> NDArray[np.int64]:
        return np.bincount(who[rows], minlength=PEOPLE)

    deltas = conformity_delta(of, labels.y_prob)
    everywhere = np.ones(deltas.delta.size, bool)
    ratios = {
        "agreement": (count(toxic == decided), count(toxic == toxic)),
        "f1": (2 * count(toxic & decided), count(toxic) + count(decided)),
        "mean_delta": (
            np.bincount(deltas.annotator, deltas.delta, PEOPLE),
            count(everywhere, deltas.annotator),
        ),
    }
    found = np.ones(len(SETS), bool)
    with np.errstate(invalid="ignore"):
        for metric, (above, below) in ratios.items():
            for group, sets in (("a", SETS), ("b", 1 - SETS)):
                value = (sets @ np.float32(above)) / (sets @ np.float32(below))
                found &= np.abs(value - figures[group, metric]) < 0.00051
    return found


def drawn(seed: int) -> list[str]:
    """Return the groups that people count in."""
    rng = np.random.default_rng(seed)
    return [draw_group(own, CHOSEN, rng) for own in CHOSEN]


def number_of(group: list[str]) -> int:
    """Return the row of `SETS` with the people of the group a."""
    return sum(1 << person for person, name in enumerate(group) if name == "a")


def likelihood(counted: list[str], sets: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the probability that people count in `counted` if those of each set chose a."""
    here = np.array([name == "a" for name in counted])
    share = sets.mean(axis=1, keepdims=True)
    drawn_so = (1 - KEPT) * np.where(here, share, 1 - share)
    return np.asarray((KEPT * (sets == here) + drawn_so).prod(axis=1), np.float64)


def test_who_counts_in_a_group_follows_from_two_reports():
    """Otherwise the draws would be for nothing, and rounding would do."""
    counted = drawn(0)
    one, other = (
        consistent(labels, published(labels, counted)) for labels in (labels_of(0), labels_of(1))
    )
    assert 1 <= one.sum() < 2_000
    assert np.flatnonzero(one & other).tolist() == [number_of(counted)]


@pytest.mark.parametrize("seed", range(3))
def test_who_chose_a_group_does_not_follow_even_from_knowing_who_counts_in_it(seed):
    """Thousands of the 184,756 sets of ten people remain, and nobody's group is certain."""
    counted = drawn(seed)
    halves = SETS[SETS.sum(axis=1) == PEOPLE / 2]
    chance = likelihood(counted, halves)
    chance /= chance.sum()
    assert chance.max() < 0.15
    likely = np.sort(chance)[::-1].cumsum()
    assert np.searchsorted(likely, 0.95) > 6_000
    in_a = chance @ halves
    assert 0.05 < in_a.min() < in_a.max() < 0.95


def test_knowing_the_groups_of_all_others_leaves_a_person_in_doubt():
    """The report changes the odds of a person's group by a factor of six at most."""
    both = np.array([[1] * 9 + [0] * 10 + [last] for last in (0, 1)], np.float32)
    for last in "ab":
        counted = ["a"] * 9 + ["b"] * 10 + [last]
        chance = likelihood(counted, both)
        assert chance.max() / chance.min() < 6
