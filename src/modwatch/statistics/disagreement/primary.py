"""Primary labels: the label that an annotator would give most often, as a distribution by item."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from modwatch.common.errors import MetricInputError
from modwatch.statistics import arguments
from modwatch.statistics.arguments import Floats
from modwatch.statistics.disagreement.annotations import Annotations
from modwatch.statistics.disagreement.flip_rates import FlipRates


def primary_labels(label_share: ArrayLike, flip_rate: ArrayLike) -> Floats:
    """Return the distribution (…, K) of primary labels of observed label shares (…, K).

    p*(y) ∝ max(p(y) − f/(K−1), 0) (Gordon et al. 2021, Eq. 2, normalised to 1 as its text says).
    With f = 0 the shares stay as they are; with f of at least the share of all minority labels
    together, the majority label gets all.

    The paper's example, shares 0.6 and 0.4 with f = 0.176, gives 0.54 and 0.28 in its text, which
    does not follow from Eq. 2.

    Args:
        label_share: (…, K) shares in [0, 1] that sum to 1.
        flip_rate: f, of each item (…) or of all.

    Raises:
        MetricInputError: shares that do not sum to 1, or f outside [0, (K−1)/K).

    >>> primary_labels([0.6, 0.4], 0.176).round(3).tolist()
    [0.654, 0.346]
    >>> primary_labels([0.6, 0.4], 0.45).tolist()
    [1.0, 0.0]
    """
    share = arguments.numeric("label_share", label_share)
    if share.ndim < 1 or share.shape[-1] < 2:
        raise MetricInputError("label_share must have a last axis of at least two classes")
    if not ((share >= 0) & (share <= 1)).all() or not np.allclose(share.sum(axis=-1), 1):
        raise MetricInputError("label_share must be shares in [0, 1] that sum to 1 by item")
    flip = arguments.numeric("flip_rate", flip_rate)
    if flip.ndim and flip.shape != share.shape[:-1]:
        raise MetricInputError("flip_rate must be one for all, or one for each item")
    _check_flip(flip, share.shape[-1])
    kept = np.maximum(share - flip[..., None] / (share.shape[-1] - 1), 0)
    return np.asarray(kept / kept.sum(axis=-1, keepdims=True))


def primary_shares(
    annotations: Annotations,
    rates: FlipRates,
    *,
    bound: Literal["low", "high"] | None = None,
) -> Floats:
    """Return unbiased estimates (I, K) of the shares of primary labels; they may leave [0, 1].

    p*(y) = (p(y) − f/(K−1)) / (1 − K·f/(K−1)) (Gordon et al. 2021, Eq. 1). Means over many items,
    and metrics made of them, are unbiased, where Eq. 2, which clips each item, is not: of five
    annotators who all agree in truth and flip a tenth of their labels, it makes 93 % agree.

    With flip rates by annotator, each annotator's label is corrected by their own rate.
    """
    own, flipped = primary_parts(annotations, rates, bound=bound)
    given = annotations.counts().sum(axis=1, keepdims=True)
    return np.asarray((own - flipped.sum(axis=1, keepdims=True)) / given)


def primary_parts(
    annotations: Annotations,
    rates: FlipRates,
    *,
    bound: Literal["low", "high"] | None = None,
) -> tuple[Floats, Floats]:
    """Return what the labels of each item and class add to the shares of primary labels, times n.

    A label of class y adds s = 1 / (1 − K·f/(K−1)) to the class y, the first (I, K), and takes
    s·f/(K−1) from every class, the second (I, K).

    Raises:
        MetricInputError: a flip rate outside [0, (K−1)/K).
    """
    counts, classes = annotations.counts(), annotations.n_classes
    flip = rates.rates(bound)
    _check_flip(flip, classes)
    rate = flip / (classes - 1)
    scale = 1 / (1 - classes * rate)
    return counts * scale[:, None], counts * (scale * rate)[:, None]


def _check_flip(flip: Floats, classes: int) -> None:
    most = 1 - 1 / classes
    if not ((flip >= 0) & (flip < most)).all():
        raise MetricInputError(
            f"flip_rate must be in [0, {most:g}) for {classes} classes; a higher one means "
            "labels without information"
        )
