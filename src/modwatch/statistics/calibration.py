"""The posterior of P(toxic | score) and of people's error rates, given labels of some comments.

Of n labels of a comment, k are toxic with the likelihood

    π(p) B(n−k; n, g)  +  (1−π(p)) B(k; n, f),

with f and g the false-positive and the false-negative rate (Dawid & Skene 1979) and B the chance of
so many errors, which are independent or not (`label_truth`). π = ε + (1−ε−δ) expit(η) with a floor
ε and a ceiling 1−δ, and η is a line in the logit of the score and a random walk along it: between
quantiles of the labelled scores it climbs by steps that have a t-distribution, so that a step costs
one jump and a smooth curve little. η may jump from group to group of comments, as a step.

Comments without labels (n = 0) have the posterior of their score and group.

Labels of another curve, such as earlier ones or those of other comments, tell this one as far as
both agree: theirs is the same curve moved as a whole, at some scores and in slope, by steps with a
t-distribution. Where the labels contradict them, they are left (commensurate prior; Hobbs et al.
2011).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from modwatch.statistics.arguments import Floats, Ints

#: Scores nearer to 0 or 1 count as this near.
_NEAREST = 1e-12
#: Bins of the scores by quantile; quantiles between which the curve climbs, and the least distance
#: of these, in standard deviations of the score.
_BINS, _KNOTS, _LEAST_STEP = 40, np.linspace(0.05, 0.95, 8), 0.08
#: Mean and standard deviation of level and slope at unit variance of the score, of log ε, and of
#: log δ; the largest value of either.
_LEVEL, _SLOPE, _FLOOR, _CEILING, _MOST = (-2.0, 4.0), (0.8, 3.0), (-8.0, 2.0), (-3.0, 2.0), -0.8
#: Steps have a t-distribution: its degrees of freedom; the scale of the curve's, and of a jump
#: between groups. Quantiles at which another curve may be at another distance.
_FREEDOM, _STEP, _JUMP = 2.0, 0.3, 1.5
_BENT_AT = np.array([0.05, 0.35, 0.65, 0.95])
#: Standard deviation of the logits of a rate between groups.
_BETWEEN = 0.5
#: Weight of the wall at the largest rate, which the search for the mode can still see.
_WALL = 50.0
_TINY, _MOST_LOGIT = 1e-300, 30.0


@dataclass(frozen=True, kw_only=True)
class RatePrior:
    """What is known of an error rate besides the labels."""

    #: Pseudo-counts (wrong, right) of the beta prior of the common rate.
    common: tuple[float, float]
    #: Wrong answers, and all answers, to comments whose true label is known.
    wrong: float
    answers: float
    #: Largest plausible value.
    most: float


class Posterior:
    """The density of the parameters, up to a factor, on counts by cell.

    Parameters: level, slope, jumps, steps and movement of the curve; log ε and log δ; the logits of
    the common f and g; the deviation of each group from either. All but the common ones are in
    units of their priors. Known answers are the last group. A cell holds the comments of a place,
    which is a bin of scores of one group, with equal labels.
    """

    def __init__(
        self,
        prob: Floats,
        group: Ints,
        given: Ints,
        toxic: Ints,
        *,
        past: NDArray[np.bool_],
        moved: tuple[float, float],
        rates: Sequence[RatePrior],
    ) -> None:
        """`prob`, `group`, `given` and `toxic` (m,) are as in `label_truth.GivenLabels`.

        `past` (m,) are labels of another curve, whose groups have rates of their own. `moved` are
        the scales of its distance from this one: in log-odds, as a whole and at some quantiles, and
        in slope. `rates` are the priors of false positives and of false negatives.
        """
        sides = int(group.max(initial=0)) + 1
        group = group + sides * past
        self._groups, self._rates = int(group.max(initial=0)) + 1, rates
        score = special.logit(np.clip(prob.astype(np.float64), _NEAREST, 1 - _NEAREST))
        labelled = given > 0
        seen = score[labelled] if labelled.any() else score
        self._spread = spread = max(float(seen.std()), 0.3)
        scaled = (score - np.median(seen)) / spread
        place = _bins(scaled, scaled[labelled]) * self._groups + group
        most = int(given.max(initial=1)) + 1
        key, self.cell, count = np.unique(
            (place * most + given) * most + toxic, return_inverse=True, return_counts=True
        )
        places, self._place = np.unique(key // most**2, return_inverse=True)
        mean = (np.bincount(place, weights=scaled) / np.maximum(np.bincount(place), 1))[places]
        rest = scaled[labelled & (group % sides > 0)]
        #: (k,) η of each place at the centre of the prior, and (k, c) the design of the curve.
        self._centre = _LEVEL[0] + _SLOPE[0] * spread * mean
        here = places % self._groups
        climbed = _climbed(mean, _knots([scaled[labelled], rest], _KNOTS))
        bends = _climbed(mean, _knots([scaled[labelled]], _BENT_AT))
        moves = np.column_stack([moved[1] * spread * mean, moved[0] * np.ones(mean.size)])
        moves = np.hstack([moves, moved[0] * bends]) * (here >= sides)[:, None]
        jumps = here[:, None] % sides == np.arange(1, sides)
        line = np.column_stack([_LEVEL[1] * np.ones(mean.size), _SLOPE[1] * spread * mean])
        design = [line, _JUMP * jumps, _STEP * climbed]
        self._design = np.column_stack([*design, moves] if past.any() else design)
        #: Cells with labels, their places with the first cell of each, and combinations of group,
        #: toxic and other labels.
        self._labelled = np.flatnonzero(key // most % most)
        self._seen, self._first = np.unique(self._place[self._labelled], return_index=True)
        kinds = np.column_stack([key // most**2 % self._groups, key % most, key // most % most])
        kinds[:, 2] -= kinds[:, 1]
        self._kinds, self._kind = np.unique(kinds, axis=0, return_inverse=True)
        self._count = count[self._labelled].astype(np.float64)
        #: (c, k) whether a labelled cell has a kind of labels, (k, G) whether a group has it.
        self._of_kind = 1.0 * (self._kind[self._labelled][:, None] == np.arange(len(self._kinds)))
        self._of_group = 1.0 * (self._kinds[:, :1] == np.arange(self._groups))
        self._curve = self._design.shape[1]
        self._common = self._curve + 2
        #: Parameters with a standard normal prior: all but steps and common rates.
        apart = [*range(2, self._curve), self._common, self._common + 1]
        self._normal = np.delete(np.arange(self.start.size), apart)

    @property
    def start(self) -> Floats:
        """A point from which to search for the mode."""
        at = np.zeros(self._common + 2 + 2 * (self._groups + 1))
        # Not below the share of toxic labels: the search would take these for false positives, and
        # end where nearly all labels are wrong.
        _, toxic, other = self._kinds[self._kind[self._labelled]].T
        share = np.log((self._count @ toxic + 1) / (self._count @ other + 1))
        at[0] = max(share - _LEVEL[0], 0) / _LEVEL[1]
        at[1] = (0.5 / self._spread - _SLOPE[0]) / _SLOPE[1]
        at[self._common : self._common + 2] = -3.5, -2.0
        return at

    def rate(self, at: Floats, kind: int) -> Floats:
        """Return the logits (d, G + 1) of f (`kind` 0) or g (1) by group; the last of the known."""
        return np.asarray(at[:, self._common + kind, None] + _BETWEEN * at[:, self._own(kind)])

    def probabilities(self, at: Floats, shared: Floats) -> tuple[Floats, Floats]:
        """Return the probability of toxic (d, c) before and after the labels are seen."""
        prior = self._prevalence(at)[0][:, self._place]
        if_other, if_toxic = (
            np.exp(self._chance(at, kind, shared[:, kind])[0])[:, self._kind] for kind in (0, 1)
        )
        toxic = prior * if_toxic
        return prior, toxic / np.maximum(toxic + (1 - prior) * if_other, _TINY)

    def density(self, at: Floats, shared: Floats) -> tuple[Floats, Floats]:
        """Return the logarithm (d,) of likelihood times prior, and its slope (d, p).

        `shared` (d, 2) is κ of false positives and of false negatives.
        """
        slope, cells, end = -at, self._labelled, self._curve
        steps = at[:, 2:end]
        value = (_FREEDOM + 1) * -np.log1p(steps**2 / _FREEDOM).sum(axis=1) / 2
        slope[:, 2:end] = -(_FREEDOM + 1) * steps / (_FREEDOM + steps**2)
        value -= (at[:, self._normal] ** 2).sum(axis=1) / 2
        prevalence, share, floor, ceiling = self._prevalence(at)
        chances = [self._chance(at, kind, shared[:, kind]) for kind in (0, 1)]
        if_other, if_toxic = (np.exp(chance)[:, self._kind[cells]] for chance, _ in chances)
        prior = prevalence[:, self._place[cells]]
        both = np.maximum(prior * if_toxic + (1 - prior) * if_other, _TINY)
        value += np.log(both) @ self._count
        grown = np.zeros_like(prevalence)
        grown[:, self._seen] = np.add.reduceat(
            self._count * (if_toxic - if_other) / both, self._first, axis=1
        )
        slope[:, :end] += (grown * (1 - floor - ceiling) * share * (1 - share)) @ self._design
        ends = (floor * (1 - share), _FLOOR), (-ceiling * share, _CEILING)
        for place, (pull, (mean, spread)) in enumerate(ends, start=end):
            inside = mean + spread * at[:, place] < _MOST
            slope[:, place] += spread * inside * (grown * pull).sum(axis=1)
        toxic = self._count * prior * if_toxic / both
        for kind, part in enumerate((self._count - toxic, toxic)):
            pull = (part @ self._of_kind * chances[kind][1]) @ self._of_group
            value += self._known(at, slope, kind, pull)
        return value, slope

    def _known(self, at: Floats, slope: Floats, kind: int, pull: Floats) -> Floats:
        """Return the log-prior (d,) of the rates of one kind of errors, and add to its slope.

        `pull` (d, G) is the slope of the likelihood in the logits.
        """
        prior, logit, log = self._rates[kind], self.rate(at, kind), special.log_expit
        place, (few, many) = self._common + kind, prior.common
        common, known = at[:, place], logit[:, -1]
        beyond = np.maximum(logit - special.logit(prior.most), 0)
        right = prior.answers - prior.wrong
        of_known = prior.wrong - prior.answers * special.expit(known)
        pull = np.column_stack([pull, of_known]) - 2 * _WALL * beyond
        slope[:, place] = few - (few + many) * special.expit(common) + pull.sum(axis=1)
        slope[:, self._own(kind)] += _BETWEEN * pull
        value = few * log(common) + many * log(-common) - _WALL * (beyond**2).sum(axis=1)
        return np.asarray(value + prior.wrong * log(known) + right * log(-known))

    def _own(self, kind: int) -> slice:
        """Return the places of the deviations of the groups from the common rate."""
        first = self._common + 2 + kind * (self._groups + 1)
        return slice(first, first + self._groups + 1)

    def _prevalence(self, at: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return π (d, k) at each place, expit(η), ε and δ (d, 1)."""
        floor, ceiling = (
            np.exp(np.minimum(mean + spread * at[:, place, None], _MOST))
            for place, (mean, spread) in enumerate((_FLOOR, _CEILING), start=self._curve)
        )
        share = special.expit(self._centre + at[:, : self._curve] @ self._design.T)
        return floor + (1 - floor - ceiling) * share, share, floor, ceiling

    def _chance(self, at: Floats, kind: int, shared: Floats) -> tuple[Floats, Floats]:
        """Return the log-chance (d, k) of each kind of labels where `kind` of errors are made.

        And its slope in the logit of the rate. Errors are beta-binomial: with a first one, further
        ones are as frequent as `shared` (d,). Where it is below 0, they are rarer than chance, as
        in an urn from which |κ| e (1−e) has been taken; several ones before count as one.
        """
        shared = shared[:, None, None]
        group, toxic, other = self._kinds.T
        wrong, right = (toxic, other) if kind == 0 else (other, toxic)
        rate = special.expit(np.minimum(self.rate(at, kind)[:, :-1], _MOST_LOGIT))[..., None]
        alike, apart = shared > rate, np.minimum(shared, 0)
        away = 1 + apart * rate * (1 - rate)
        alpha = np.where(alike, (shared - rate) / (1 - rate), 1 - 1 / away)
        less = np.where(alike, (1 - shared) / (1 - rate) ** 2, apart * (2 * rate - 1) / away**2)
        number = np.arange(int((wrong + right).max(initial=0)))
        number = np.where(alpha < 0, np.minimum(number, 1), number)
        parts = (
            (rate * (1 - alpha) + number * alpha, 1 - alpha + (rate - number) * less),
            ((1 - rate) * (1 - alpha) + number * alpha, alpha - 1 + (1 - rate - number) * less),
            (1 - alpha + number * alpha, less - number * less),
        )
        log, slope = np.zeros((2, len(at), group.size))
        for (part, pull), times, sign in zip(
            parts, (wrong, right, wrong + right), (1, 1, -1), strict=True
        ):
            sums = (
                _before(np.log(np.maximum(part, _TINY))),
                _before(pull / np.maximum(part, _TINY)),
            )
            log += sign * sums[0][:, group, times]
            slope += sign * sums[1][:, group, times]
        return log, slope * (rate * (1 - rate))[:, group, 0]


