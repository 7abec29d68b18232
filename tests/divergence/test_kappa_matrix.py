"""κ between and within groups, against an enumeration of all pairs."""

from itertools import permutations, product

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from modwatch.disagreement import Annotations
from modwatch.divergence import Groups, kappa_matrix


@pytest.mark.parametrize("classes", [2, 3])
def test_it_is_scikit_learns_kappa_of_all_pairs(classes: int) -> None:
    rng = np.random.default_rng(classes)
    rows = {
        (int(i), int(a)): 0
        for i, a in zip(rng.integers(0, 15, 150), rng.integers(0, 12, 150), strict=True)
    }
    item, annotator = np.array(list(rows)).T
    label = (item + (rng.random(item.size) < 0.4) * rng.integers(1, classes, item.size)) % classes
    annotations = Annotations.of(item=item, annotator=annotator, label=label)
    names = {a: "xyz"[a % 3] for a in range(12)}
    found = kappa_matrix(annotations, Groups.of(annotations, names, minimum=1))
    for one, other in product("xyz", repeat=2):
        pairs: list[tuple[int, int]] = []
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
        left, right = zip(*pairs, strict=True)
        assert found.loc[one, other] == pytest.approx(cohen_kappa_score(left, right))


def test_without_pairs_or_variety_there_is_none() -> None:
    annotations = Annotations.of(item=[0, 1], annotator=["a", "b"], label=[0, 0], classes=(0, 1))
    groups = Groups.of(annotations, {"a": "x", "b": "y"}, minimum=1)
    assert kappa_matrix(annotations, groups).isna().all().all()
    same = Annotations.of(item=[0, 0], annotator=["a", "b"], label=[0, 0], classes=(0, 1))
    assert kappa_matrix(same, groups).isna().all().all()
