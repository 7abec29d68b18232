"""Groups of the synthetic community, whose planted thresholds a model follows or does not."""

from collections.abc import Sequence

import numpy as np
import pytest
from disagreeing_community import community_labels

from modwatch.statistics.divergence import Groups, group_report
from modwatch_lab.community import Person
from modwatch_lab.community.annotators import annotators

_PEOPLE = 100
_ITEMS = np.random.default_rng(0).beta(0.8, 1.6, 500)
PROB = np.clip(_ITEMS + np.random.default_rng(1).normal(0, 0.05, 500), 0, 1)


def found(one: Sequence[Person], other: Sequence[Person], seed: int) -> tuple[float, float]:
    """Return by how much less the model agrees with some people than with others, and its p."""
    made = community_labels([*one, *other], _ITEMS, per_person=30, seed=seed)
    names = {number: "one" if number < len(one) else "other" for number in made.annotators}
    groups = Groups.from_annotations(made, names)
    table = group_report(made, PROB[made.items], groups, threshold=0.55, draws=200, seed=seed)
    row = table[(table["group"] == "one") & (table["metric"] == "agreement")].iloc[0]
    return row["difference"], row["p_value"]


@pytest.mark.simulation
def test_groups_that_are_planted_five_points_apart_are_found_and_halves_of_one_are_not():
    """`benchmarks/group_coverage.py` counts power and false alarms over 500 communities."""
    gaps, hits, alarms = [], 0, 0
    for seed in range(40):
        people = annotators(8 * _PEOPLE, seed)
        lenient, strict = people[1::4], people[0::4]  # mean thresholds 0.48 and 0.40
        gap, p_value = found(strict[:_PEOPLE], lenient[:_PEOPLE], seed)
        gaps.append(gap)
        hits += p_value < 0.05
        alarms += found(lenient[:_PEOPLE], lenient[_PEOPLE:], seed)[1] < 0.05
    assert np.mean(gaps) == pytest.approx(-0.05, abs=0.01)
    assert hits >= 32
    assert alarms <= 6  # two expected; of 5 % false alarms, more are one chance in 300
