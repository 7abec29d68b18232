"""Cohen's κ between and within groups of annotators."""

import numpy as np
import pandas as pd
from scipy import sparse

from modwatch.disagreement.annotations import Annotations
from modwatch.divergence.groups import Groups


def kappa_matrix(annotations: Annotations, groups: Groups) -> pd.DataFrame:
    """Return Cohen's κ of pairs of annotators who labelled the same item; (G, G), by group name.

    Between two groups the pairs have one annotator of each, and chance is by the label shares of
    either side. Within a group they are two different annotators, in both orders. Large items have
    many pairs and weigh more. NaN without pairs, and where every label is the same.

    Equal to `sklearn.metrics.cohen_kappa_score` of all pairs, which are not enumerated.

    >>> annotations = Annotations.of(
    ...     item=[0, 0, 1, 1], annotator=["a", "b", "a", "b"], label=[0, 0, 1, 1]
    ... )
    >>> groups = Groups.of(annotations, {"a": "x", "b": "y"}, minimum=1)
    >>> kappa_matrix(annotations, groups).loc["x", "y"]
    np.float64(1.0)
    """
    classes, names = annotations.n_classes, groups.names
    code = groups.code[annotations.annotator]
    rows = annotations.first & (code >= 0)
    column = code[rows] * classes + annotations.label[rows]
    counts = sparse.csr_matrix(
        (np.ones(int(rows.sum())), (annotations.item[rows], column)),
        shape=(len(annotations.items), len(names) * classes),
    )
    joint = (counts.T @ counts).toarray()
    joint[np.diag_indices_from(joint)] -= np.asarray(counts.sum(axis=0)).ravel()  # with oneself
    tables = joint.reshape(len(names), classes, len(names), classes).swapaxes(1, 2)
    total = tables.sum(axis=(2, 3))
    with np.errstate(invalid="ignore", divide="ignore"):
        agreed = np.trace(tables, axis1=2, axis2=3) / total
        chance = (tables.sum(axis=3) * tables.sum(axis=2)).sum(axis=2) / total**2
        kappa = np.where(chance < 1, (agreed - chance) / (1 - chance), np.nan)
    return pd.DataFrame(kappa, index=names, columns=names)
