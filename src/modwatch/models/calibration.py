"""Calibration: from a model's probabilities to probabilities at the prevalence of the stream."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import precision_recall_curve
from sklearn.model_selection import StratifiedKFold

from modwatch.common.errors import ModelError
from modwatch.models.manifest import AGAIN
from modwatch.statistics.decisions import is_flagged

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

#: From the fewest parameters to the most.
CalibrationMethod = Literal["none", "platt", "isotonic"]
METHODS: tuple[CalibrationMethod, ...] = get_args(CalibrationMethod)

#: Probabilities are moved this far from 0 and 1 before their log odds are taken.
_EDGE = 1e-12
#: Smallest slope, so that the order of comments stays.
_LEAST_SLOPE = 1e-3
_FOLDS = 5
#: Parameters of each method but isotonic, whose blocks have two each.
_COEFFICIENTS = {"none": 0, "platt": 2}
#: Part of what is left to 0 and to 1 by which isotonic regression rises beyond its blocks.
_EDGE_RISE = 0.01


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """An increasing function of the probability, then a shift to another prevalence.

    - `platt`: σ(a·ℓ + c) of the log odds ℓ (Platt 1999)
    - `isotonic`: linear between the centres of the blocks of isotonic regression (Oron & Flournoy
      2017), so that comments of one block keep their order

    Shift: Saerens, Latinne & Decaestecker (2002). With the same distribution of comments in each
    class, a change of the prevalence adds a constant to the log odds.

    >>> rarer = Calibration(method="none", prior_shift=prior_shift(0.5, 0.01))
    >>> rarer(np.array([0.5])).round(6).tolist()
    [0.01]
    """

    method: CalibrationMethod
    #: a, c. Of isotonic: the probabilities of the centres, then their values.
    parameters: tuple[float, ...] = ()
    #: Log odds of the expected prevalence minus those of the corpus.
    prior_shift: float = 0.0

    @classmethod
    def from_json(cls, values: dict[str, Any], *, origin: Path) -> "Calibration":
        """Return the calibration of JSON values; ModelError names `origin` when it is invalid."""
        try:
            made = cls(**values | {"parameters": tuple(map(float, values["parameters"]))})
            finite = bool(np.isfinite([*made.parameters, made.prior_shift]).all())
        except (TypeError, KeyError, ValueError) as exc:
            raise ModelError(f"{origin} has no valid calibration; {AGAIN}") from exc
        if made.method not in METHODS:
            raise ModelError(
                f"{origin}: the calibration must be one of {', '.join(METHODS)}, got "
                f"{made.method!r}; {AGAIN}"
            )
        number = len(made.parameters)
        pairs = made.method == "isotonic" and number >= 2 and number % 2 == 0
        if not finite or not (pairs or number == _COEFFICIENTS.get(made.method)):
            raise ModelError(
                f"{origin}: the parameters of the calibration ({made.method}) are invalid; {AGAIN}"
            )
        return made

    def __call__(self, prob: Floats) -> Floats:
        """Return calibrated probabilities, in the shape of `prob`."""
        if self.method == "isotonic":
            centres, values = np.split(np.asarray(self.parameters), 2)
            prob = np.interp(prob, centres, values)
        elif self.method == "platt":
            prob = expit(_features(prob) @ np.asarray(self.parameters))
        if self.prior_shift:
            prob = expit(logit(np.clip(prob, _EDGE, 1 - _EDGE)) + self.prior_shift)
        return np.asarray(prob)


def fit_calibration(prob: Floats, label: Labels, method: CalibrationMethod) -> Calibration:
    """Return the calibration with the least log loss on held-out comments.

    Labels are smoothed as in Platt (1999), so the result is finite for perfectly separated classes.

    Raises:
        ModelError: a class is missing.
    """
    target = _smoothed(label)
    if method == "none":
        return Calibration(method=method)
    if method == "isotonic":
        return Calibration(method=method, parameters=_isotonic(prob, target))
    return Calibration(method=method, parameters=_logistic(_features(prob), target))


@dataclass(frozen=True, kw_only=True)
class CalibrationChoice:
    """A calibration chosen by cross-validation."""

    calibration: Calibration
    #: (N,) held-out probabilities, each calibrated without its own fold.
    prob: Floats
    #: Mean log loss of each method on the folds that it was not fitted to.
    log_loss: dict[CalibrationMethod, float]


def choose_calibration(
    prob: Floats,
    label: Labels,
    *,
    seed: int,
    methods: Sequence[CalibrationMethod] = METHODS,
) -> CalibrationChoice:
    """Return the calibration chosen by five-fold cross-validation.

    The method with the fewest parameters is chosen whose mean log loss is within one standard error
    of the least.

    Raises:
        ModelError: fewer than two comments of a class.
    """
    folds = min(_FOLDS, int(min(label.sum(), (1 - label).sum())))
    if folds < 2:
        raise ModelError(
            f"held-out split has {int(label.sum())} toxic and {int((1 - label).sum())} other "
            "comments; calibration requires two of each: use a larger corpus or a larger `held_out`"
        )
    splits = list(StratifiedKFold(folds, shuffle=True, random_state=seed).split(prob, label))
    found = {method: np.empty(len(label)) for method in methods}
    for method in methods:
        for fit, test in splits:
            found[method][test] = fit_calibration(prob[fit], label[fit], method)(prob[test])
    loss = {method: _log_loss(found[method], label) for method in methods}
    best = min(methods, key=lambda method: float(loss[method].mean()))
    chosen = next(
        method
        for method in methods
        if (worse := loss[method] - loss[best]).mean() <= worse.std() / np.sqrt(len(label))
    )
    return CalibrationChoice(
        calibration=fit_calibration(prob, label, chosen),
        prob=found[chosen],
        log_loss={method: float(loss[method].mean()) for method in methods},
    )


def prior_shift(corpus: float, expected: float) -> float:
    """Return log odds of the `expected` prevalence minus those of the `corpus`, both in (0, 1)."""
    return float(logit(expected) - logit(corpus))


def best_f1_threshold(prob: Floats, label: Labels, weight: Floats) -> float:
    """Return the threshold with the best weighted F1 on held-out comments.

    It is halfway between two of the probabilities, so that `prob > threshold` separates them.
    """
    precision, recall, scores = precision_recall_curve(label, prob, sample_weight=weight)
    sums = np.maximum(precision + recall, np.finfo(float).tiny)
    best = int(np.argmax((2 * precision * recall / sums)[:-1]))
    below = prob[prob < scores[best]]
    lower = float(below.max()) if len(below) else 0.0
    middle = (float(scores[best]) + lower) / 2
    return middle if is_flagged(scores[best], middle) else lower  # neighbours in float32


def prevalence_weights(label: Labels, expected: float) -> Floats:
    """Return weights (N,) that give labels the `expected` prevalence; their mean is 1."""
    corpus = label.mean()
    weights: Floats = np.where(label == 1, expected / corpus, (1 - expected) / (1 - corpus))
    return weights


def _features(prob: Floats) -> Floats:
    """Return what the log odds are linear in, (…, 2)."""
    clipped = np.clip(prob, _EDGE, 1 - _EDGE)
    return np.stack([logit(clipped), np.ones_like(clipped)], axis=-1)


def _smoothed(label: Labels) -> Floats:
    positive = int(label.sum())
    negative = len(label) - positive
    if not positive or not negative:
        raise ModelError(
            f"{positive} toxic and {negative} other comments; calibration requires both"
        )
    return np.where(label == 1, (positive + 1) / (positive + 2), 1 / (negative + 2))


def _logistic(features: Floats, target: Floats) -> tuple[float, ...]:
    """Return slope and intercept of logistic regression; the slope is positive."""

    def loss(point: Floats) -> tuple[float, Floats]:
        score = features @ point
        value = np.mean(np.logaddexp(0, score) - target * score)
        return float(value), features.T @ (expit(score) - target) / len(target)

    bounds = [(_LEAST_SLOPE, None), (None, None)]
    least = minimize(loss, [1.0, 0.0], jac=True, method="L-BFGS-B", bounds=bounds, tol=1e-10)
    return tuple(map(float, least.x))


def _isotonic(prob: Floats, target: Floats) -> tuple[float, ...]:
    """Return the centres of the blocks of isotonic regression, then their values.

    Before the first and after the last, the values rise a little, so that the order stays.
    """
    fitted = IsotonicRegression(increasing=True).fit_transform(prob, target)
    values, block = np.unique(fitted.round(12), return_inverse=True)  # of a block, equal
    centres = np.bincount(block, weights=prob) / np.bincount(block)
    ends = values[0] * (1 - _EDGE_RISE), values[-1] + _EDGE_RISE * (1 - values[-1])
    centres = np.concatenate([[0.0], centres, [1.0]])
    values = np.concatenate([ends[:1], values, ends[1:]])
    centres, first = np.unique(centres, return_index=True)
    return (*map(float, centres), *map(float, values[first]))


def _log_loss(prob: Floats, label: Labels) -> Floats:
    clipped = np.clip(prob, _EDGE, 1 - _EDGE)
    return np.asarray(-np.where(label == 1, np.log(clipped), np.log1p(-clipped)))
