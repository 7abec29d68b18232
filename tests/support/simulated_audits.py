"""Simulated audits: populations with known labels, and the paper's pilot design as a baseline.

Scores come from the binormal model: on a latent scale negatives are N(0, 1) and positives N(d, 1),
and the score is the posterior probability, so that it is calibrated. `hidden` positives look like
negatives. Comments are flagged when their probability exceeds 0.8; with a dull score, also the most
likely few.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from modwatch.audit.allocation import pilot
from modwatch.audit.arguments import Ints, strata_sizes, whole_numbers
from modwatch.audit.stratified import StratumCounts
from modwatch.errors import DesignError, MetricInputError
from modwatch.metrics.inputs import Floats

#: Distance d of the two classes. `miscalibrated` ranks like `sharp`, but was trained on balanced
#: classes and is underconfident: logit × 0.7 at prevalence 1/2.
SCORES = {"sharp": 3.3, "dull": 1.2, "miscalibrated": 3.3}

_FLAGGED_ABOVE = 0.8
#: Flagged comments with a dull score, relative to the number of positives.
_FLAGGED_SHARE = 0.3
_UNDERCONFIDENCE = 0.7
_STEPS = 30


@dataclass(frozen=True, kw_only=True)
class Side:
    """Flagged or unflagged comments: score (n,) in [0, 1] and label (n,)."""

    score: Floats
    label: NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class SimulatedPopulation:
    """A population in which every label is known."""

    flagged: Side
    unflagged: Side

    @property
    def recall(self) -> float:
        """TP/(TP+FN)."""
        tp, fn = self.flagged.label.sum(), self.unflagged.label.sum()
        return float(tp / (tp + fn))


def simulate(
    *, prevalence: float, score: str, hidden: float = 0.0, comments: int = 400_000, seed: int = 0
) -> SimulatedPopulation:
    """Return a population whose unflagged part has the given prevalence.

    `score` is one of `SCORES`; `prevalence` in (0, 0.5); `hidden` in [0, 1) the share of the
    positives that the score does not detect. DesignError otherwise, or when the prevalence cannot
    be reached among the comments that the score does not flag.

    >>> made = simulate(prevalence=0.02, score="sharp", comments=20_000)
    >>> round(float(made.unflagged.label.mean()), 3)
    0.02
    """
    if score not in SCORES:
        raise DesignError(f"Score must be one of {tuple(SCORES)}, got {score!r}.")
    if not 0 < prevalence < 0.5 or not 0 <= hidden < 1:
        raise DesignError(
            f"Prevalence must be in (0, 0.5) and hidden in [0, 1), got {prevalence} and {hidden}."
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
            f"{comments} comments with a {score} score cannot have prevalence {prevalence}; use "
            "more comments or a lower prevalence."
        )
    if score == "miscalibrated":
        logit = _UNDERCONFIDENCE * (logit - special.logit(middle))
    chance = special.expit(logit)
    return SimulatedPopulation(
        flagged=Side(score=chance[flagged], label=label[flagged]),
        unflagged=Side(score=chance[~flagged], label=label[~flagged]),
    )


class _Draws:
    """The random numbers of a population, drawn once, so that bisection on the prevalence works."""

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


#: The paper's recommendation: strata of equal size, and pilot labels of each.
PILOT_BINS, PILOT_LABELS = 8, 50

#: The hypergeometric generator of numpy is limited to smaller populations.
_MAX_POPULATION = 10**9


def draw_positives(
    population: ArrayLike,
    positives: ArrayLike,
    labels: ArrayLike,
    generator: np.random.Generator,
    *,
    repetitions: int | None = None,
) -> Ints:
    """Return the positives (R, H) or (H,) in a sample without replacement of each stratum.

    MetricInputError unless positives and labels are part of a population under 10⁹ a stratum.

    >>> draw_positives([10, 10], [10, 0], [3, 4], np.random.default_rng(0)).tolist()
    [3, 0]
    """
    given = {"population": population, "positives": positives, "labels": labels}
    sizes, known, drawn = (whole_numbers(*each) for each in given.items())
    if not sizes.shape == known.shape == drawn.shape:
        raise MetricInputError("population, positives and labels must have equal lengths.")
    if (np.maximum(known, drawn) > sizes).any() or (sizes >= _MAX_POPULATION).any():
        raise MetricInputError(
            "A stratum has more positives or labels than comments, or at least "
            f"{_MAX_POPULATION} comments."
        )
    shape = known.shape if repetitions is None else (repetitions, known.size)
    return generator.hypergeometric(known, sizes - known, drawn, size=shape)


def pilot_audit(
    population: ArrayLike,
    positives: ArrayLike,
    score: ArrayLike,
    labels: int,
    generator: np.random.Generator,
    *,
    pilot_labels: int = PILOT_LABELS,
) -> StratumCounts:
    """Return one audit by the paper's design: a pilot, its allocation, and all labels pooled.

    `population` N_h, `positives` K_h and mean `score`, each (H,); `labels` in all. The paper pools
    (section 4.4). This is biased: strata where the pilot happens to show positives get more labels.
    """
    sizes = strata_sizes(population)
    known = whole_numbers("positives", positives)
    first = np.minimum(sizes, pilot_labels)
    seen = draw_positives(sizes, known, first, generator)
    total = pilot(sizes, first, seen, labels)
    more = draw_positives(sizes - first, known - seen, total - first, generator)
    return StratumCounts.of(population=sizes, labels=total, positives=seen + more, score=score)
