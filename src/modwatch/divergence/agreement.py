"""Cohen's κ between and within groups of annotators."""

import numpy as np
import pandas as pd
from scipy import sparse

from modwatch.disagreement.annotations import Annotations
from modwatch.divergence.groups import Groups

#: Shared items below which κ would be hardly more than chance.
MINIMUM_SHARED = 30


def shared_items(annotations: Annotations, groups: Groups) -> pd.DataFrame:
    """Return the number of items that a pair of annotators labelled; (G, G), by group name.

    Between two groups an annotator of each, within a group two different annotators.

    >>> annotations = Annotations.of(
    ...     item=[0, 0, 0, 1, 1], annotator=["a", "b", "c", "a", "b"], label=[0, 0, 1, 1, 1]
    ... )
    >>> groups = Groups.of(annotations, {"a": "x", "b": "y", "c": "y"}, minimum=1)
    >>> shared_items(annotations, groups).to_numpy().tolist()
    [[0, 2], [2, 1]]
    """
    number = _counts(annotations, groups, by_class=False)
    some = (number > 0).astype(np.int64)
    shared = (some.T @ some).toarray()
    np.fill_diagonal(shared, np.asarray((number > 1).sum(axis=0)).ravel())
    return pd.DataFrame(shared, index=groups.names, columns=groups.names)


def kappa_matrix(
    annotations: Annotations, groups: Groups, *, minimum: int = MINIMUM_SHARED
) -> pd.DataFrame:
    """Return Cohen's κ of pairs of annotators who labelled the same item; (G, G), by group name.

    Between two groups the pairs have one annotator of each, and chance is by the label shares of
    either side. Within a group they are two different annotators, in both orders. Large items have
    many pairs and weigh more. NaN with fewer than `minimum` `shared_items`, and where every label
    is the same.

    Equal to `sklearn.metrics.cohen_kappa_score` of all pairs, which are not enumerated.

    >>> annotations = Annotations.of(
    ...     item=[0, 0, 1, 1], annotator=["a", "b", "a", "b"], label=[0, 0, 1, 1]
    ... )
    >>> groups = Groups.of(annotations, {"a": "x", "b": "y"}, minimum=1)
    >>> kappa_matrix(annotations, groups, minimum=2).loc["x", "y"]
    np.float64(1.0)
    """
    classes, names = annotations.n_classes, groups.names
    counts = _counts(annotations, groups)
    joint = (counts.T @ counts).toarray()
    joint[np.diag_indices_from(joint)] -= np.asarray(counts.sum(axis=0)).ravel()  # with oneself
    tables = joint.reshape(len(names), classes, len(names), classes).swapaxes(1, 2)
    total = tables.sum(axis=(2, 3))
    with np.errstate(invalid="ignore", divide="ignore"):
        agreed = np.trace(tables, axis1=2, axis2=3) / total
        chance = (tables.sum(axis=3) * tables.sum(axis=2)).sum(axis=2) / total**2
        kappa = np.where(chance < 1, (agreed - chance) / (1 - chance), np.nan)
    found = pd.DataFrame(kappa, index=names, columns=names)
    return found.where(shared_items(annotations, groups) >= minimum)


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
