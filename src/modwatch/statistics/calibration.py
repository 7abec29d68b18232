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

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special

from modwatch.statistics.arguments import Floats, Ints
from modwatch.statistics.error_rates import CLIMB, ErrorRates, RatePrior

#: Scores nearer to 0 or 1 count as this near.
_NEAREST = 1e-12
#: Bins of the scores by quantile; quantiles between which the curve climbs, and the least distance
#: of these, in standard deviations of the score.
_BINS, _KNOTS, _LEAST_STEP = 25, np.linspace(0.05, 0.95, 8), 0.08
#: Mean and standard deviation of level and slope at unit variance of the score, of log ε, and of
#: log δ; the largest value of either.
_LEVEL, _SLOPE, _FLOOR, _CEILING, _MOST = (-2.0, 4.0), (0.8, 3.0), (-8.0, 2.0), (-3.0, 2.0), -0.8
#: Steps have a t-distribution: its degrees of freedom; the scale of the curve's, and of a jump
#: between groups. Quantiles at which another curve may be at another distance.
_FREEDOM, _STEP, _JUMP = 2.0, 0.3, 1.5
_BENT_AT = np.array([0.05, 0.35, 0.65, 0.95])
#: Quantiles of the scores with a toxic label between which error rates differ.
_BANDS = np.linspace(0.1, 0.9, 4)
_TINY = 1e-300


