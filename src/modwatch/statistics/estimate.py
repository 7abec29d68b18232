"""A value with its confidence interval, or the reason why there is none; differences of values."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from modwatch.statistics.arguments import Floats
from modwatch.statistics.intervals import NORMAL_QUANTILE, difference_interval


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """An estimate. Value and interval are None when `status` is insufficient."""

    value: float | None
    #: 95 % confidence interval; contains the value.
    low: float | None
    high: float | None
    #: Number of observations: labels, pairs of labels, comments.
    n: int
    #: ok | insufficient
    status: str
    #: Why the data are insufficient. When ok, what the value is conditional on; mostly empty.
    reason: str

    @classmethod
    def from_interval(
        cls,
        value: float,
        interval: tuple[float, float],
        *,
        n: int,
        limits: tuple[float, float] = (0.0, 1.0),
        **fields: Any,
    ) -> Self:
        """Return an estimate within `limits`; rounding never excludes the value from its interval.

        `fields` are those of a subclass.

        >>> estimate = Estimate.from_interval(0.5, (0.4, 1.1), n=20)
        >>> estimate.value, estimate.high, estimate.status
        (0.5, 1.0, 'ok')
        """
        value, low, high = (min(max(float(x), limits[0]), limits[1]) for x in (value, *interval))
        low, high = min(low, value), max(high, value)
        return cls(value=value, low=low, high=high, n=n, status="ok", reason="", **fields)

    @property
    def known(self) -> tuple[float, float, float]:
        """Value, low and high of an estimate that is not insufficient."""
        assert self.value is not None  # noqa: S101
        assert self.low is not None  # noqa: S101
        assert self.high is not None  # noqa: S101
        return self.value, self.low, self.high

    @classmethod
    def insufficient(cls, reason: str, *, n: int, **fields: Any) -> Self:
        """Return an estimate without a value.

        >>> Estimate.insufficient("no labels", n=0).status
        'insufficient'
        """
        blank = dict.fromkeys(("value", "low", "high"))
        return cls(**blank, n=n, status="insufficient", reason=reason, **fields)


#: p-value, corrected for multiplicity, below which a difference is more than chance.
SIGNIFICANT = 0.05


def difference(one: Estimate, other: Estimate) -> tuple[float, float, float, float] | None:
    """Return `one` less `other`, the ends of its 95 % interval, and the p-value that it is 0.

    The estimates must be independent. Their intervals, which may be asymmetric, are joined by the
    method of variance estimates recovery (Zou & Donner 2008, *Construction of confidence limits
    about effect measures*). None if one of them is insufficient.

    >>> sure = Estimate.from_interval(0.9, (0.86, 0.93), n=200)
    >>> less = Estimate.from_interval(0.7, (0.62, 0.77), n=150)
    >>> [round(number, 3) for number in difference(sure, less)]
    [0.2, 0.119, 0.285, 0.0]
    """
    if one.value is None or other.value is None:
        return None
    value, low, high = difference_interval(one.known, other.known)
    towards_zero = value - low if value > 0 else high - value
    if not towards_zero:
        return value, value, value, float(value == 0)
    p_value = 2 * special.ndtr(-abs(value) / towards_zero * NORMAL_QUANTILE)
    return value, low, high, float(p_value)


def holm(p_value: ArrayLike) -> Floats:
    """Return the p-values (n,) corrected for their number (Holm 1979); NaN stays and counts not."""
    given = np.asarray(p_value, dtype=np.float64)
    corrected = np.full_like(given, np.nan)
    known = np.flatnonzero(~np.isnan(given))
    order = known[np.argsort(given[known], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(given[order] * factors), 1)
    return corrected
