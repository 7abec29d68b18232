"""Cohen's κ between and within groups of annotators."""

from collections.abc import Sequence
from itertools import combinations_with_replacement

import numpy as np
import pandas as pd
from scipy import sparse, special

from modwatch.statistics.arguments import Floats
from modwatch.statistics.disagreement.annotations import Annotations
from modwatch.statistics.divergence.annotator_groups import ALIKE, Groups, unlike
from modwatch.statistics.intervals import LEVEL, effective_number

#: Shared items below which κ would be hardly more than chance.
MINIMUM_SHARED = 30

#: Items, effectively, on which two people must agree on a class that is not the commonest.
MINIMUM_RARE = 5

#: Of a margin on the logarithmic scale, which reaches from −1 to 1.
_WIDEST = 50.0


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
    many pairs and weigh more. NaN with fewer than `minimum` `shared_items`, and with fewer than
    `MINIMUM_RARE` effective items (Kish, by pairs) of which two people say the same that is not
    the commonest class, as of toxic comments: chance is not known there. Equal to
    `sklearn.metrics.cohen_kappa_score` of all pairs, which are not enumerated.

    Columns: `group`, `other` (the same: within the group), `kappa`, `low`, `high`, `items`, which
    are the `shared_items`. The 95 % interval is for the people and the items of which these are
    samples, by Student's t of the linearised log(1 − κ), with people and items as clusters, whose
    variances are added; its degrees of freedom are the fewer of people and effective items. That
    is rather too wide: in 15 cells of 6 to 40 people, 60 to 600 items with 0.5 to 50 % toxic ones
    and error rates of 0.5 to 45 % it covers 96 to 100 %, where one is given. Where all annotators
    are alike it has the width that others who are not would give it.

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
    counts, classes = _counts(annotations, groups).tocsc(), annotations.n_classes
    of_group = [counts[:, start : start + classes] for start in range(0, counts.shape[1], classes)]
    met = _met(annotations, groups, of_group)
    rows = []
    for one, other in combinations_with_replacement(range(len(groups.names)), 2):
        row = {"group": groups.names[one], "other": groups.names[other]}
        low = kappa = high = float("nan")
        if shared[one, other] >= max(minimum, 1):
            people = met[other][groups.code == one], met[one][groups.code == other]
            items = (of_group[group].toarray() for group in (one, other))
            kappa, low, high = _kappa(*people, *items, same=one == other)
        ends = {"kappa": kappa, "low": low, "high": high}
        rows.append({**row, **ends, "items": int(shared[one, other])})
    return pd.DataFrame(rows)


def _met(
    annotations: Annotations, groups: Groups, of_group: Sequence[sparse.csc_matrix]
) -> list[Floats]:
    """Return how often a label of each annotator met one of another annotator, for each group.

    `of_group` are the labels of each item (I, K) by a group.
    """
    classes, size = annotations.n_classes, len(annotations.annotators)
    rows = annotations.first
    cell = annotations.annotator[rows].astype(np.int64) * classes + annotations.label[rows]
    shape = size * classes, len(annotations.items)
    one = np.ones(cell.size, np.int32)
    own = sparse.csr_matrix((one, (cell, annotations.item[rows])), shape=shape)
    number = np.bincount(cell, minlength=size * classes).reshape(size, classes, 1)
    found = []
    for group, counts in enumerate(of_group):
        met = (own @ counts).toarray().reshape(size, classes, classes)
        members = groups.code == group
        met[members] -= number[members] * np.eye(classes)  # with oneself
        found.append(met)
    return found


def _kappa(
    one: Floats, other: Floats, one_of: Floats, other_of: Floats, *, same: bool
) -> tuple[float, float, float]:
    """Return κ and its interval; NaN where it is not known.

    Args:
        one, other: (A, K, K) the labels that each annotator's labels met.
        one_of, other_of: (I, K) labels of each item by either group.
        same: whether both are one group.
    """
    pairs = one.sum(axis=0)
    total = pairs.sum()
    left, right = pairs.sum(axis=1) / total, pairs.sum(axis=0) / total
    agreed, chance = np.trace(pairs) / total, float(left @ right)
    agreeing = one_of * (other_of - same)  # (I, K)
    rare = effective_number(np.delete(agreeing, (left + right).argmax(), axis=1).sum(axis=1))
    if chance >= 1 or rare < MINIMUM_RARE:
        return float("nan"), float("nan"), float("nan")
    # How κ changes with one more pair of two labels.
    of_chance = left[None, :] + right[:, None] - 2 * chance
    slope = (np.eye(len(pairs)) - agreed) * (1 - chance) - (1 - agreed) * of_chance
    slope /= (1 - chance) ** 2 * total
    kappa = float((agreed - chance) / (1 - chance))
    of_people, of_others = (one * slope).sum(axis=(1, 2)), (other * slope.T).sum(axis=(1, 2))
    of_items = ((one_of @ slope) * other_of).sum(axis=1) - same * one_of @ np.diag(slope)
    of_items = of_items[one_of.any(axis=1) & other_of.any(axis=1)]
    people = [of_people + of_others] if same else [of_people, of_others]
    freedom = min(map(len, people)) - 1
    variance = sum(map(_variance, [*people, of_items]))
    if not freedom:
        return kappa, float("nan"), float("nan")
    if variance < ALIKE**2:  # all are alike
        margin = unlike(int(min(freedom + 1, rare))) * max(1 - kappa, kappa + 1)
        return kappa, max(kappa - margin, -1.0), min(kappa + margin, 1.0)
    quantile = special.stdtrit(max(min(freedom, effective_number(of_items**2)), 1), (1 + LEVEL) / 2)
    margin = min(float(quantile) * float(np.sqrt(variance)) / (1 - kappa), _WIDEST)
    low, high = (1 - (1 - kappa) * float(np.exp(sign * margin)) for sign in (1, -1))
    return kappa, max(low, -1.0), high


def _variance(influence: Floats) -> float:
    """Return the variance of a sum over clusters that each move it by so much (C,)."""
    size = len(influence)
    return size / max(size - 1, 1) * float((influence**2).sum())


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