class Posterior:
    """The density of the parameters, up to a factor, on counts by cell.

    Parameters: level, slope, jumps, steps and movement of the curve; log ε and log δ; those of the
    rates f and g (`ErrorRates`). All but the logits of the common rates are in units of their
    priors. A cell holds the comments of a place, which is a bin of scores of one group, with equal
    labels.
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
        self._groups = int(group.max(initial=0)) + 1
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
        bends = _climbed(mean, _knots([scaled[labelled], rest], _BENT_AT))
        moves = np.column_stack([moved[1] * spread * mean, moved[0] * np.ones(mean.size)])
        moves = np.hstack([moves, moved[0] * bends]) * (here >= sides)[:, None]
        jumps = here[:, None] % sides == np.arange(1, sides)
        line = np.column_stack([_LEVEL[1] * np.ones(mean.size), _SLOPE[1] * spread * mean])
        design = [line, _JUMP * jumps, _STEP * climbed]
        self._design = np.column_stack([*design, moves] if past.any() else design)
        self._labelled = np.flatnonzero(key // most % most)
        self._count = count[self._labelled].astype(np.float64)
        called = labelled & (toxic > 0)
        edges = _knots([scaled[called & (group % sides == one)] for one in range(sides)], _BANDS)
        bands = edges.size + 1
        strata, stratum = np.unique(
            here * bands + np.searchsorted(edges, mean), return_inverse=True
        )
        self._group_of, band = np.divmod(strata, bands)
        kinds = np.column_stack([stratum[self._place], key % most, key // most % most])
        kinds, self._kind = np.unique(kinds, axis=0, return_inverse=True)
        #: Sums of the labelled cells by place and by kind, and the comments of each kind.
        self._by_place = _sums(self._place[self._labelled], mean.size)
        self._by_kind = _sums(self._kind[self._labelled], len(kinds))
        self._comments = self._by_kind @ self._count
        self._toxic, self._other = kinds[:, 1], kinds[:, 2] - kinds[:, 1]
        self._stratum = kinds[:, 0]
        self._curve = self._design.shape[1]
        own = np.append(self._group_of, self._groups)[:, None] == np.arange(self._groups + 1)
        high = np.append(band / max(edges.size, 1) - 0.5, 0.0)
        first, self._errors = self._curve + 2, list[ErrorRates]()
        wrong_of = (self._toxic, self._other), (self._other, self._toxic)
        for climb, prior, (wrong, right) in zip(CLIMB, rates, wrong_of, strict=True):
            found = ErrorRates(
                first=first,
                high=high,
                own=own,
                climb=climb,
                prior=prior,
                kinds=(self._stratum, wrong, right),
            )
            self._errors.append(found)
            first = found.own.stop
        #: Parameters with a standard normal prior: all but steps and common rates.
        apart = [*range(2, self._curve), *(errors.own.start for errors in self._errors)]
        self._normal = np.delete(np.arange(first), apart)

    @property
    def start(self) -> Floats:
        """A point from which to search for the mode."""
        at = np.zeros(self._errors[1].own.stop)
        # Not below the share of toxic labels: the search would take these for false positives, and
        # end where nearly all labels are wrong.
        share = np.log((self._comments @ self._toxic + 1) / (self._comments @ self._other + 1))
        at[0] = max(share - _LEVEL[0], 0) / _LEVEL[1]
        at[1] = (0.5 / self._spread - _SLOPE[0]) / _SLOPE[1]
        at[[errors.own.start for errors in self._errors]] = -3.5, -2.0
        return at

    def climbs(self, at: Floats) -> Floats:
        """Return how far (2, d, G) the logits of f and g climb in each group: `ErrorRates`."""
        return np.stack([errors.climbs(at) for errors in self._errors])

    def rates(self, at: Floats, prob: Floats, groups: int) -> list[Floats]:
        """Return f and g (d, G) of the first groups: of their labelled comments, on average.

        `prob` (d, c) are the probabilities that comments of each cell are toxic.
        """
        cells, found = self._labelled, list[Floats]()
        toxic, stratum = prob[:, cells].mean(axis=0), self._stratum[self._kind[cells]]
        inside = self._group_of[:, None] == np.arange(groups)
        inside |= ~inside.any(axis=0)  # of a group without comments: as of all
        for errors, share in zip(self._errors, (1 - toxic, toxic), strict=True):
            mass = np.bincount(stratum, self._count * share, minlength=len(inside))
            weight = (mass[:, None] + _TINY) * inside
            rate = special.expit(errors.logits(at)[:-1])
            found.append(rate.T @ (weight / weight.sum(axis=0)))
        return found

    def probabilities(self, at: Floats, shared: Floats) -> tuple[Floats, Floats]:
        """Return the probability of toxic (d, c) before and after the labels are seen."""
        prior = self._prevalence(at)[0][self._place]
        if_other, if_toxic = (
            np.exp(errors.chance(at, known)[0])[self._kind]
            for errors, known in zip(self._errors, shared.T, strict=True)
        )
        toxic = prior * if_toxic
        return prior.T, (toxic / np.maximum(toxic + (1 - prior) * if_other, _TINY)).T

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
        chances = [
            errors.chance(at, known) for errors, known in zip(self._errors, shared.T, strict=True)
        ]
        if_other, if_toxic = (np.exp(chance)[self._kind[cells]] for chance, *_ in chances)
        prior = prevalence[self._place[cells]]
        both = np.maximum(prior * if_toxic + (1 - prior) * if_other, _TINY)
        value += self._count @ np.log(both)
        of_cell = self._count[:, None] / both
        grown = self._by_place @ (of_cell * (if_toxic - if_other))
        slope[:, :end] += (grown * (1 - floor - ceiling) * share * (1 - share)).T @ self._design
        ends = (floor * (1 - share), _FLOOR), (-ceiling * share, _CEILING)
        for place, (pull, (mean, spread)) in enumerate(ends, start=end):
            inside = mean + spread * at[:, place] < _MOST
            slope[:, place] += spread * inside * (grown * pull).sum(axis=0)
        toxic = self._by_kind @ (of_cell * prior * if_toxic)
        other = self._comments[:, None] - toxic
        for errors, part, chance in zip(self._errors, (other, toxic), chances, strict=True):
            value += errors.prior(at, slope, part * chance[1])
            slope[:, errors.own.start] += (part * chance[2]).sum(axis=0)
        return value, slope

    def _prevalence(self, at: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return π (k, d) at each place, expit(η), ε and δ (d,)."""
        floor, ceiling = (
            np.exp(np.minimum(mean + spread * at[:, place], _MOST))
            for place, (mean, spread) in enumerate((_FLOOR, _CEILING), start=self._curve)
        )
        share = special.expit(self._centre[:, None] + self._design @ at[:, : self._curve].T)
        return floor + (1 - floor - ceiling) * share, share, floor, ceiling


def _sums(place: Ints, size: int) -> sparse.csr_array:
    """Return the matrix (size, c) that sums over the rows of each place (c,)."""
    rows = np.arange(place.size)
    return sparse.csr_array((np.ones(place.size), (place, rows)), shape=(size, place.size))


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
    found = [np.quantile(part, at) for part in scores if part.size]
    for knot in np.sort(np.concatenate([np.empty(0), *found])):
        if not kept or knot - kept[-1] > _LEAST_STEP:
            kept.append(float(knot))
    return np.array(kept)


def _climbed(scaled: Floats, knots: Floats) -> Floats:
    """Return how far (k, n − 1) each score is past each knot, towards the next one."""
    return np.clip((scaled[:, None] - knots[:-1]) / np.diff(knots), 0, 1)
