"""Groupings that are shown together, against an attacker who knows linear algebra."""

from itertools import chain, combinations

import numpy as np
import pytest

from modwatch.disagreement import Annotations
from modwatch.divergence import Groups, shown_together
from modwatch.errors import MetricInputError

MINIMUM = 4


def annotations(people: int) -> Annotations:
    return Annotations.of(
        item=[0] * people, annotator=range(people), label=np.arange(people) % 2, classes=(0, 1)
    )


def grouped(given: Annotations, names: "list[str | None]") -> Groups:
    known = {person: name for person, name in enumerate(names) if name is not None}
    try:
        return Groups.of(given, known, minimum=MINIMUM)
    except MetricInputError:
        none = Groups.of(given, dict.fromkeys(range(len(names)), "all"), minimum=1)
        return Groups(names=(), code=np.full_like(none.code, -1), suppressed={}, without=0)


def fewest_derivable(groupings: list[Groups]) -> float:
    """Return the fewest people of whom a combination of the shown figures tells; by all subsets."""
    codes = np.array([each.code for each in groupings])
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


@pytest.mark.parametrize("seed", range(60))
def test_nothing_about_few_people_follows_from_two_groupings(seed: int) -> None:
    rng = np.random.default_rng(seed)
    number = int(rng.integers(12, 60))
    given = annotations(number)
    first = rng.choice(["a", "b", "c", "d"], number, p=[0.5, 0.3, 0.15, 0.05]).tolist()
    if seed % 2:  # the second is finer than the first
        second = [
            f"{name}{each}" for name, each in zip(first, rng.integers(0, 3, number), strict=True)
        ]
    else:
        second = rng.choice(["x", "y", "z", None], number, p=[0.4, 0.3, 0.2, 0.1]).tolist()
    groupings = [grouped(given, first), grouped(given, second)]
    found = shown_together(groupings, given, minimum=MINIMUM)
    assert fewest_derivable(found) >= MINIMUM
    for before, after in zip(groupings, found, strict=True):
        assert set(after.names) <= set(before.names)
        sizes = dict(zip(before.names, before.sizes().tolist(), strict=True))
        assert after.sizes().tolist() == [sizes[name] for name in after.names]
        assert set(after.suppressed) >= set(before.suppressed)


def test_the_attack_succeeds_on_groupings_that_were_suppressed_alone() -> None:
    """Otherwise the test above would show nothing."""
    given = annotations(30)
    gender = ["woman" if person < 15 else "man" for person in range(30)]
    age = [f"{name} {'20s' if n % 15 < 13 else '30s'}" for n, name in enumerate(gender)]
    alone = [grouped(given, gender), grouped(given, age)]
    assert fewest_derivable(alone) == 2
    assert fewest_derivable(shown_together(alone, given, minimum=MINIMUM)) >= MINIMUM


def test_groupings_that_tell_of_many_people_only_stay_as_they_are() -> None:
    given = annotations(400)
    rng = np.random.default_rng(0)
    one = grouped(given, rng.choice(["a", "b", "c"], 400).tolist())
    other = grouped(given, rng.choice(["x", "y", "z"], 400).tolist())
    found = shown_together([one, other], given, minimum=MINIMUM)
    assert [each.names for each in found] == [one.names, other.names]
