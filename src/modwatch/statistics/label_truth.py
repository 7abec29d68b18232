"""The true labels behind imperfect labels: a latent class model with its uncertainty.

People label a comment independently of each other, given its true label. A comment that is not
toxic is labelled toxic with the false-positive rate f, a toxic one is labelled otherwise with the
false-negative rate g (Dawid & Skene 1979, with one pair of rates for all people). With the
prevalence π(p) among comments of probability p, n labels of which k are toxic have the likelihood

    π(p) g^(n−k) (1−g)^k  +  (1−π(p)) f^k (1−f)^(n−k)

where no error is shared.

f and g differ between groups of comments, such as the reviewed top and the random slice: the logit
of each is normal around a common one, which pools groups with few labels. In each group they climb
with the score, f mostly up and g down, as far as the labels show it, and else as on corpora with
several votes (`error_rates`). π is a random walk along the score (`calibration`), so that the score
is used, even if it misleads. Which labels were confirmed depends on the first label, the stratum
and the score alone, all of which the likelihood conditions on: the confirmation probabilities drop
out of it (Rubin 1976).

Errors on hard comments, as where a guideline is ambiguous, are made by many, so labels do not tell
how many there are. What is stated, or known from gold items that several people answered, is κ, the
probability that a second person makes an error that a first one made. Let a person err on a comment
with a probability that is beta-distributed over the comments, with mean e and correlation ρ:

    ρ = (κ−e) / (1−e),    0 for κ ≤ e,    e the common rate,

so that the number of errors among n labels is beta-binomial (Williams 1975); with ρ = 0 they are
independent. Where people differ, an error of one makes an error of another rarer, as nobody gets a
comment twice: κ is e (1 − c²/(n−1)) for n people whose rates have the coefficient of variation c.
Without evidence κ may be anything from less than e (`APART`) to the stated value: of the draws, one
half has either, for false positives and for false negatives apart, so that an interval holds at
both ends.

The posterior is drawn by Hamiltonian Monte Carlo, on counts by cells of score, group and labels, so
that the time hardly depends on the number of comments.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy import special

from modwatch.common.errors import MetricInputError
from modwatch.statistics import arguments
from modwatch.statistics.arguments import Floats, Ints
from modwatch.statistics.calibration import Posterior
from modwatch.statistics.error_rates import RatePrior
from modwatch.statistics.hamiltonian import draws

#: Confirmed comments below which the labels do not identify the error rates, so that these may have
#: any value up to `RATE_BOUNDS`.
MINIMUM_CONFIRMED = 30

#: Largest plausible false-positive and false-negative rate of one label.
RATE_BOUNDS = (0.25, 0.6)

#: Largest probability that a second person makes an error of a first one, without evidence of it:
#: of false positives and of false negatives. On Civil Comments they are 0.18 and 0.30.
SHARED = (0.2, 0.3)

#: How much rarer a second error may be, −κ of `calibration.Posterior`. At a rate of 5 % it is 0.44
#: times as frequent as a first one, at 25 % 0.62 times: as where one of five people makes most.
APART = 0.6

#: Scales of how far P(toxic | score) moves in a month: in log-odds, and in slope.
MOVED = (0.15, 0.03)

#: Wrong answers to gold items of one kind that several people answered, from which these count.
MINIMUM_REPEATED = 20

#: Largest value of κ: beyond it labels would carry no information.
_MOST_SHARED = 0.95
#: Quantiles of κ as gold items show it that the halves of the draws have.
_ENDS = (0.1, 0.9)

#: Draws of the error rates.
DRAWS = 1000

#: Pseudo-counts (wrong, right) of the beta priors of the common f and g, and without confirmations.
_PRIOR, _VAGUE = ((0.5, 5.0), (0.5, 2.0)), ((1.0, 1.0), (1.0, 1.0))
#: Part of the denominator of a quotient that every draw has.
_LEAST_PART = 0.05


_COUNTS, _MOST_GROUPS = ("group", "given", "toxic"), 1000


@dataclass(frozen=True, kw_only=True)
class GivenLabels:
    """The labels that people gave m comments."""

    #: (m,) probability of the model, in [0, 1].
    prob: Floats
    #: (m,) from 0: comments with error rates of their own.
    group: Ints
    #: (m,) number of labels, and how many of them are toxic.
    given: Ints
    toxic: Ints

    def __post_init__(self) -> None:
        prob = arguments.probabilities(self.prob, name="prob")
        columns: dict[str, Floats | Ints] = {"prob": prob}
        columns |= {name: arguments.whole_numbers(name, vars(self)[name]) for name in _COUNTS}
        if len({column.shape for column in columns.values()}) > 1:
            raise MetricInputError("prob, group, given and toxic must be one number a comment")
        if columns["group"].max(initial=0) > _MOST_GROUPS:
            raise MetricInputError("group must be whole numbers from 0; number the groups in order")
        for name, column in columns.items():
            object.__setattr__(self, name, column)
        if (self.toxic > self.given).any():
            raise MetricInputError("a comment has more toxic labels than labels")

    def before(self, history: GivenLabels) -> GivenLabels:
        """Return these labels, then earlier ones."""
        earlier = vars(history)
        return GivenLabels(
            **{name: np.concatenate([now, earlier[name]]) for name, now in vars(self).items()}
        )


@dataclass(frozen=True, kw_only=True)
class KnownErrors:
    """What is known about one kind of people's errors besides the labels themselves.

    Fractional numbers are evidence worth so many answers.
    """

    #: Answers to comments whose true label is known, as gold items are, and how many are wrong.
    answers: float = 0
    wrong: float = 0
    #: Wrong answers to comments that several people answered, and how many another one repeats.
    compared: float = 0
    repeated: float = 0
    #: Largest plausible probability that a second person makes an error of a first one, in [0, 1);
    #: 0: errors are independent.
    shared: float

    def __post_init__(self) -> None:
        if not (0 <= self.wrong <= self.answers and 0 <= self.repeated <= self.compared):
            raise MetricInputError("more answers are wrong than were given")
        if not 0 <= self.shared < 1:
            raise MetricInputError(f"the share of shared errors must be in [0, 1): {self.shared}")

    @property
    def ends(self) -> tuple[float, float]:
        """κ of either half of the draws; below 0 if a second error is rarer than chance.

        Gold items are clearer than other comments, so they can only raise what is stated; fewer
        than `MINIMUM_REPEATED` wrong answers to them tell nothing.
        """
        if self.compared < MINIMUM_REPEATED:
            return -APART if self.shared else 0.0, self.shared
        rest = self.compared - self.repeated
        low, high = special.betaincinv(self.repeated + 0.5, rest + 0.5, _ENDS)
        return max(self.shared, float(low)), min(max(self.shared, float(high)), _MOST_SHARED)


@dataclass(frozen=True)
class ErrorEvidence:
    """What is known about people's errors besides the labels themselves."""

    false_positive: KnownErrors = KnownErrors(shared=SHARED[0])
    false_negative: KnownErrors = KnownErrors(shared=SHARED[1])

    @classmethod
    def sharing(cls, false_positive: float, false_negative: float) -> ErrorEvidence:
        """Return no evidence, if up to these shares of the errors may be shared."""
        return cls(KnownErrors(shared=false_positive), KnownErrors(shared=false_negative))

    @property
    def kinds(self) -> tuple[KnownErrors, KnownErrors]:
        """Of false positives, and of false negatives."""
        return self.false_positive, self.false_negative

    @property
    def independent(self) -> ErrorEvidence:
        """The same evidence if errors were independent."""
        return ErrorEvidence(
            *(replace(kind, shared=0, compared=0, repeated=0) for kind in self.kinds)
        )


