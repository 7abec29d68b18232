"""Review scores: what orders comments for review, each declared once.

A review score, by the name of its strategy, is one entry of `REVIEW_SCORES`: its function, and what
settings, queue, console, charts and documentation say of it. A package adds one of its own as an
entry point of the group `modwatch.review_scores` (`docs/extending.md`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from modwatch.common.errors import MetricInputError
from modwatch.statistics import arguments
from modwatch.statistics.arguments import Floats
from modwatch.statistics.decisions import is_flagged

#: Costs of a false negative and of a false positive: (n,) or one number each, at least 0.
Costs = tuple[ArrayLike, ArrayLike]

#: Further columns of a model's scores by name, (n,) each.
Columns = Mapping[str, ArrayLike]


@dataclass(frozen=True, kw_only=True)
class Scored:
    """The n comments that a review score orders; arrays are (n,)."""

    #: In [0, 1].
    prob: Floats
    #: The decisions.
    flagged: NDArray[np.bool_]
    #: In [0, 1]: `prob` as labels recalibrate it, and as they do by the model variance, too.
    calibrated: Floats
    given_variance: Floats
    #: Of a false negative and of a false positive.
    costs: Costs
    #: The columns of the model that the review score needs.
    columns: Mapping[str, Floats]
    #: Comments that each stands for.
    weight: Floats

    @property
    def wrong(self) -> Floats:
        """(n,) the probability that the decision is wrong."""
        return self.wrong_by(self.calibrated)

    def wrong_by(self, prob: Floats) -> Floats:
        """Return the same (n,) by other probabilities (n,)."""
        return np.where(self.flagged, 1 - prob, prob)


@dataclass(frozen=True, kw_only=True)
class ReviewScore:
    """A review score and all that is said of it.

    >>> REVIEW_SCORES["cost"].needs
    ()
    """

    #: Of the strategy; an identifier.
    name: str
    #: Returns the score (n,) of each comment; the highest are reviewed first.
    of: Callable[[Scored], Floats]
    #: What it is, and what it serves: clauses of the documentation and of the settings.
    meaning: str
    serves: str
    #: Why a comment is reviewed, in a word or two, and as a sentence: what moderators read.
    reason: str
    explanation: str
    #: Colour, line and marker of charts.
    style: tuple[str, str, str]
    #: Columns that the model's scores must have besides `prob`.
    needs: tuple[str, ...] = ()
    #: The review score that orders comments of the same score; None: chance does.
    ties: str | None = None
    #: Hours that the queue promises by default, from queued to decided.
    hours: float = 24
    #: Whether estimates compare it where it is not deployed.
    compared: bool = True

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise MetricInputError(f"a review score needs an identifier as name, got {self.name!r}")


def _hybrid(scored: Scored) -> Floats:
    """Return minus the smallest capacity (n,) at which a comment is on one of the two lists."""
    toxic, unsure = (_mass_rank(score, scored.weight) for score in (scored.prob, scored.wrong))
    return np.asarray(-2 * np.minimum(toxic, unsure))


def _entropy(scored: Scored) -> Floats:
    return np.asarray(special.entr(scored.prob) + special.entr(1 - scored.prob))


_UNSURE = "The model is uncertain about this comment."

#: The review scores of Modwatch, by name. `predictive_variance`, `toxicity` and the mixture are of
#: Kivlichan et al. (2021), sections 4 and 7.
REVIEW_SCORES: Mapping[str, ReviewScore] = {
    score.name: score
    for score in (
        ReviewScore(
            name="uncertainty",
            of=lambda scored: scored.wrong,
            meaning="the probability that the decision is wrong: 1−p of a flagged comment, p of "
            "another one",
            serves="OC-Acc and Review Efficiency: no order has a higher expected value",
            reason="uncertain",
            explanation="The model's decision about this comment is uncertain.",
            style=("#0072B2", "-", "o"),
        ),
        ReviewScore(
            name="predictive_variance",
            of=lambda scored: scored.prob * (1 - scored.prob),
            meaning="p(1−p) (K, Eq. 1), which knows no decision",
            serves="comparison with the paper",
            reason="uncertain",
            explanation=_UNSURE,
            style=("#E69F00", ":", "v"),
        ),
        ReviewScore(
            name="toxicity",
            of=lambda scored: scored.prob,
            meaning="p",
            serves="finding toxic comments",
            reason="likely toxic",
            explanation="The model ranks this comment among the most toxic of the day.",
            style=("#D55E00", "--", "s"),
            hours=8,
        ),
        ReviewScore(
            name="hybrid",
            of=_hybrid,
            meaning="half of the capacity by `toxicity`, the rest by `uncertainty` (K, section 7)",
            serves="both",
            reason="uncertain or likely toxic",
            explanation="The model finds this comment toxic or is uncertain.",
            style=("#009E73", "-.", "^"),
            hours=16,
        ),
        ReviewScore(
            name="cost",
            of=lambda scored: scored.wrong * stakes(scored.flagged, scored.costs),
            meaning="the probability that the decision is wrong times what that costs",
            serves="remaining cost: no order leaves less expected",
            reason="costly if wrong",
            explanation="A wrong decision about this comment would be costly.",
            style=("#CC79A7", "-.", "P"),
            hours=8,
        ),
        ReviewScore(
            name="model_variance",
            of=lambda scored: scored.columns["model_variance"],
            meaning="Var p under the posterior of the model's weights",
            serves="labels that tell the model most, not the decisions of the day",
            reason="uncertain",
            explanation=_UNSURE,
            style=("#56B4E9", "--", "D"),
            needs=("model_variance",),
            ties="uncertainty",
        ),
        ReviewScore(
            name="mutual_information",
            of=lambda scored: scored.columns["mutual_information"],
            meaning="I(y; W), the information of the label about the model's weights (BALD)",
            serves="labels that tell the model most, not the decisions of the day",
            reason="uncertain",
            explanation=_UNSURE,
            style=("#000000", ":", "X"),
            needs=("mutual_information",),
            ties="uncertainty",
        ),
        ReviewScore(
            name="predictive_entropy",
            of=_entropy,
            meaning="the entropy of the label: of two classes, the order of `predictive_variance`",
            serves="comparison with other work",
            reason="uncertain",
            explanation=_UNSURE,
            style=("#E69F00", ":", "<"),
            compared=False,
        ),
        ReviewScore(
            name="expected_error",
            of=lambda scored: scored.wrong_by(scored.given_variance),
            meaning="the probability that the decision is wrong given p and the model variance, as "
            "labels of earlier windows show it; that of `uncertainty` before",
            serves="OC-Acc and Review Efficiency where the variance tells more than p",
            reason="uncertain",
            explanation="The model's decision about this comment is uncertain.",
            style=("#882255", "-", "*"),
            needs=("model_variance",),
            compared=False,  # it cannot be told from `uncertainty`: docs/models.md
        ),
    )
}

#: Names of those that need no columns besides the probability.
STRATEGIES = tuple(name for name, score in REVIEW_SCORES.items() if not score.needs)


@cache
def all_review_scores() -> Mapping[str, ReviewScore]:
    """Return the review scores of Modwatch and of installed packages, by name.

    Raises:
        MetricInputError: two have one name, or a package has something else under its entry point.

    >>> list(all_review_scores())[:2]
    ['uncertainty', 'predictive_variance']
    """
    found = dict(REVIEW_SCORES)
    for point in entry_points(group="modwatch.review_scores"):
        score = point.load()
        if not isinstance(score, ReviewScore) or score.name != point.name:
            raise MetricInputError(
                f"the entry point {point.name!r} of modwatch.review_scores must be a ReviewScore "
                "of that name"
            )
        if score.name in found:
            raise MetricInputError(f"there are two review scores {score.name!r}; rename one")
        found[score.name] = score
    return MappingProxyType(found)


def review_score(name: str) -> ReviewScore:
    """Return the review score of a strategy.

    Raises:
        MetricInputError: there is none of this name.

    >>> review_score("toxicity").reason
    'likely toxic'
    """
    known = all_review_scores()
    if name not in known:
        raise MetricInputError(f"strategy must be one of {tuple(known)}, got {name!r}")
    return known[name]


def style(strategy: str) -> tuple[str, str, str]:
    """Return colour, line and marker of a strategy in charts; grey for one without an entry.

    >>> style("toxicity")
    ('#D55E00', '--', 's')
    """
    entry = all_review_scores().get(strategy)
    return ("#595959", ":", "D") if entry is None else entry.style


def score_columns() -> tuple[str, ...]:
    """Return the columns of a model's scores that review scores need besides `prob`.

    >>> score_columns()[:2]
    ('model_variance', 'mutual_information')
    """
    needed = (name for score in all_review_scores().values() for name in score.needs)
    return tuple(dict.fromkeys(needed))


def available(columns: Sequence[str]) -> tuple[str, ...]:
    """Return the strategies whose review scores need no other columns of the model than these.

    >>> "model_variance" in available(["model_variance"]), "model_variance" in available([])
    (True, False)
    """
    known = all_review_scores().values()
    return tuple(score.name for score in known if set(score.needs) <= set(columns))


def review_scores(
    y_prob: ArrayLike,
    strategy: str = "uncertainty",
    *,
    threshold: float = 0.5,
    flagged: ArrayLike | None = None,
    calibrated: ArrayLike | None = None,
    given_variance: ArrayLike | None = None,
    columns: Columns | None = None,
    costs: Costs | None = None,
    sample_weight: ArrayLike | None = None,
) -> Floats:
    """Return the review score (n,) of each comment; the highest are reviewed first.

    `REVIEW_SCORES` has what each strategy is. `uncertainty`, the probability that the decision is
    wrong, maximises the expected OC-Acc and Review Efficiency; at the threshold 0.5 it orders
    comments as `predictive_variance` does. The score of `hybrid` is minus the smallest capacity, as
    a fraction of all samples, at which a sample is on one of its two lists. A sample on both is
    reviewed once, and both lists continue until the capacity is full.

    Args:
        y_prob: (n,) in [0, 1].
        strategy: a name of `all_review_scores`.
        threshold: in [0, 1]; a comment is flagged if its probability is above.
        flagged: (n,) the decisions, where they are not y_prob > threshold.
        calibrated: (n,) in [0, 1], p of `uncertainty`, `hybrid` and `cost` where labels show that
            y_prob is off; y_prob by default.
        given_variance: (n,) in [0, 1], p of `expected_error`; that of `uncertainty` by default.
        columns: further columns of the model's scores, (n,) finite numbers each.
        costs: of a false negative and of a false positive, of the strategy `cost`. By default those
            for which the threshold is the best one, 1−t and t.
        sample_weight: (n,) ≥ 0; 1 each by default. Only the hybrid uses it: its ranks are sums of
            weights.

    Raises:
        MetricInputError: an unknown strategy, a column that it needs and that is missing or not
            finite, or an argument out of range.

    >>> review_scores([0.5, 1.0, 0.2], threshold=0.1).tolist()
    [0.5, 0.0, 0.8]
    >>> review_scores([0.5, 1.0, 0.2], "predictive_variance").round(2).tolist()
    [0.25, 0.0, 0.16]
    >>> review_scores([0.1, 0.6], "cost", costs=(5, 1)).tolist()
    [0.5, 0.4]
    >>> review_scores([0.5, 0.9, 0.1, 1.0], "hybrid").argsort()[-2:].tolist()
    [0, 3]
    >>> spread = {"model_variance": [0.01, 0.02, 0.01]}
    >>> review_scores([0.5, 0.9, 0.6], "model_variance", columns=spread).argsort().tolist()
    [2, 0, 1]
    """
    p = arguments.probabilities(y_prob)
    t = arguments.fraction("threshold", threshold)
    decided = is_flagged(p, t) if flagged is None else arguments.decisions(flagged)
    w = arguments.weights(sample_weight, p.size)
    known = p if calibrated is None else arguments.probabilities(calibrated, name="calibrated")
    given = known
    if given_variance is not None:
        given = arguments.probabilities(given_variance, name="given_variance")
    entry = review_score(strategy)
    needed = {name: _column(columns or {}, name, strategy) for name in entry.needs}
    arguments.same_length(
        y_prob=p, flagged=decided, calibrated=known, given_variance=given, sample_weight=w, **needed
    )
    scored = Scored(
        prob=p,
        flagged=decided,
        calibrated=known,
        given_variance=given,
        costs=(1 - t, t) if costs is None else costs,
        columns=needed,
        weight=w,
    )
    score = arguments.column(f"the review score {strategy}", entry.of(scored))
    arguments.same_length(y_prob=p, **{strategy: score})
    return score if entry.ties is None else _resolved(score, review_score(entry.ties).of(scored))


def _column(columns: Columns, name: str, strategy: str) -> Floats:
    if name not in columns:
        raise MetricInputError(
            f"the strategy {strategy} needs the column {name}, which the model's scores lack"
        )
    return arguments.column(name, columns[name])


def _resolved(score: Floats, other: Floats) -> Floats:
    """Return the scores (n,) with those that are equal raised by `other`, below the next larger.

    >>> _resolved(np.array([0.0, 0.0, 1.0]), np.array([0.2, 0.4, 0.9])).round(2).tolist()
    [0.0, 0.14, 1.5]
    """
    if not score.size:
        return score
    values, place = np.unique(score, return_inverse=True)
    gap = np.diff(values, append=values[-1] + 1)
    return np.asarray(score + gap[place] * (other - other.min()) / (2 * (np.ptp(other) or 1.0)))


def copies_last(score: Floats, copies: NDArray[np.bool_] | None) -> Floats:
    """Return the review scores (n,) with those of the copies (n,) lowered below all others.

    >>> copies_last(np.array([0.9, 0.5, 0.1]), np.array([True, False, False])).round(1).tolist()
    [-0.9, 0.5, 0.1]
    """
    if copies is None or not copies.any():
        return score
    return np.where(copies, score - float(np.ptp(score)) - 1, score)


def stakes(flagged: NDArray[np.bool_], costs: Costs | None) -> Floats:
    """Return what each decision (n,) costs if it is wrong; None: 1.

    Raises:
        MetricInputError: a cost below 0, not finite, or not one of each comment.

    >>> stakes(np.array([True, False]), (5, 1)).tolist()
    [1.0, 5.0]
    """
    missed, alarmed = (arguments.numeric("costs", cost) for cost in costs or (1.0, 1.0))
    for name, given in (("false_negative", missed), ("false_positive", alarmed)):
        if not ((given >= 0) & np.isfinite(given)).all():
            raise MetricInputError(f"the cost of a {name} must be a finite number of at least 0")
        if given.shape not in ((), flagged.shape):
            raise MetricInputError(
                f"got {given.size} costs of a {name} for {flagged.size} comments; pass one, or one "
                "per comment"
            )
    return np.where(flagged, alarmed, missed)


def _mass_rank(score: Floats, weight: Floats) -> Floats:
    """Return the fraction (n,) of weight with a higher score, ties counted half."""
    values, group = np.unique(score, return_inverse=True)
    mass = np.bincount(group, weights=weight, minlength=values.size)
    above = np.cumsum(mass[::-1])[::-1] - mass
    total = max(float(mass.sum()), np.finfo(np.float64).tiny)
    rank: Floats = (above + mass / 2)[group] / total
    return rank
