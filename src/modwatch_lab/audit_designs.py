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

from modwatch.common.errors import DesignError, MetricInputError
from modwatch.routing.design import RoutingPolicy, design_routing
from modwatch.statistics.arguments import Floats, Ints, strata_sizes, whole_numbers
from modwatch.statistics.audit.allocation import beyond
from modwatch.statistics.audit.sample_design import Strata
from modwatch.statistics.audit.stratified import StratumCounts
from modwatch.statistics.recalibration import KnownLabels

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


#: Populations on which a design that trusts the score does badly, or an interval that trusts it.
HOSTILE = (
    "bimodal",
    "anti-informative",
    "five scores",
    "zeros and ones",
    "trained balanced",
    "threads of 40",
    "60 % flagged",
    "300 comments",
    "30 % hidden",
)

_THREAD = 40


def hostile(name: str, *, seed: int = 0) -> SimulatedPopulation:
    """Return one of `HOSTILE`; DesignError for another.

    - bimodal: the model rates half of the unflagged as harmless and half as undecided, and is
      equally wrong about both.
    - anti-informative: among the unflagged, the more harmless the score, the more positives.
    - five scores: a score of five distinct values.
    - zeros and ones: nine in ten scores of the unflagged are exactly 0, a third of the positives
      among them; most of the flagged have exactly 1.
    - trained balanced: prevalence 0.05 %, a model trained on as many positives as negatives.
    - threads of 40: near-duplicates, 40 at a time with the same label and nearly the same score.
    - 60 % flagged: the model flags most comments, and is wrong about half of them.
    - 300 comments: a population hardly larger than its sample.
    - 30 % hidden: a sharp score that does not detect 30 % of all positives.

    >>> made = hostile("300 comments")
    >>> made.flagged.score.size + made.unflagged.score.size
    300
    """
    if name not in HOSTILE:
        raise DesignError(f"Population must be one of {HOSTILE}, got {name!r}.")
    if name == "five scores":
        return _in_five(simulate(prevalence=0.02, score="sharp", seed=seed))
    if name == "trained balanced":
        return simulate(prevalence=0.0005, score="miscalibrated", seed=seed)
    if name == "300 comments":
        return simulate(prevalence=0.1, score="dull", comments=300, seed=seed)
    if name == "30 % hidden":
        return simulate(prevalence=0.01, score="sharp", hidden=0.3, seed=seed)
    generator = np.random.default_rng(seed)
    return _SHAPES[name](generator)


def _bimodal(generator: np.random.Generator) -> SimulatedPopulation:
    low = generator.beta(1, 60, 200_000)
    high = np.minimum(generator.beta(60, 66, 200_000), 0.79)
    score = np.concatenate([low, high])
    return _with_precise_flags(Side(score=score, label=generator.random(score.size) < 0.02))


def _anti_informative(generator: np.random.Generator) -> SimulatedPopulation:
    score = 0.8 * generator.beta(0.5, 6, 400_000)
    rank = np.argsort(np.argsort(score)) / score.size
    return _with_precise_flags(
        Side(score=score, label=generator.random(score.size) < 0.04 * (1 - rank) ** 2)
    )


def _zeros_and_ones(generator: np.random.Generator) -> SimulatedPopulation:
    size = 400_000
    harmless = generator.random(size) < 0.9
    score = np.where(harmless, 0.0, 0.8 * generator.beta(1, 5, size))
    rate = np.where(harmless, 0.02 / 3 / 0.9, 0.02 * 2 / 3 / 0.1)
    flagged = np.where(generator.random(4_000) < 0.8, 1.0, 0.9)
    return SimulatedPopulation(
        flagged=Side(score=flagged, label=generator.random(flagged.size) < 0.9 * flagged),
        unflagged=Side(score=score, label=generator.random(size) < rate),
    )


def _threads(generator: np.random.Generator) -> SimulatedPopulation:
    made = simulate(prevalence=0.02, score="sharp", comments=10_000, seed=2)

    def repeated(side: Side) -> Side:
        score = np.repeat(side.score, _THREAD)
        near = special.expit(special.logit(score) + generator.normal(0, 0.05, score.size))
        return Side(score=near, label=np.repeat(side.label, _THREAD))

    return SimulatedPopulation(flagged=repeated(made.flagged), unflagged=repeated(made.unflagged))


