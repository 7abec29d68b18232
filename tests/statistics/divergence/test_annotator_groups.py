"""Groups: who belongs, and who must not be found out."""

from itertools import chain, combinations

import numpy as np
import pandas as pd
import pytest

from modwatch.common.errors import MetricInputError
from modwatch.statistics.disagreement import Annotations
from modwatch.statistics.divergence import Groups, intersections, shown_together


def annotations(people: int) -> Annotations:
    return Annotations.from_columns(
        item=np.zeros(people, int), annotator=np.arange(people), label=np.arange(people) % 2
    )


def named(**sizes: int) -> dict[int, str]:
    names = [name for name, size in sizes.items() for _ in range(size)]
    return dict(enumerate(names))


def test_small_groups_are_suppressed_with_the_reason():
    groups = Groups.from_annotations(annotations(20), named(big=10, small=4, tiny=2))
    assert groups.names == ("big",)
    assert groups.suppressed == {
        "small": "fewer than 5 annotators",
        "tiny": "fewer than 5 annotators",
    }
    assert groups.without == 4
    assert groups.sizes().tolist() == [10]


@pytest.mark.parametrize(
    ("sizes", "shown"),
    [
        ({"big": 9, "middle": 7, "small": 4}, ("big",)),
        ({"large": 9, "middle": 6, "one": 1, "other": 1}, ("large",)),
        ({"large": 9, "middle": 6} | dict.fromkeys("abcdef", 1), ("large", "middle")),
    ],
)
def test_suppressed_groups_do_not_follow_from_the_others(sizes, shown):
    groups = Groups.from_annotations(annotations(sum(sizes.values())), named(**sizes))
    assert groups.names == shown
    if "middle" not in shown:
        assert groups.suppressed["middle"] == "few people would follow from it"


def test_a_person_in_two_groups_is_an_error():
    twice = pd.Series(["a", "b", "a"], index=[0, 0, 1])
    with pytest.raises(MetricInputError, match="1 annotators have two groups"):
        Groups.from_annotations(annotations(2), twice, minimum=1)
    same = pd.Series(["a", "a", "a"], index=[0, 0, 1])
    assert Groups.from_annotations(annotations(2), same, minimum=1).sizes().tolist() == [2]


def test_groups_of_people_who_labelled_nothing_do_not_count():
    groups = Groups.from_annotations(annotations(6), named(here=6) | {99: "away"})
    assert groups.names == ("here",)
    assert groups.suppressed == {}


def test_no_group_is_large_enough():
    with pytest.raises(MetricInputError, match="no group has 5 annotators"):
        Groups.from_annotations(annotations(4), named(a=2, b=2))


def test_intersections_need_every_attribute():
    people = pd.DataFrame(
        {"gender": ["woman", "man", None], "age": [30, 40, 50]}, index=list("abc")
    )
    found = intersections(people, ["gender", "age"])
    assert found.iloc[:2].tolist() == ["woman × 30", "man × 40"]
    assert found.isna().tolist() == [False, False, True]
    with pytest.raises(MetricInputError, match=r"no column \['race'\]"):
        intersections(people, ["race"])


MINIMUM = 4


def annotations_of(people: int) -> Annotations:
    return Annotations.from_columns(
        item=[0] * people, annotator=range(people), label=np.arange(people) % 2, classes=(0, 1)
    )


def grouped(given: Annotations, names: "list[str | None]") -> Groups:
    known = {person: name for person, name in enumerate(names) if name is not None}
    try:
        return Groups.from_annotations(given, known, minimum=MINIMUM)
    except MetricInputError:
        none = Groups.from_annotations(given, dict.fromkeys(range(len(names)), "all"), minimum=1)
        return Groups(names=(), code=np.full_like(none.code, -1), suppressed={}, without=0)


def fewest_derivable(groupings: list[Groups]) -> float:
    """Return the fewest people of whom a combination of the shown figures tells; by all subsets."""
    codes = np.array([grouping.code for grouping in groupings])
    cells, people = np.unique(codes, axis=1, return_counts=True)
    shown = [np.ones(len(people))]
    for code, groups in zip(cells, groupings, strict=True):
        shown += [(code == number).astype(float) for number in range(len(groups.names))]
    matrix = np.array(shown)
    rank = np.linalg.matrix_rank(matrix)
    least = float("inf")
    small = [cell for cell in range(len(people)) if people[cell] < MINIMUM]
    subsets = chain.from_iterable(combinations(small, size) for size in range(1, MINIMUM))
    for subset in map(list, subsets):
        outside = np.delete(matrix, subset, axis=1)
        # Fewer dimensions outside: some combination is 0 there, and so tells of these alone.
        if np.linalg.matrix_rank(outside) < rank:
            least = min(least, people[subset].sum())
    return least


def three_groupings(seed: int) -> "tuple[Annotations, list[Groups]]":
    """Return three groupings of a small crowd; the third is the first two together, or another."""
    rng = np.random.default_rng(seed)
    number = int(rng.integers(12, 45))
    given = annotations_of(number)
    first = rng.choice(["a", "b", "c"], number, p=rng.dirichlet([2, 2, 2])).tolist()
    second = rng.choice(["x", "y", None], number, p=[0.5, 0.4, 0.1]).tolist()
    third = rng.choice(["1", "2", "3"], number, p=rng.dirichlet([2, 2, 2])).tolist()
    if seed % 3 == 0:
        third = [f"{one} {other}" for one, other in zip(first, second, strict=True)]
    return given, [grouped(given, value) for value in (first, second, third)]


@pytest.mark.parametrize("seed", range(20))
def test_nothing_about_few_people_follows_from_three_groupings(seed):
    given, groupings = three_groupings(seed)
    found = shown_together(groupings, given, minimum=MINIMUM)
    assert fewest_derivable(found) >= MINIMUM
    assert found[0].names == groupings[0].names, "the first grouping stays as it is"
    for before, after in zip(groupings, found, strict=True):
        sizes = dict(zip(before.names, before.sizes().tolist(), strict=True))
        assert after.sizes().tolist() == [sizes[name] for name in after.names]
        assert set(after.suppressed) >= set(before.suppressed)


@pytest.mark.parametrize("seed", range(12))
def test_nothing_about_few_people_follows_from_groupings_shown_one_after_another(seed):
    given, groupings = three_groupings(seed)
    shown: list[Groups] = []
    for number, grouping in enumerate(groupings):
        found = shown_together([*shown, grouping], given, minimum=MINIMUM, released=number)
        assert [match.names for match in found[:number]] == [match.names for match in shown]
        assert fewest_derivable(found) >= MINIMUM
        shown = found


def test_the_attack_succeeds_on_groupings_that_were_suppressed_alone():
    """Otherwise the test above would show nothing."""
    given = annotations_of(30)
    gender = ["woman" if person < 15 else "man" for person in range(30)]
    age = [f"{name} {'20s' if n % 15 < 13 else '30s'}" for n, name in enumerate(gender)]
    alone = [grouped(given, gender), grouped(given, age)]
    assert fewest_derivable(alone) == 2
    assert fewest_derivable(shown_together(alone, given, minimum=MINIMUM)) >= MINIMUM
