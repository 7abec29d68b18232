"""Made-up populations with known labels, on which designs and intervals are tried.

Scores come from the binormal model: on a latent scale negatives are N(0, 1) and positives N(d, 1),
and the score is the posterior probability, so that it is calibrated. `hidden` positives look like
negatives. Comments are flagged when their probability exceeds 0.8, or for a dull score when they
are among the likeliest few.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from modwatch.errors import DesignError
from modwatch.metrics.inputs import Floats

#: Distance d of the two classes. `miscalibrated` ranks as `sharp` does, but was trained on as many
#: positives as negatives and is not sure enough: logit × 0.7 at prevalence 1/2.
SCORES = {"sharp": 3.3, "dull": 1.2, "miscalibrated": 3.3}

_FLAGGED_ABOVE = 0.8
#: Of a dull score: flagged comments, as a part of the positives.
_FLAGGED_SHARE = 0.3
_UNSURE = 0.7
_STEPS = 30


@dataclass(frozen=True, kw_only=True)
class Side:
    """Flagged or unflagged comments: score (n,) in [0, 1] and label (n,)."""

    score: Floats
    label: NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class SimulatedPopulation:
    """A population whose every label is known."""

    flagged: Side
    unflagged: Side

    @property
    def recall(self) -> float:
        """TP/(TP+FN)."""
        found, missed = self.flagged.label.sum(), self.unflagged.label.sum()
        return float(found / (found + missed))


def simulate(
    *, prevalence: float, score: str, hidden: float = 0.0, comments: int = 400_000, seed: int = 0
) -> SimulatedPopulation:
    """Return a population whose unflagged part has the given prevalence.

    `score` is one of `SCORES`; `prevalence` in (0, 0.5); `hidden` in [0, 1) the part of the
    positives that the score cannot see. DesignError otherwise, or when the score leaves no such
    prevalence among the comments that it does not flag.

    >>> made = simulate(prevalence=0.02, score="sharp", comments=20_000)
    >>> round(float(made.unflagged.label.mean()), 3)
    0.02
    """
    if score not in SCORES:
        raise DesignError(f"the score is {score!r}; it must be one of {tuple(SCORES)}")
    if not 0 < prevalence < 0.5 or not 0 <= hidden < 1:
        raise DesignError(
            f"the prevalence is {prevalence} and the hidden part {hidden}; they must lie in "
            "(0, 0.5) and [0, 1)"
        )
    draws = _Draws(SCORES[score], hidden, comments, seed)
    low, high = prevalence / 2, min(prevalence * 6, 0.6)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        label, logit, flagged = draws.at(middle)
        if label[~flagged].mean() < prevalence:
            low = middle
        else:
            high = middle
    allowed = min(prevalence / 100 + 1 / comments, prevalence / 2)
    if abs(label[~flagged].mean() - prevalence) > allowed:
        raise DesignError(
            f"{comments} comments with a {score} score leave no prevalence of {prevalence}; make "
            "more comments, or ask for less"
        )
    if score == "miscalibrated":
        logit = _UNSURE * (logit - special.logit(middle))
    chance = special.expit(logit)
    return SimulatedPopulation(
        flagged=Side(score=chance[flagged], label=label[flagged]),
        unflagged=Side(score=chance[~flagged], label=label[~flagged]),
    )


class _Draws:
    """What is random of a population, drawn once, so that the prevalence can be searched for."""

    def __init__(self, distance: float, hidden: float, comments: int, seed: int) -> None:
        generator = np.random.default_rng(seed)
        self._distance, self._hidden = distance, hidden
        self._negative = generator.standard_normal(comments)
        self._positive = distance + generator.standard_normal(comments)
        self._is_hidden = generator.random(comments) < hidden

    def at(self, prevalence: float) -> tuple[NDArray[np.bool_], Floats, NDArray[np.bool_]]:
        """Return label, logit of the posterior and decision of every comment."""
        label = np.arange(self._negative.size) < round(prevalence * self._negative.size)
        latent = np.where(label & ~self._is_hidden, self._positive, self._negative)
        odds = special.logit(prevalence * (1 - self._hidden))
        logit = odds + self._distance * latent - self._distance**2 / 2
        likely = np.quantile(logit, 1 - _FLAGGED_SHARE * prevalence)
        return label, logit, logit > min(special.logit(_FLAGGED_ABOVE), likely)