@dataclass(frozen=True, kw_only=True)
class TrueLabels:
    """The posterior of the true labels of m comments, given their labels: d draws."""

    #: (m,) cell of each comment: its score, group, and labels.
    cell: Ints
    #: (m,) group of each comment, and whether it has a label.
    group: Ints
    labelled: NDArray[np.bool_]
    #: (d, c) probability that a comment of the cell is toxic, before and after its labels are seen.
    prior: Floats
    prob: Floats
    #: (d, G) error rates by group, of its labelled comments on average.
    false_positive: Floats
    false_negative: Floats
    #: (2, d, G) how far the logits of both rates climb with the score in groups of these labels and
    #: of earlier ones: how much farther than the mean of `error_rates.CLIMB`, in its deviations.
    climbs: Floats

    @property
    def mean(self) -> Floats:
        """(m,) probability that each comment is toxic."""
        return np.asarray(self._moments[0][self.cell])

    def deviations(
        self,
        effect: Floats,
        weight: Floats,
        generator: np.random.Generator,
        *,
        over: tuple[float, Floats] | None = None,
    ) -> Floats:
        """Return deviations (d,) of a statistic from its value at `mean`.

        `effect` (m,) is the derivative in the share of toxic comments among the `weight` (m,) that
        a row represents. Each of them is toxic or not by itself: their chance is included. They are
        of first order; of a quotient, `over` is the denominator with its derivative (m,), and they
        are exact if the numerator is linear.
        """
        mean, apart = self._moments
        chance = np.dot(self._by_cell(effect**2 / weight), mean * (1 - mean))
        noise = np.sqrt(max(float(chance), 0.0)) * generator.standard_normal(len(self.prob))
        deviations = apart @ self._by_cell(effect) + noise
        if over is not None:
            total, mass = over
            drawn = total + apart @ self._by_cell(mass)
            deviations *= total / np.maximum(drawn, _LEAST_PART * total)
        return np.asarray(deviations)

    def of_rows(self, chosen: NDArray[np.bool_]) -> TrueLabels:
        """Return the true labels of the chosen (m,) comments."""
        return replace(
            self,
            cell=self.cell[chosen],
            group=self.group[chosen],
            labelled=self.labelled[chosen],
        )

    def rates(self) -> Iterator[tuple[str, Floats]]:
        """Yield name and draws (d,) of either error rate over all groups, by their comments."""
        comments = np.bincount(self.group[self.labelled], minlength=self.false_positive.shape[1])
        share = comments / comments.sum()
        yield "annotator_false_positive_rate", np.asarray(self.false_positive @ share)
        yield "annotator_false_negative_rate", np.asarray(self.false_negative @ share)

    @cached_property
    def _moments(self) -> tuple[Floats, Floats]:
        """Mean (c,) of the probabilities of each cell, and how far each draw is from it (d, c)."""
        mean = self.prob.mean(axis=0)
        return mean, self.prob - mean

    def _by_cell(self, values: Floats) -> Floats:
        sums = np.bincount(self.cell, weights=values, minlength=self.prob.shape[1])
        return np.asarray(sums, np.float64)


