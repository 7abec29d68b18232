"""Simulated annotators in groups, some of whom a model suits less."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modwatch.statistics.disagreement import Annotations
from modwatch.statistics.divergence import Groups


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """Annotations of a crowd, the groups, and a model's probabilities."""

    annotations: Annotations
    groups: Groups
    #: (I,) probability of the positive class.
    prob: NDArray[np.float64]


#: The same 500 items in every simulation: figures are about people, on the same items.
_ITEMS = np.random.default_rng(0).beta(0.8, 1.6, 500)
PROB = np.clip(_ITEMS + np.random.default_rng(1).normal(0, 0.15, 500), 0.01, 0.99)


def crowd(
    seed: int, *, people: int = 100, per_person: int = 30, bias: float = 0.0, groups: int = 3
) -> Crowd:
    """Return `people` of each group with `per_person` labels; the last group contradicts the model.

    People differ in strictness and in the number of their labels. A further share `bias` of the
    last group's labels that agree with the model are turned round.
    """
    rng = np.random.default_rng(seed)
    size = people * groups
    group = np.arange(size) % groups
    labels = rng.integers(per_person // 2, per_person * 3 // 2 + 1, size)
    person = np.repeat(np.arange(size), labels)
    item = rng.integers(0, _ITEMS.size, person.size)
    strict = rng.normal(0.5, 0.1, size)[person]
    label = (_ITEMS[item] + rng.normal(0, 0.1, person.size)) > strict
    agrees = label == (PROB[item] > 0.5)
    turned = agrees & (group[person] == groups - 1) & (rng.random(person.size) < bias)
    present = np.arange(_ITEMS.size)
    everybody = Annotations.from_columns(
        item=np.r_[present, item],
        annotator=np.r_[np.full(_ITEMS.size, size), person],
        label=np.r_[(_ITEMS > 0.5), label ^ turned].astype(int),
    )
    # One person labels every item, so that each has a code, and is no part of the crowd.
    annotations = everybody.of_annotators(everybody.annotators != size)
    names = {number: f"group {group[number]}" for number in range(size)}
    return Crowd(
        annotations=annotations,
        groups=Groups.from_annotations(annotations, names, minimum=1),
        prob=PROB[annotations.items],
    )
