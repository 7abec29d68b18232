"""Does a model rank comments that mention an identity as well as others?

The AUCs of Borkan et al. (2019, *Nuanced Metrics for Measuring Unintended Bias with Real Data for
Text Classification*), which the Jigsaw competition on unintended bias used.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modwatch.statistics import auroc, inputs

Floats = NDArray[np.float64]
_Rows = tuple[Floats, Floats, Floats, NDArray[np.bool_]]


def subgroup_auc(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    mentions: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
) -> float | None:
    """Return the AUROC in [0, 1] among the comments that mention the identity.

    Low where the model cannot tell toxic comments about the group from others. None with one class
    only.

    Args:
        y_true: (n,) labels 0 or 1.
        y_prob: (n,) probabilities.
        mentions: (n,) whether a comment mentions the identity.
        sample_weight: (n,) inverse inclusion probabilities; 1 each by default.

    Raises:
        MetricInputError: arguments out of range or of different lengths.

    >>> subgroup_auc([1, 0, 1, 0], [0.9, 0.8, 0.6, 0.1], [True, True, False, False])
    1.0
    """
    y, p, w, mention = _rows(y_true, y_prob, mentions, sample_weight)
    return auroc(y[mention], p[mention], sample_weight=w[mention])


def bpsn_auc(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    mentions: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
) -> float | None:
    """Return the AUROC of toxic comments elsewhere against harmless ones that mention the identity.

    Background positive, subgroup negative: low where mentions alone raise the score. Arguments and
    errors as `subgroup_auc`.

    >>> bpsn_auc([1, 0, 1, 0], [0.9, 0.8, 0.6, 0.1], [True, True, False, False])
    0.0
    """
    y, p, w, mention = _rows(y_true, y_prob, mentions, sample_weight)
    rows = mention == (y == 0)
    return auroc(y[rows], p[rows], sample_weight=w[rows])


def bnsp_auc(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    mentions: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
) -> float | None:
    """Return the AUROC of toxic comments that mention the identity against harmless ones elsewhere.

    Background negative, subgroup positive: low where mentions alone lower the score. Arguments and
    errors as `subgroup_auc`.

    >>> bnsp_auc([1, 0, 1, 0], [0.9, 0.8, 0.6, 0.1], [True, True, False, False])
    1.0
    """
    y, p, w, mention = _rows(y_true, y_prob, mentions, sample_weight)
    rows = mention == (y == 1)
    return auroc(y[rows], p[rows], sample_weight=w[rows])


def calibration_gap(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    mentions: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
) -> float | None:
    """Return how much more the model overestimates toxicity with mentions than without.

    The mean of p − y where the identity is mentioned, less that elsewhere, in [−2, 2]; 0 is none.
    None if one of the parts has no weight. Arguments and errors as `subgroup_auc`.

    >>> round(calibration_gap([1, 0, 1, 0], [0.9, 0.8, 0.6, 0.1], [True, True, False, False]), 3)
    0.5
    """
    y, p, w, mention = _rows(y_true, y_prob, mentions, sample_weight)
    if not w[mention].sum() or not w[~mention].sum():
        return None
    excess = p - y
    with_mention = np.average(excess[mention], weights=w[mention])
    return float(with_mention - np.average(excess[~mention], weights=w[~mention]))


def _rows(
    y_true: ArrayLike, y_prob: ArrayLike, mentions: ArrayLike, sample_weight: ArrayLike | None
) -> _Rows:
    y, p, w = inputs.rows(y_true, y_prob, sample_weight, None)
    mention = inputs.labels(mentions, name="mentions") == 1
    inputs.same_length(y_true=y, mentions=mention)
    return y, p, w, mention