def true_labels(
    labels: GivenLabels,
    known: ErrorEvidence | None = None,
    *,
    history: GivenLabels | None = None,
    moved: tuple[float, float] = MOVED,
    seed: int = 0,
) -> TrueLabels:
    """Return the posterior of the true labels of comments, of which people labelled some or all.

    With fewer than `MINIMUM_CONFIRMED` comments of two labels or more, known answers included, the
    error rates may be anything up to `RATE_BOUNDS`. `known` answers are a group of their own.
    `history` are other labels of the same score and groups, such as earlier ones, which count as
    far as they agree; `moved` are the scales of the steps from their curve to this one.

    >>> prob, one = np.full(1000, 0.1), np.ones(1000, np.int64)
    >>> labels = GivenLabels(prob=prob, group=0 * one, given=3 * one, toxic=0 * one)
    >>> bool(true_labels(labels).mean.max() < 0.001)
    True
    """
    generator = np.random.default_rng(seed)
    known, size = known or ErrorEvidence(), labels.prob.size
    past = np.zeros(size, np.bool_)
    if history is not None:
        past = np.concatenate([past, np.ones(history.prob.size, np.bool_)])
        labels = labels.before(history)
    if not labels.given.any():
        raise MetricInputError("no comment has a label; pass some that have")
    # In an order of their own: the search for the mode magnifies the rounding of sums.
    order = np.lexsort((labels.toxic, labels.given, labels.group, labels.prob, past))
    posterior = Posterior(
        labels.prob[order],
        labels.group[order],
        labels.given[order],
        labels.toxic[order],
        past=past[order],
        moved=moved,
        rates=_rate_priors(labels, known),
    )
    ends = np.array(sorted(set(product(*(kind.ends for kind in known.kinds)))))
    size_of_end = DRAWS // len(ends)
    drawn = draws(posterior.density, posterior.start, ends, generator, size_of_end)
    prior, prob = posterior.probabilities(drawn, np.repeat(ends, size_of_end, axis=0))
    groups = int(labels.group.max(initial=0)) + 1
    up, down = posterior.rates(drawn, prob, groups)
    return TrueLabels(
        cell=posterior.cell[np.argsort(order)][:size],
        group=labels.group[:size],
        labelled=labels.given[:size] > 0,
        prior=prior,
        prob=prob,
        false_positive=up,
        false_negative=down,
        climbs=posterior.climbs(drawn),
    )


def _rate_priors(labels: GivenLabels, known: ErrorEvidence) -> list[RatePrior]:
    """Return what is known of the rates of false positives and of false negatives."""
    confirmed = int((labels.given > 1).sum()) + min(kind.answers for kind in known.kinds)
    common = _PRIOR if confirmed >= MINIMUM_CONFIRMED else _VAGUE
    return [
        RatePrior(common=one, wrong=kind.wrong, answers=kind.answers, most=most)
        for one, kind, most in zip(common, known.kinds, RATE_BOUNDS, strict=True)
    ]
