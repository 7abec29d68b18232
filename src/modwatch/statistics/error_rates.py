"""The rates of people's errors, by the model's score, and the chance of labels that have some.

People miss what the model misses: irony, coded words, comments that need their context. On Civil
Comments and on MD-Agreement one person misses 20 and 16 % of the toxic comments in the fifth with
the highest scores, and 42 % of both in the fifth with the lowest, and wrongly accuses 3 and 8 % of
the others in the fifth with the lowest scores, and 29 and 30 % in that with the highest
(`benchmarks/errors_by_score.py`). In each group of comments, the logits of both rates are slightly
bent lines in the place of the score among the comments with a toxic label.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from modwatch.statistics.arguments import Floats, Ints

#: Mean and standard deviation of how far the logits of the false-positive and of the false-negative
#: rate climb from the lowest scores of comments with a toxic label to the highest, at the slope of
#: one group of comments. On corpora with several votes they climb by 0.4 to 2.5, and by 0.4 to
#: −2.8, mostly −0.6 to −1.6; on a part of the scores, such as those of the unflagged comments, the
#: slope may be several times that.
CLIMB = ((1.0, 3.0), (-1.2, 2.0))

#: Standard deviations of the logits of a rate: between groups, and of the bend of a group's line at
#: one standard deviation of the place from its middle, against there.
_BETWEEN, _BEND = 0.5, 0.5
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


class ErrorRates:
    """The rates of one kind of errors: of groups of comments and bands of the score, the strata.

    Parameters: the logit of the rate that is common to all; the deviations of the groups, and of
    the known answers; how its line is bent, and how far it climbs, in each group.
    """

    def __init__(
        self,
        *,
        first: int,
        high: Floats,
        own: NDArray[np.bool_],
        climb: tuple[float, float],
        prior: RatePrior,
        kinds: tuple[Ints, Ints, Ints],
    ) -> None:
        """`first` is the place of the first parameter.

        `high` (S + 1,) is the place of the band of a stratum from −½ to ½, and `own` (S + 1, G + 1)
        its group, the last those of known answers; `climb` mean and standard deviation of the
        climbs; `kinds` (k,) the stratum and the numbers of wrong and of right labels.
        """
        ones, high, groups = np.ones((high.size, 1)), high[:, None], own[:, :-1]
        self._groups = groups.shape[1]
        bands = np.maximum(groups.sum(axis=0), 1)
        away = (high - (high * groups).sum(axis=0) / bands) * groups
        spread = (away**2).sum(axis=0) / bands
        bent = away**2 / np.where(spread > 0, spread, 1) - groups * (spread > 0)
        self._mean = climb[0] * high
        self._design = np.hstack([ones, _BETWEEN * own, _BEND * bent, climb[1] * away])
        #: Places of the parameters; the first is that of the common rate.
        self.own = slice(first, first + self._design.shape[1])
        self._prior = prior
        self._stratum, self._wrong, self._right = kinds
        #: (S, k) whether a kind of labels is of a stratum.
        self._of_stratum = 1.0 * (np.arange(len(own) - 1)[:, None] == self._stratum)

    def logits(self, at: Floats) -> Floats:
        """Return the logits (S + 1, d) of the rates; the last of the known answers."""
        return np.asarray(self._mean + self._design @ at[:, self.own].T)

    def climbs(self, at: Floats) -> Floats:
        """Return how much farther (d, G) the logit climbs than the mean of the prior, in its units.

        From the lowest band of the score to the highest, in each group.
        """
        return np.asarray(at[:, self.own][:, -self._groups :])

    def prior(self, at: Floats, slope: Floats, pull: Floats) -> Floats:
        """Return the log-prior (d,) of the rates, and add its slope and that of the likelihood.

        `pull` (k, d) is the latter, in the logit of the rate of each kind of labels.
        """
        prior, logit, log = self._prior, self.logits(at), special.log_expit
        common, known, (few, many) = at[:, self.own.start], logit[-1], prior.common
        beyond = np.maximum(logit - special.logit(prior.most), 0)
        right = prior.answers - prior.wrong
        of_known = prior.wrong - prior.answers * special.expit(known)
        grown = np.vstack([self._of_stratum @ pull, of_known]) - 2 * _WALL * beyond
        slope[:, self.own] += grown.T @ self._design
        slope[:, self.own.start] += common + few - (few + many) * special.expit(common)
        value = few * log(common) + many * log(-common) - _WALL * (beyond**2).sum(axis=0)
        return np.asarray(value + prior.wrong * log(known) + right * log(-known))

    def chance(self, at: Floats, shared: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the log-chance (k, d) of each kind of labels where such errors are made.

        And its slopes in the logit of its rate, and in that of the common rate. Errors are
        beta-binomial: with a first one, further ones are as frequent as `shared` (d,) at the common
        rate, with the same correlation at the others. Where it is below 0, they are rarer than
        chance, as in an urn from which |κ| e (1−e) has been taken; several ones before count as
        one.
        """
        rate = special.expit(np.minimum(self.logits(at)[:-1], _MOST_LOGIT))[:, None]
        usual = special.expit(np.minimum(at[:, self.own.start], _MOST_LOGIT))
        apart, alike = np.minimum(shared, 0), shared > usual
        away = 1 + apart * rate * (1 - rate)
        alpha = np.where(alike, (shared - usual) / (1 - usual), 1 - 1 / away)
        #: How fast the correlation grows with the rate, and with the logit of the common one.
        by_rate = np.where(alike, 0.0, apart * (1 - 2 * rate) / away**2)
        by_usual = np.where(alike, (shared - 1) * usual / (1 - usual), 0.0)
        number = np.arange(int((self._wrong + self._right).max(initial=0)))[:, None]
        number = np.where(alpha < 0, np.minimum(number, 1), number)
        parts = (
            (rate, 1.0, self._wrong, 1),
            (1 - rate, -1.0, self._right, 1),
            (1.0, 0.0, self._wrong + self._right, -1),
        )
        log, slope, common = np.zeros((3, self._stratum.size, len(at)))
        for base, grown, times, sign in parts:
            part = np.maximum(base * (1 - alpha) + number * alpha, _TINY)
            pull = grown * (1 - alpha) + (number - base) * by_rate
            for found, terms in (
                (log, np.log(part)),
                (slope, pull / part),
                (common, (number - base) * by_usual / part),
            ):
                found += sign * _before(terms)[self._stratum, times]
        return log, slope * (rate * (1 - rate))[self._stratum, 0], common


def _before(values: Floats) -> Floats:
    """Return the sums (S, n + 1, d) of the first 0 … n values (S, n, d)."""
    sums = np.zeros((values.shape[0], values.shape[1] + 1, values.shape[2]))
    for number in range(values.shape[1]):  # much faster than `cumsum`
        sums[:, number + 1] = sums[:, number] + values[:, number]
    return sums
