"""Calibration: from raw logits to probabilities at the prevalence of the stream."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.metrics import precision_recall_curve

from modwatch.errors import ModelError
from modwatch.models.heads import GaussianLogit

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Platt scaling of the logit, then a shift from the prevalence of the corpus to another.

    Scaling: Platt (1999). Shift: Saerens, Latinne & Decaestecker (2002), in log odds: with the same
    distribution of comments in each class, a change of the prevalence multiplies the odds by a
    constant. Both apply to the whole posterior of the logit.

    >>> rarer = Calibration(scale=1.0, shift=0.0, prior_shift=prior_shift(0.5, 0.01))
    >>> even = GaussianLogit(mean=np.zeros(1), variance=np.zeros(1), factor=0.1)
    >>> rarer(even).prob().round(6).tolist()
    [0.01]
    """

    scale: float
    shift: float
    #: Log odds of the expected prevalence minus those of the corpus.
    prior_shift: float

    def __call__(self, posterior: GaussianLogit) -> GaussianLogit:
        """Return the calibrated posterior."""
        return posterior.affine(self.scale, self.shift + self.prior_shift)


def prior_shift(corpus: float, expected: float) -> float:
    """Return log odds of the `expected` prevalence minus those of the `corpus`, both in (0, 1)."""
    return float(np.log(expected / (1 - expected)) - np.log(corpus / (1 - corpus)))


def platt(posterior: GaussianLogit, label: Labels) -> tuple[float, float]:
    """Return (scale, shift) of the logit with the least log loss on held-out comments.

    The scale is positive, so the order of comments does not change. Labels are smoothed as in
    Platt (1999), so the result is finite for perfectly separated classes. ModelError when a class
    is missing.
    """
    positive = int(label.sum())
    negative = len(label) - positive
    if not positive or not negative:
        raise ModelError(
            f"held-out split has {positive} toxic and {negative} other comments; calibration "
            "requires both: use a larger corpus or a larger `held_out`"
        )
    target = np.where(label == 1, (positive + 1) / (positive + 2), 1 / (negative + 2))
    least = minimize(_log_loss(posterior, target), x0=np.zeros(2), method="Nelder-Mead")
    return float(np.exp(least.x[0])), float(least.x[1])


def best_f1_threshold(prob: Floats, label: Labels, weight: Floats) -> float:
    """Return the threshold with the best weighted F1 on held-out comments.

    It is halfway between two of the probabilities, so that `prob > threshold` separates them.
    """
    precision, recall, scores = precision_recall_curve(label, prob, sample_weight=weight)
    sums = np.maximum(precision + recall, np.finfo(float).tiny)
    best = int(np.argmax((2 * precision * recall / sums)[:-1]))
    below = prob[prob < scores[best]]
    return float((scores[best] + (below.max() if len(below) else 0.0)) / 2)


def prevalence_weights(label: Labels, expected: float) -> Floats:
    """Return weights (N,) that give labels the `expected` prevalence; their mean is 1."""
    corpus = label.mean()
    weights: Floats = np.where(label == 1, expected / corpus, (1 - expected) / (1 - corpus))
    return weights


def _log_loss(posterior: GaussianLogit, target: Floats) -> Callable[[Floats], float]:
    def loss(point: Floats) -> float:
        prob = posterior.affine(float(np.exp(point[0])), float(point[1])).prob()
        prob = np.clip(prob, 1e-12, 1 - 1e-12)
        return float(-np.mean(target * np.log(prob) + (1 - target) * np.log1p(-prob)))

    return loss
