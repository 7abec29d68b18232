r"""A model of daily estimates of a share: levels, weekdays, wandering, sampling error.

Each day is taken to the scale φ = 2·arcsin √p, on which the standard error s of a share does not
depend on the share (Anscombe 1948), so that values of 1 and skewed intervals need no exception:

    φ(p_i) = level_i + weekday_i + wandering_i + sampling error_i

The level is constant between changes. Weekday effects have standard deviation ω; wandering is an
AR(1) process with standard deviation τ and correlation ρ from a day to the next. How large they are
is not known: each combination h = (τ, ρ, ω) of `WANDERING` and `WEEKDAYS` has a probability
beforehand, and the series weighs them. A series without a season is not corrected for one; the
first weeks, which show none, allow for one.

With flat priors of the levels and a half-normal prior of the size of a change, the likelihood ratio
of a change on day k at the end of day t has a closed form for each h, and

    LR_t(k) = Σ_h p(h | days 1 … t, no change) · LR_t(k | h)          R_t = Σ_{k ≤ t} LR_t(k)

R is the Shiryaev–Roberts statistic, a sum of e-processes, one started on each day: an e-detector
(Shin, Ramdas & Rinaldo 2024). The ratio of a day does not depend on the level, and is a martingale
from 1 on without a change (Pérez-Ortiz et al. 2024, *Annals of Statistics* 52, on invariant
e-statistics). So R_t − t is a martingale, and with an alarm at R ≥ A

    mean days to a false alarm ≥ A          P(false alarm within T days) ≤ T / A

supposing normal estimates on the scale φ with the variances that their intervals state, and
series whose h is distributed as beforehand. For a single h the bound holds up to the odds at which
the series is mistaken for one of another h; `benchmarks/alerts.py` has the rates.

The variances are median_{j ≤ i}(s_j² n_j) / n_i, with n_i labels: the interval of a day that is low
by chance is wider than that of a day that is high by chance.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp

from modwatch.statistics.arguments import Floats
from modwatch.statistics.intervals import NORMAL_QUANTILE

#: Probability beforehand, τ, and ρ. At an accuracy of 0.9, τ is one, two or four points.
WANDERING = (
    (0.4, 0.03, 0.0),
    (0.15, 0.06, 0.0),
    (0.15, 0.06, 0.5),
    (0.15, 0.12, 0.5),
    (0.15, 0.12, 0.8),
)

#: Probability beforehand, and ω.
WEEKDAYS = ((0.5, 0.0), (0.25, 0.05), (0.25, 0.15))

#: Scale of the half-normal prior of the size of a change: six points at an accuracy of 0.9.
SIZE = 0.2

Direction = Literal["fall", "rise"]

_SIGNS: Mapping[Direction, float] = {"fall": -1.0, "rise": 1.0}


@dataclass(frozen=True, kw_only=True)
class Level:
    """The mean of a share over several days, with its 95 % interval; all in [0, 1]."""

    value: float
    low: float
    high: float

    @classmethod
    def from_mean(cls, mean: float, error: float) -> "Level":
        """Return the level of a mean share, with its standard error on the scale φ."""
        margin = NORMAL_QUANTILE * error
        ends = angle(np.clip(mean, 0, 1)) + np.array([0.0, -margin, margin])
        value, low, high = (float(end) for end in np.sin(np.clip(ends, 0, np.pi) / 2) ** 2)
        return cls(value=value, low=low, high=high)

    def change_to(self, other: "Level") -> tuple[float, float, float]:
        """Return other − this, in [−1, 1], with its approximate 95 % interval."""
        value = other.value - self.value
        margin = math.hypot(self.high - self.low, other.high - other.low) / 2
        return value, max(value - margin, -1.0), min(value + margin, 1.0)


@dataclass(frozen=True, kw_only=True)
class Changes:
    """The evidence of a change on each candidate day, at the end of each of m days."""

    #: (m, K) log LR of each candidate day; −∞ where it is later.
    logs: Floats
    #: (m,) log R, their sum; −∞ where there is no candidate.
    total: Floats


@dataclass(frozen=True, kw_only=True)
class DailyLevels:
    """The columns of m days, freed of correlation under each of H kinds of noise.

    A column is multiplied by the inverse Cholesky factor of the covariance of the days. The factor
    of the first days is a part of it, so that no day depends on later ones.
    """

    #: (H,) logarithm of the probability of the noise beforehand.
    prior: Floats
    #: (H, m) logarithm of the determinant of the factor of the days up to each.
    scale: Floats
    #: (H, m) estimates on the scale φ, and as shares.
    angle: Floats
    share: Floats
    #: (H, m, m) 1 from day j on.
    step: Floats

    @classmethod
    def from_days(
        cls, position: NDArray[np.intp], share: Floats, variance: Floats
    ) -> "DailyLevels":
        """Return the columns, from positions (m,) of the days, shares (m,) and variances of φ."""
        gap = np.abs(position[:, None] - position)
        kinds = [(p * q, *kind, season) for p, *kind in WANDERING for q, season in WEEKDAYS]
        prior, spread, correlation, season = np.array(kinds).T[..., None, None]
        same = spread**2 * correlation**gap + season**2 * (gap % 7 == 0)
        factor = np.linalg.cholesky(np.diag(variance) + same)
        columns = np.column_stack([angle(share), share, np.tri(share.size)])
        white = np.linalg.solve(factor, columns[None])
        return cls(
            prior=np.log(prior.ravel()),
            scale=np.cumsum(np.log(np.diagonal(factor, axis1=1, axis2=2)), axis=1),
            angle=white[..., 0],
            share=white[..., 1],
            step=white[..., 2:],
        )

    def changes(self, firsts: Sequence[int]) -> dict[Direction, Changes]:
        """Return the evidence of a further change after levels that begin on the days `firsts`."""
        last, days = firsts[-1], self.angle.shape[1]
        known, step = self.step[:, :, firsts], self.step[:, :, last + 1 :]
        columns = np.concatenate([self.angle[..., None], step], axis=-1)
        gram = np.cumsum(known[..., None] * known[..., None, :], axis=1)
        gram[:, :last] = np.eye(len(firsts))  # days on which a level has not begun yet
        shared = np.cumsum(known[..., None] * columns[..., None, :], axis=1)
        fitted = np.linalg.solve(gram, shared)
        left = np.cumsum(columns**2, axis=1) - (shared * fitted).sum(axis=2)
        moved = np.cumsum(step * self.angle[..., None], axis=1)
        moved -= (shared[..., 1:] * fitted[..., :1]).sum(axis=2)
        kinds = self._kinds(np.linalg.slogdet(gram)[1], left[..., 0])[..., None]
        weight = np.maximum(left[..., 1:], 0)
        z = moved / np.sqrt(weight + SIZE**-2)
        log = kinds + np.log(2) - np.log1p(weight * SIZE**2) / 2 + z**2 / 2
        later = np.arange(days)[:, None] < np.arange(last + 1, days)
        found: dict[Direction, Changes] = {}
        for direction, sign in _SIGNS.items():
            logs = np.where(later, -np.inf, logsumexp(log + log_ndtr(sign * z), axis=0))
            total = logsumexp(logs, axis=1) if days > last + 1 else np.full(days, -np.inf)
            found[direction] = Changes(logs=logs, total=total)
        return found

    def levels(self, firsts: Sequence[int], last: int) -> list[Level]:
        """Return the levels that begin on the days `firsts`, as known on the evening before `last`.

        They are weighted means of the shares themselves. The mean on the scale φ, or with a day's
        own variance, is too high near 1.
        """
        known = self.step[:, :last, firsts]
        known = known - np.concatenate([known[..., 1:], np.zeros_like(known[..., :1])], axis=-1)
        inverse = np.linalg.inv(known.swapaxes(1, 2) @ known)
        columns = np.stack([self.angle, self.share], axis=-1)[:, :last]
        means = inverse @ known.swapaxes(1, 2) @ columns
        left = ((columns - known @ means)[..., 0] ** 2).sum(axis=1)
        kinds = self._kinds(-np.linalg.slogdet(inverse)[1], left, last - 1)
        mean, share = np.einsum("h,hlc->cl", np.exp(kinds), means)
        variance = np.diagonal(inverse, axis1=1, axis2=2) + (means[..., 0] - mean) ** 2
        errors = np.sqrt(np.exp(kinds) @ variance)
        return [Level.from_mean(*level) for level in zip(share, errors, strict=True)]

    def _kinds(self, determinant: Floats, left: Floats, day: int | None = None) -> Floats:
        """Return the logarithms of the probabilities of the kinds of noise, given days up to each.

        `determinant` is the logarithm of that of the levels' precision, `left` the sum of squares
        that they leave; of all days (H, m), or of one, (H,).
        """
        days = slice(None) if day is None else day
        prior = self.prior[:, None] if day is None else self.prior
        log = prior - self.scale[:, days] - determinant / 2 - left / 2
        return np.asarray(log - logsumexp(log, axis=0))


def angle(share: Floats) -> Floats:
    """Return φ = 2·arcsin √p."""
    return np.asarray(2 * np.arcsin(np.sqrt(share)), dtype=np.float64)
