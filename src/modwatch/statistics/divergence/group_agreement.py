"""Cohen's κ between and within groups of annotators."""

from itertools import combinations_with_replacement

import numpy as np
import pandas as pd
from scipy import sparse, special

from modwatch.statistics.arguments import Floats
from modwatch.statistics.disagreement.annotations import Annotations
from modwatch.statistics.divergence.annotator_groups import ALIKE, Groups, unlike
from modwatch.statistics.intervals import LEVEL

#: Shared items below which κ would be hardly more than chance.
MINIMUM_SHARED = 30


def shared_items(annotations: Annotations, groups: Groups) -> pd.DataFrame:
    """Return the number of items that a pair of annotators labelled; (G, G), by group name.

    Between two groups an annotator of each, within a group two different annotators.

    >>> annotations = Annotations.from_columns(
    ...     item=[0, 0, 0, 1, 1], annotator=["a", "b", "c", "a", "b"], label=[0, 0, 1, 1, 1]
    ... )
    >>> groups = Groups.from_annotations(annotations, {"a": "x", "b": "y", "c": "y"}, minimum=1)
    >>> shared_items(annotations, groups).to_numpy().tolist()
    [[0, 2], [2, 1]]
    """
    number = _counts(annotations, groups, by_class=False)
    some = (number > 0).astype(np.int64)
    shared = (some.T @ some).toarray()
    np.fill_diagonal(shared, np.asarray((number > 1).sum(axis=0)).ravel())
    return pd.DataFrame(shared, index=groups.names, columns=groups.names)


def kappa_table(
    annotations: Annotations, groups: Groups, *, minimum: int = MINIMUM_SHARED
) -> pd.DataFrame:
    """Return Cohen's κ of annotators who labelled the same item; a row each pair of groups.

    Between two groups the pairs have one annotator of each, and chance is by the label shares of
    either side. Within a group they are two different annotators, in both orders. Large items have
    many pairs and weigh more. NaN with fewer than `minimum` `shared_items`, and where every label
    is the same. Equal to `sklearn.metrics.cohen_kappa_score` of all pairs, which are not
    enumerated.

    Columns: `group`, `other` (the same: within the group), `kappa`, `low`, `high`, `items`, which
    are the `shared_items`. The 95 % interval is for the people of whom the annotators are a sample,
    by Student's t of the linearised κ, annotators as clusters. A pair counts for either of its
    annotators, which makes it rather too wide: it covers 95 to 99 % with 20 annotators a group.
    Where all annotators are alike it has the width that others who are not would give it.

    >>> annotations = Annotations.from_columns(
    ...     item=np.repeat(np.arange(40), 4), annotator=np.tile(list("abcd"), 40),
    ...     label=(np.arange(160) // 4 % 2) ^ (np.arange(160) % 11 == 0),
    ... )
    >>> group = {"a": "x", "b": "x", "c": "y", "d": "y"}
    >>> groups = Groups.from_annotations(annotations, group, minimum=1)
    >>> kappa_table(annotations, groups)[["group", "other", "kappa"]].round(2).to_numpy().tolist()
    [['x', 'x', 0.65], ['x', 'y', 0.62], ['y', 'y', 0.6]]
    """
    shared = shared_items(annotations, groups).to_numpy()
    met = _met(annotations, groups)
    rows = []
    for one, other in combinations_with_replacement(range(len(groups.names)), 2):
        row = {"group": groups.names[one], "other": groups.names[other]}
        low = kappa = high = float("nan")
        if shared[one, other] >= minimum:
            of_one, of_other = met[other][groups.code == one], met[one][groups.code == other]
            kappa, low, high = _kappa(of_one, of_other, same=one == other)
        items = int(shared[one, other])
        rows.append({**row, "kappa": kappa, "low": low, "high": high, "items": items})
    return pd.DataFrame(rows)


def _met(annotations: Annotations, groups: Groups) -> list[Floats]:
    """Return how often a label of each annotator met one of another annotator, for each group."""
    classes, size = annotations.n_classes, len(annotations.annotators)
    rows = annotations.first
    cell = annotations.annotator[rows].astype(np.int64) * classes + annotations.label[rows]
    shape = size * classes, len(annotations.items)
    one = np.ones(cell.size, np.int32)
    own = sparse.csr_matrix((one, (cell, annotations.item[rows])), shape=shape)
    number = np.bincount(cell, minlength=size * classes).reshape(size, classes, 1)
    counts = _counts(annotations, groups).astype(np.int32).tocsc()
    found = []
    for group in range(len(groups.names)):
        of_group = counts[:, group * classes : (group + 1) * classes]
        met = (own @ of_group).toarray().astype(np.float64).reshape(size, classes, classes)
        members = groups.code == group
        met[members] -= number[members] * np.eye(classes)  # with oneself
        found.append(met)
    return found


def _kappa(one: Floats, other: Floats, *, same: bool) -> tuple[float, float, float]:
    """Return κ and its interval from the labels that each annotator's labels met (A, K, K)."""
    pairs = one.sum(axis=0)
    total = pairs.sum()
    left, right = pairs.sum(axis=1) / total, pairs.sum(axis=0) / total
    agreed, chance = np.trace(pairs) / total, float(left @ right)
    if chance >= 1:
        return float("nan"), float("nan"), float("nan")
    # How κ changes with one more pair of two labels.
    of_chance = left[None, :] + right[:, None] - 2 * chance
    slope = (np.eye(len(pairs)) - agreed) * (1 - chance) - (1 - agreed) * of_chance
    slope /= (1 - chance) ** 2 * total
    variance = sum(
        len(influence) / max(len(influence) - 1, 1) * float((influence**2).sum())
        for influence in _influences(one, other, slope, same=same)
    )
    kappa = float((agreed - chance) / (1 - chance))
    freedom = min(len(one), len(other)) - 1
    margin = float(special.stdtrit(freedom, (1 + LEVEL) / 2)) * float(np.sqrt(variance))
    if freedom and margin < ALIKE:  # all are alike
        margin = unlike(freedom + 1) * max(1 - kappa, kappa + 1)
    return kappa, max(kappa - margin, -1.0), min(kappa + margin, 1.0)


def _influences(one: Floats, other: Floats, slope: Floats, *, same: bool) -> list[Floats]:
    """Return by how much each annotator of either group moves κ."""
    of_one = (one * slope).sum(axis=(1, 2))
    of_other = (other * slope.T).sum(axis=(1, 2))
    return [of_one + of_other] if same else [of_one, of_other]


def _counts(
    annotations: Annotations, groups: Groups, *, by_class: bool = True
) -> sparse.csr_matrix:
    """Return the number of first labels of each item, (I, G K) by group and class, or (I, G)."""
    classes = annotations.n_classes if by_class else 1
    code = groups.code[annotations.annotator]
    rows = annotations.first & (code >= 0)
    column = code[rows] * classes + (annotations.label[rows] if by_class else 0)
    return sparse.csr_matrix(
        (np.ones(int(rows.sum())), (annotations.item[rows], column)),
        shape=(len(annotations.items), len(groups.names) * classes),
    )