def _mostly_flagged(generator: np.random.Generator) -> SimulatedPopulation:
    flagged, unflagged = 0.5 + 0.5 * generator.random(240_000), 0.5 * generator.random(160_000)
    return SimulatedPopulation(
        flagged=Side(score=flagged, label=generator.random(flagged.size) < flagged - 0.25),
        unflagged=Side(score=unflagged, label=generator.random(unflagged.size) < unflagged / 5),
    )


def _with_precise_flags(unflagged: Side) -> SimulatedPopulation:
    """Return a population with 4,000 flagged comments, four in five of them rightly."""
    label = np.arange(4_000) % 5 > 0
    score = np.linspace(0.8, 1, label.size)
    return SimulatedPopulation(flagged=Side(score=score, label=label), unflagged=unflagged)


def _in_five(made: SimulatedPopulation) -> SimulatedPopulation:
    """Return a population with scores in five classes of equal width, each with its mean."""

    def coarse(side: Side) -> Side:
        place = np.minimum((side.score * 5).astype(np.int64), 4)
        every = np.concatenate([made.flagged.score, made.unflagged.score])
        where = np.minimum((every * 5).astype(np.int64), 4)
        mean = np.bincount(where, every, 5) / np.maximum(np.bincount(where, minlength=5), 1)
        return Side(score=mean[place], label=side.label)

    return SimulatedPopulation(flagged=coarse(made.flagged), unflagged=coarse(made.unflagged))


_SHAPES = {
    "bimodal": _bimodal,
    "anti-informative": _anti_informative,
    "zeros and ones": _zeros_and_ones,
    "threads of 40": _threads,
    "60 % flagged": _mostly_flagged,
}


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


def routed_labels(
    population: SimulatedPopulation, labels: int, generator: np.random.Generator
) -> dict[str, KnownLabels]:
    """Return by side what is known of a population that the daily job routed.

    A tenth of the routed comments is the random slice, of `labels` comments if 30 % of all are
    enough for that; all routed comments are labelled.
    """
    sides = (population.flagged, population.unflagged)
    score = np.concatenate([side.score for side in sides])
    label = np.concatenate([side.label for side in sides])
    flagged = np.arange(score.size) < population.flagged.score.size
    policy = RoutingPolicy(review_fraction=min(10 * labels / score.size, 0.3))
    keys = generator.integers(0, 2**64, score.size, dtype=np.uint64)
    routing = design_routing(score, keys, policy)
    known = {}
    for name, mine in (("flagged", flagged), ("unflagged", ~flagged)):
        of_side = mine[routing.row]
        rows = routing.row[of_side]
        if rows.size:
            known[name] = KnownLabels(
                score=score[rows],
                label=label[rows].astype(np.int64),
                weight=1 / routing.inclusion_probability[of_side],
                source="routed comments",
            )
    return known


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
    sizes, known, drawn = (whole_numbers(*value) for value in given.items())
    if not sizes.shape == known.shape == drawn.shape:
        raise MetricInputError("population, positives and labels must have equal lengths.")
    if (np.maximum(known, drawn) > sizes).any() or (sizes >= _MAX_POPULATION).any():
        raise MetricInputError(
            "A stratum has more positives or labels than comments, or at least "
            f"{_MAX_POPULATION} comments."
        )
    shape = known.shape if repetitions is None else (repetitions, known.size)
    return generator.hypergeometric(known, sizes - known, drawn, size=shape)


def quantile_strata(score: ArrayLike, bins: int) -> Strata:
    """Return at most `bins` strata of about as many comments each, by their scores (n,).

    >>> quantile_strata([0.1, 0.2, 0.3, 0.9], 2).edges
    (0.3,)
    """
    value, count = np.unique(np.asarray(score, np.float64), return_counts=True)
    middle = np.cumsum(count) - count / 2
    stratum = np.floor(np.round(middle / count.sum() * bins, 9))
    return Strata(edges=tuple(value[np.flatnonzero(np.diff(stratum)) + 1].tolist()))


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
    rate = (seen + 1) / (first + 2)  # pseudo-counts
    total = beyond(sizes * np.sqrt(rate * (1 - rate)), sizes, first, labels)
    more = draw_positives(sizes - first, known - seen, total - first, generator)
    return StratumCounts.from_arrays(
        population=sizes, labels=total, positives=seen + more, score=score
    )