def _before(values: Floats) -> Floats:
    """Return the sums (…, n + 1) of the first 0 … n values (…, n)."""
    sums = np.cumsum(values, axis=-1)
    return np.concatenate([np.zeros((*values.shape[:-1], 1)), sums], axis=-1)


def _bins(scaled: Floats, seen: Floats) -> Ints:
    """Return the bin (m,) of each score: of few scores where many are, narrow where few are."""
    inner = np.linspace(0, 1, _BINS + 1)[1:-1]
    edges = np.quantile(scaled, inner)
    if seen.size:
        equal = seen.min() + inner * np.ptp(seen)
        edges = np.concatenate([edges, np.quantile(seen, inner), equal])
    return np.asarray(np.searchsorted(np.unique(edges), scaled), np.int64)


def _knots(scores: Sequence[Floats], at: Floats) -> Floats:
    """Return quantiles of each of some scores, apart from each other."""
    kept = list[float]()
    for knot in np.sort(np.concatenate([np.quantile(part, at) for part in scores if part.size])):
        if not kept or knot - kept[-1] > _LEAST_STEP:
            kept.append(float(knot))
    return np.array(kept)


def _climbed(scaled: Floats, knots: Floats) -> Floats:
    """Return how far (k, n − 1) each score is past each knot, towards the next one."""
    return np.clip((scaled[:, None] - knots[:-1]) / np.diff(knots), 0, 1)
