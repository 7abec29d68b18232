"""The true labels behind imperfect labels: a latent class model with its uncertainty.

People label a comment independently of each other, given its true label. A comment that is not
toxic is labelled toxic with the false-positive rate f, a toxic one is labelled otherwise with the
false-negative rate g (Dawid & Skene 1979, with one pair of rates for all people). With the
prevalence π(p) among comments of probability p, n labels of which k are toxic have the likelihood

    π(p) g^(n−k) (1−g)^k  +  (1−π(p)) f^k (1−f)^(n−k).

- π = ε + (1 − ε − δ) expit(s), with a floor ε, a ceiling 1 − δ, and s a natural cubic spline in
  the logit of p that may jump from group to group: the model's score is used, even if it misleads.
- f and g differ between groups of comments, such as the reviewed top and the random slice: the
  logit of each is normal around a common one, which pools groups with few labels.
- Which labels were confirmed depends on the first label, the stratum and the score alone, all of
  which the likelihood conditions on: the confirmation probabilities drop out of it (Rubin 1976).

Errors on hard comments, as where a guideline is ambiguous, are made by many, so labels do not tell
how many there are. What is stated, or known from gold items that several people answered, is κ, the
probability that a second person makes an error that a first one made. Let a person err on a comment
with a probability that is beta-distributed over the comments, with mean e. Two people err on e κ of
them, and a third one, asked where two differ, with them on another e (1−κ) t, with

    t = e + (1−2e) ρ / (1+ρ)        ρ = (κ−e) / (1−e),

where e (e + (1−κ) e) would be if people erred independently. The rest is shared: all that more
labels would show is called toxic, or not, wrongly. With f the rate of errors that are not shared,

    u = e (κ−e + (1−κ) (t−e)),    e = f + u,    0 for κ ≤ e.

Without evidence κ may be anything from 0 to the stated value: of the draws, one half has either,
for false positives and for false negatives apart, so that an interval holds at both ends.

The posterior is drawn by importance sampling from a multivariate t about its mode (Gelman et al.
2013, section 10.4), on counts by cells of score, group and labels, so that the time hardly depends
on the number of comments.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from modwatch.common.errors import MetricInputError
from modwatch.statistics.arguments import Floats, Ints

#: Confirmed comments below which the labels do not identify the error rates, so that these may have
#: any value up to `RATE_BOUNDS`.
MINIMUM_CONFIRMED = 30

#: Largest plausible false-positive and false-negative rate of one label.
RATE_BOUNDS = (0.25, 0.6)

#: Largest probability that a second person makes an error of a first one, without evidence of it:
#: of false positives and of false negatives. On Civil Comments they are 0.18 and 0.30.
SHARED = (0.2, 0.3)

#: Wrong answers to gold items of one kind that several people answered, from which these count.
MINIMUM_REPEATED = 20

#: Largest value of κ: beyond it labels would carry no information.
_MOST_SHARED = 0.95
#: Steps in which the rate of all errors is found from that of those that are not shared.
_ROUNDS_OF_RATE = 25

#: Draws of the error rates.
DRAWS = 1000

#: Pseudo-counts (wrong, right) of the beta priors of the common f and g, and without confirmations.
_PRIOR, _VAGUE = ((0.5, 5.0), (0.5, 2.0)), ((1.0, 1.0), (1.0, 1.0))
#: Standard deviation of the logits of a rate between groups.
_BETWEEN = 0.5
_BINS, _KNOTS = 30, (0.05, 0.35, 0.65, 0.95)
_PROPOSALS, _ROUNDS, _ENOUGH = 4000, 4, 400
_FREEDOM, _INFLATION = 5, 1.1
_NEAR_ZERO = 1e-6
#: Part of the denominator of a quotient that every draw has.
_LEAST_PART = 0.05
#: Standard deviations of the coefficients of the spline, at unit variance of the score, and of a
#: jump.
_SPLINE, _JUMP = (4.0, 3.0, 2.0, 2.0), 3.0
#: Mean and standard deviation of log ε and log δ, and the largest value of either.
_FLOOR, _CEILING, _MOST = (-8.0, 2.0), (-3.0, 2.0), -0.8


@dataclass(frozen=True, kw_only=True)
class GivenLabels:
    """The labels that people gave m comments."""

    #: (m,) probability of the model, in [0, 1].
    prob: Floats
    #: (m,) from 0: comments with error rates of their own.
    group: Ints
    #: (m,) number of labels, at least 1, and how many of them are toxic.
    given: Ints
    toxic: Ints

    def __post_init__(self) -> None:
        if ((self.given < 1) | (self.toxic < 0) | (self.toxic > self.given)).any():
            raise MetricInputError("a comment needs one label or more, at most all of them toxic")


@dataclass(frozen=True, kw_only=True)
class ErrorEvidence:
    """What is known about people's errors besides the labels themselves.

    Answers are those to comments whose true label is known, as gold items are. Fractional numbers
    are evidence worth so many answers.
    """

    #: Answers to toxic comments, and how many of them are wrong; the same for other comments.
    toxic: float = 0
    toxic_wrong: float = 0
    other: float = 0
    other_wrong: float = 0
    #: Wrong answers to comments that several people answered, and how many another one repeats.
    toxic_compared: float = 0
    toxic_repeated: float = 0
    other_compared: float = 0
    other_repeated: float = 0
    #: Largest plausible probability that a second person makes an error of a first one, in [0, 1).
    toxic_shared: float = SHARED[1]
    other_shared: float = SHARED[0]

    def __post_init__(self) -> None:
        counts = [float(getattr(self, name)) for name in _COUNTS]
        for whole, part in zip(counts[::2], counts[1::2], strict=True):
            if not 0 <= part <= whole:
                raise MetricInputError("more answers are wrong than were given")
        for name in _SHARES:
            if not 0 <= getattr(self, name) < 1:
                raise MetricInputError(f"{name} must be in [0, 1), got {getattr(self, name)}")

    def __add__(self, other: "ErrorEvidence") -> "ErrorEvidence":
        """Return the evidence of both, with the larger shares of shared errors.

        >>> (ErrorEvidence(toxic=2) + ErrorEvidence(toxic=3)).toxic
        5
        """
        sums = {name: getattr(self, name) + getattr(other, name) for name in _COUNTS}
        most = {name: max(getattr(self, name), getattr(other, name)) for name in _SHARES}
        return ErrorEvidence(**sums, **most)

    @classmethod
    def sharing(cls, false_positive: float, false_negative: float) -> "ErrorEvidence":
        """Return no evidence, if up to these shares of the errors may be shared."""
        return cls(toxic_shared=false_negative, other_shared=false_positive)

    @property
    def independent(self) -> "ErrorEvidence":
        """The same evidence if no error were shared."""
        return replace(self, **dict.fromkeys((*_SHARES, *_COUNTS[4:]), 0))

    def most_shared(self, kind: str) -> float:
        """Return the value up to which errors of a kind, `other` or `toxic`, may be shared."""
        wrong, again, stated = (float(getattr(self, f"{kind}_{name}")) for name in _COMPARED)
        return max(stated, again / wrong) if wrong >= MINIMUM_REPEATED else stated

    def repeated(self, kind: str, generator: np.random.Generator) -> Floats | None:
        """Return draws (DRAWS,) of κ from the answers of a kind, `other` or `toxic`.

        None with fewer than `MINIMUM_REPEATED` wrong ones.
        """
        wrong, again, _ = (float(getattr(self, f"{kind}_{name}")) for name in _COMPARED)
        if wrong < MINIMUM_REPEATED:
            return None
        return np.asarray(generator.beta(again + 0.5, wrong - again + 0.5, DRAWS))


_COMPARED = ("compared", "repeated", "shared")
_SHARES = ("toxic_shared", "other_shared")
_COUNTS = (
    *("toxic", "toxic_wrong", "other", "other_wrong"),
    *("toxic_compared", "toxic_repeated", "other_compared", "other_repeated"),
)


@dataclass(frozen=True, kw_only=True)
class TrueLabels:
    """The posterior of the true labels of m comments, given their labels: d draws."""

    #: (m,) cell of each comment: its score, group, and labels.
    cell: Ints
    #: (m,) group of each comment.
    group: Ints
    #: (d, c) probability that a comment of the cell is toxic, before and after its labels are seen.
    prior: Floats
    prob: Floats
    #: (d, G) error rates by group.
    false_positive: Floats
    false_negative: Floats

    @property
    def mean(self) -> Floats:
        """(m,) probability that each comment is toxic."""
        return np.asarray(self.prob.mean(axis=0)[self.cell])

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
        sums = self._by_cell(effect)
        mean = self.prob.mean(axis=0)
        chance = np.dot(self._by_cell(effect**2 / weight), mean * (1 - mean))
        noise = np.sqrt(max(float(chance), 0.0)) * generator.standard_normal(len(self.prob))
        deviations = (self.prob - mean) @ sums + noise
        if over is not None:
            total, mass = over
            drawn = total + (self.prob - mean) @ self._by_cell(mass)
            deviations *= total / np.maximum(drawn, _LEAST_PART * total)
        return np.asarray(deviations)

    def rates(self) -> Iterator[tuple[str, Floats]]:
        """Yield name and draws (d,) of either error rate over all groups, by their comments."""
        comments = np.bincount(self.group, minlength=self.false_positive.shape[1])
        share = comments / comments.sum()
        yield "annotator_false_positive_rate", np.asarray(self.false_positive @ share)
        yield "annotator_false_negative_rate", np.asarray(self.false_negative @ share)

    def with_shared_errors(self, false_positive: Floats, false_negative: Floats) -> "TrueLabels":
        """Return the true labels if these are the values (d,) of κ in each draw.

        No label contradicts an error of all people: of the comments that they would agree to call
        toxic, some are not, and vice versa. The error rates then include those.
        """
        up = _of_all(self.false_positive, false_positive)
        down = _of_all(self.false_negative, false_negative)
        true = np.clip((self.prior - up) / np.maximum(1 - up - down, _NEAR_ZERO), 0, 1)
        if_toxic = _share(true * (1 - down), (1 - true) * up)
        if_other = _share(true * down, (1 - true) * (1 - up))
        return replace(
            self,
            prior=true,
            prob=self.prob * if_toxic + (1 - self.prob) * if_other,
            false_positive=up + (1 - up) * self.false_positive,
            false_negative=down + (1 - down) * self.false_negative,
        )

    def _by_cell(self, values: Floats) -> Floats:
        sums = np.bincount(self.cell, weights=values, minlength=self.prob.shape[1])
        return np.asarray(sums, np.float64)


def true_labels(
    labels: GivenLabels, known: ErrorEvidence | None = None, *, seed: int = 0
) -> TrueLabels:
    """Return the posterior of the true labels of comments that people labelled.

    With fewer than `MINIMUM_CONFIRMED` comments of two labels or more, known answers included, the
    error rates may be anything up to `RATE_BOUNDS`. `known` answers are a group of their own.

    >>> prob, one = np.full(1000, 0.1), np.ones(1000, np.int64)
    >>> labels = GivenLabels(prob=prob, group=0 * one, given=3 * one, toxic=0 * one)
    >>> bool(true_labels(labels).mean.max() < 0.001)
    True
    """
    generator = np.random.default_rng(seed)
    # In an order of their own: the search for the mode magnifies the rounding of sums.
    order = np.lexsort((labels.toxic, labels.given, labels.group, labels.prob))
    ordered = GivenLabels(**{name: values[order] for name, values in vars(labels).items()})
    posterior = _Posterior(ordered, known or ErrorEvidence())
    draws = _sampled(posterior, generator)
    prior, prob = posterior.probabilities(draws)
    groups = slice(0, posterior.groups)
    made = TrueLabels(
        cell=posterior.cell[np.argsort(order)],
        group=labels.group,
        prior=prior,
        prob=prob,
        false_positive=special.expit(posterior.logits(draws, 0))[:, groups],
        false_negative=special.expit(posterior.logits(draws, 1))[:, groups],
    )
    return made.with_shared_errors(*_shared(known or ErrorEvidence(), generator))


def _shared(known: ErrorEvidence, generator: np.random.Generator) -> tuple[Floats, Floats]:
    """Return κ (DRAWS,) of false positives and of false negatives.

    Gold items are clearer than other comments, so they can only raise what is stated.
    """
    corner = np.arange(DRAWS) * 4 // DRAWS
    found = []
    for kind, present in (("other", corner % 2), ("toxic", corner // 2)):
        stated, shown = getattr(known, f"{kind}_shared"), known.repeated(kind, generator)
        found.append(stated * present if shown is None else np.maximum(stated, shown))
    return found[0], found[1]


def _of_all(alone: Floats, shared: Floats) -> Floats:
    """Return the share u (d, 1) of comments on which people err together; see the module.

    `alone` (d, G) is the rate f of the other errors, `shared` (d,) is κ.
    """
    rate = alone = alone.mean(axis=1)
    again = np.minimum(shared, _MOST_SHARED)
    for _ in range(_ROUNDS_OF_RATE):
        beyond = np.maximum(again - rate, 0)
        spread = beyond / (1 - rate)
        part = beyond + (1 - again) * np.maximum(1 - 2 * rate, 0) * spread / (1 + spread)
        rate = np.minimum(alone / (1 - part), 0.5)
    return np.asarray(rate - alone)[:, None]


class _Posterior:
    """The density of the parameters, up to a factor, on counts by cell.

    Parameters: the coefficients of the spline; the logits of the common f and g; the deviation of
    each group from either, in units of `_BETWEEN`. Known answers are the last group.
    """

    def __init__(self, labels: GivenLabels, known: ErrorEvidence) -> None:
        self.groups = int(labels.group.max(initial=0)) + 1
        prob = np.clip(labels.prob.astype(np.float64), _NEAR_ZERO, 1 - _NEAR_ZERO)
        score = special.logit(prob)
        middle, spread = float(np.median(score)), max(float(score.std()), 0.3)
        score = (score - middle) / spread
        place = _bins(score) * self.groups + labels.group
        most = int(labels.given.max(initial=1)) + 1
        key = (place * most + labels.given) * most + labels.toxic
        cells, self.cell, count = np.unique(key, return_inverse=True, return_counts=True)
        self._count = count.astype(np.float64)
        self._group = cells // most**2 % self.groups
        #: Places with comments, and which of them each cell has.
        self._filled, self._place = np.unique(cells // most**2, return_inverse=True)
        toxic, given = cells % most, cells // most % most
        self._toxic, self._other = toxic.astype(np.float64), (given - toxic).astype(np.float64)
        inside = np.bincount(place)
        means = np.bincount(place, weights=score) / np.maximum(inside, 1)
        group = np.arange(means.size) % self.groups
        jumps = (group[:, None] == np.arange(1, self.groups)).astype(np.float64)
        self._design = np.column_stack([_spline(means, score), jumps])
        #: Parameters of the prevalence: coefficients of the design, log ε, log δ.
        self._width = self._design.shape[1] + 2
        self._known = known
        evidence = int(self._count[given > 1].sum()) + min(known.toxic, known.other)
        self._rates_prior = _PRIOR if evidence >= MINIMUM_CONFIRMED else _VAGUE
        centre = np.zeros(self._design.shape[1])
        centre[:2] = -2.0, 0.8 * spread
        scale = np.array([*_SPLINE, *np.full(self.groups - 1, _JUMP)])
        scale[1] *= spread
        ends = np.array([_FLOOR, _CEILING])
        self._centre = np.concatenate([centre, ends[:, 0]])
        self._scale = np.concatenate([scale, ends[:, 1]])

    @property
    def start(self) -> Floats:
        """A point from which to search for the mode."""
        prevalence = self._centre.copy()
        # Not below the share of toxic labels: the search would take these for false positives, and
        # end where nearly all labels are wrong.
        toxic, other = (float(np.dot(self._count, chance)) for chance in (self._toxic, self._other))
        prevalence[0] = max(prevalence[0], np.log((toxic + 1) / (other + 1)))
        prevalence[1] = 0.5
        return np.concatenate([prevalence, [-3.5, -2.0], np.zeros(2 * (self.groups + 1))])

    def logits(self, at: Floats, kind: int) -> Floats:
        """Return the logits (d, G + 1) of f (`kind` 0) or g (1) by group; the last of the known."""
        width, groups = self._width, self.groups + 1
        own = at[:, width + 2 + kind * groups :][:, :groups]
        return np.asarray(at[:, width + kind, None] + _BETWEEN * own)

    def probabilities(self, at: Floats) -> tuple[Floats, Floats]:
        """Return the probability of toxic (d, c) before and after the labels are seen."""
        toxic, other, log_odds = self._likelihoods(at)
        return np.asarray(special.expit(log_odds)), np.asarray(special.expit(toxic - other))

    def density(self, at: Floats) -> Floats:
        """Return the logarithm (d,) of likelihood times prior."""
        toxic, other, _ = self._likelihoods(at)
        total = np.logaddexp(toxic, other) @ self._count
        width = self._width
        total -= (((at[:, :width] - self._centre) / self._scale) ** 2).sum(axis=1) / 2
        total -= (at[:, width + 2 :] ** 2).sum(axis=1) / 2
        known = self._known
        answers = ((known.other_wrong, known.other), (known.toxic_wrong, known.toxic))
        for kind, (wrong, given) in enumerate(answers):
            rates = self.logits(at, kind)
            common, last = at[:, width + kind], rates[:, -1]
            few, many = self._rates_prior[kind]
            total += few * special.log_expit(common) + many * special.log_expit(-common)
            total += wrong * special.log_expit(last) + (given - wrong) * special.log_expit(-last)
            beyond = np.maximum(rates.max(axis=1) - special.logit(RATE_BOUNDS[kind]), 0)
            total -= 50 * beyond**2  # a wall, which the search for the mode can still see
        return np.asarray(total)

    def _likelihoods(self, at: Floats) -> tuple[Floats, Floats, Floats]:
        """Return log-likelihoods (d, c) jointly with toxic and with not, and the prior's logit."""
        linear = self._design.shape[1]
        spline = (at[:, :linear] @ self._design.T)[:, self._filled]
        floor, ceiling = np.minimum(at[:, linear : self._width], _MOST).T[:, :, None]
        between = np.log1p(-np.exp(floor) - np.exp(ceiling))
        log_odds = np.logaddexp(floor, between + special.log_expit(spline))
        log_odds -= np.logaddexp(ceiling, between + special.log_expit(-spline))
        # Logarithms by place and by group, of which there are fewer than cells.
        log, place, group = special.log_expit, self._place, self._group
        up, down = (self.logits(at, kind) for kind in (0, 1))
        if_toxic, if_other = log(log_odds)[:, place], log(-log_odds)[:, place]
        if_toxic += self._toxic * log(-down)[:, group]
        if_toxic += self._other * log(down)[:, group]
        if_other += self._toxic * log(up)[:, group]
        if_other += self._other * log(-up)[:, group]
        return if_toxic, if_other, log_odds[:, place]


