"""Groups: who belongs, and who must not be found out."""

import numpy as np
import pandas as pd
import pytest

from modwatch.common.errors import MetricInputError
from modwatch.statistics.disagreement import Annotations
from modwatch.statistics.divergence import Groups, intersections


def annotations(people: int) -> Annotations:
    return Annotations.of(
        item=np.zeros(people, int), annotator=np.arange(people), label=np.arange(people) % 2
    )


def named(**sizes: int) -> dict[int, str]:
    names = [name for name, size in sizes.items() for _ in range(size)]
    return dict(enumerate(names))


def test_small_groups_are_suppressed_with_the_reason() -> None:
    groups = Groups.of(annotations(20), named(big=10, small=4, tiny=2))
    assert groups.names == ("big",)
    assert groups.suppressed == {
        "small": "fewer than 5 annotators",
        "tiny": "fewer than 5 annotators",
    }
    assert groups.without == 4
    assert groups.sizes().tolist() == [10]


def test_one_suppressed_group_does_not_follow_from_the_others() -> None:
    groups = Groups.of(annotations(20), named(big=9, middle=7, small=4))
    assert groups.names == ("big",)
    assert groups.suppressed["middle"] == "few people would follow from it"


def test_a_person_in_two_groups_is_an_error() -> None:
    twice = pd.Series(["a", "b", "a"], index=[0, 0, 1])
    with pytest.raises(MetricInputError, match="1 annotators have two groups"):
        Groups.of(annotations(2), twice, minimum=1)
    same = pd.Series(["a", "a", "a"], index=[0, 0, 1])
    assert Groups.of(annotations(2), same, minimum=1).sizes().tolist() == [2]


def test_groups_of_people_who_labelled_nothing_do_not_count() -> None:
    groups = Groups.of(annotations(6), named(here=6) | {99: "away"})
    assert groups.names == ("here",)
    assert groups.suppressed == {}


def test_no_group_is_large_enough() -> None:
    with pytest.raises(MetricInputError, match="no group has 5 annotators"):
        Groups.of(annotations(4), named(a=2, b=2))


def test_intersections_need_every_attribute() -> None:
    people = pd.DataFrame(
        {"gender": ["woman", "man", None], "age": [30, 40, 50]}, index=list("abc")
    )
    found = intersections(people, ["gender", "age"])
    assert found.iloc[:2].tolist() == ["woman × 30", "man × 40"]
    assert found.isna().tolist() == [False, False, True]
    with pytest.raises(MetricInputError, match=r"no column \['race'\]"):
        intersections(people, ["race"])


def test_several_small_groups_do_not_follow_from_the_others_either() -> None:
    sizes = {"large": 9, "middle": 6, "one": 1, "other": 1}
    group = dict(enumerate(name for name, size in sizes.items() for _ in range(size)))
    annotations = Annotations.of(
        item=[0] * len(group), annotator=list(group), label=[0, 1] * 8 + [1]
    )
    found = Groups.of(annotations, group, minimum=5)
    assert found.names == ("large",)
    assert len(group) - found.sizes().sum() >= 5
    more = {**group, **dict.fromkeys(range(100, 104))}
    annotations = Annotations.of(
        item=[0] * len(more), annotator=list(more), label=[0, 1] * 10 + [1]
    )
    assert Groups.of(annotations, more, minimum=5).names == ("large", "middle")
