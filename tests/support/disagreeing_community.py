"""Annotations by the annotators of the synthetic community, with their planted rates."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from modwatch.statistics.disagreement import Annotations
from modwatch_lab.community import Person, simulate_labels


def community_labels(
    people: Sequence[Person],
    toxicity: NDArray[np.float64],
    *,
    per_person: int,
    again: int = 0,
    seed: int = 0,
) -> Annotations:
    """Return `per_person` labels of random comments, `again` of which are given again.

    Items and annotators are numbers: places in `toxicity` and `people`.
    """
    rng = np.random.default_rng(seed)
    items, labels, sizes = [], [], []
    for person in people:
        first = rng.choice(toxicity.size, per_person, replace=False)
        for number, item in enumerate((first, first[:again])):
            names = [str(place) for place in item]
            labels.append(
                simulate_labels(person, names, toxicity[item], round_number=number, seed=seed)
            )
            items.append(item)
        sizes.append(per_person + again)
    return Annotations.from_columns(
        item=np.concatenate(items),
        annotator=np.repeat(np.arange(len(people)), sizes),
        label=np.concatenate(labels),
    )