def _share(part: Floats, rest: Floats) -> Floats:
    """Return part/(part + rest); 0 where there is neither."""
    whole = part + rest
    return np.divide(part, whole, out=np.zeros(np.shape(whole)), where=whole > 0)


def _sampled(posterior: _Posterior, generator: np.random.Generator) -> Floats:
    """Return `DRAWS` draws."""
    mode, factor = _mode(posterior)
    for _ in range(_ROUNDS):
        normal = generator.standard_normal((_PROPOSALS, mode.size))
        normal /= np.sqrt(generator.chisquare(_FREEDOM, _PROPOSALS) / _FREEDOM)[:, None]
        proposed = mode + _INFLATION * normal @ factor.T
        tails = np.log1p((normal**2).sum(axis=1) / _FREEDOM) * (_FREEDOM + mode.size) / 2
        parts = np.array_split(proposed, 8)
        weight = np.concatenate([posterior.density(part) for part in parts]) + tails
        weight = np.exp(weight - weight.max())
        # Truncated importance sampling (Ionides 2008).
        weight = np.minimum(weight, weight.mean() * np.sqrt(weight.size))
        weight /= weight.sum()
        if 1 / (weight**2).sum() >= _ENOUGH:
            break
        # Again, from the mean and the covariance of these.
        mode = weight @ proposed
        spread = (weight[:, None] * (proposed - mode)).T @ (proposed - mode)
        factor = np.linalg.cholesky(spread + 1e-6 * np.eye(mode.size))
    places = (generator.random() + np.arange(DRAWS)) / DRAWS
    chosen = np.minimum(np.searchsorted(np.cumsum(weight), places), weight.size - 1)
    return np.asarray(proposed[generator.permutation(chosen)])


def _mode(posterior: _Posterior) -> tuple[Floats, Floats]:
    """Return the mode, and a factor of the inverse of the curvature there."""
    from scipy.optimize import minimize

    step = 1e-4 * np.eye(posterior.start.size)

    def slope(at: Floats) -> tuple[float, Floats]:
        around = posterior.density(np.concatenate([at[None], at + step, at - step]))
        up, down = np.split(around[1:], 2)
        return -float(around[0]), (down - up) / 2e-4

    found = minimize(slope, posterior.start, jac=True, method="BFGS", options={"gtol": 1e-2})
    curvature = _curvature(posterior, found.x)
    values, vectors = np.linalg.eigh(curvature)
    return found.x, vectors / np.sqrt(np.maximum(values, 0.05))


def _curvature(posterior: _Posterior, at: Floats) -> Floats:
    """Return minus the second derivatives of the log-density, by differences."""
    width = 0.02
    rows, columns = np.triu_indices(at.size)
    one, other = width * np.eye(at.size)[rows], width * np.eye(at.size)[columns]
    signs = ((1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1))
    second = sum(sign * posterior.density(at + a * one + b * other) for a, b, sign in signs)
    found = np.zeros((at.size, at.size))
    found[rows, columns] = found[columns, rows] = -second / (4 * width**2)
    return found


def _bins(score: Floats) -> Ints:
    """Return the bin (m,) of each score: of few scores where many are, narrow where few are."""
    inner = np.linspace(0, 1, _BINS + 1)[1:-1]
    equal = score.min() + inner * np.ptp(score)
    edges = np.unique(np.concatenate([np.quantile(score, inner), equal]))
    return np.asarray(np.searchsorted(edges, score), np.int64)


def _spline(at: Floats, score: Floats) -> Floats:
    """Return the basis (b, 4) of a natural cubic spline with knots at quantiles of `score`."""
    knots = np.unique(np.quantile(score, _KNOTS))
    if knots.size < len(_KNOTS):  # scores with ties
        knots = np.linspace(score.min() - 0.1, score.max() + 0.1, len(_KNOTS))
    cubes = np.maximum(at[:, None] - knots, 0) ** 3
    steep = (cubes[:, :-1] - cubes[:, -1:]) / (knots[-1] - knots[:-1])
    bent = (steep[:, :-1] - steep[:, -1:]) / (knots[-1] - knots[0]) ** 2
    return np.column_stack([np.ones(at.size), at, bent])
