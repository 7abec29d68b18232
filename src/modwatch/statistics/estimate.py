"""A value with its confidence interval, or the reason why there is none."""

from dataclasses import dataclass
from typing import Any, Self


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
    #: Why the data are insufficient; empty when ok.
    reason: str

    @classmethod
    def of(
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

        >>> estimate = Estimate.of(0.5, (0.4, 1.1), n=20)
        >>> estimate.value, estimate.high, estimate.status
        (0.5, 1.0, 'ok')
        """
        value, low, high = (min(max(float(x), limits[0]), limits[1]) for x in (value, *interval))
        low, high = min(low, value), max(high, value)
        return cls(value=value, low=low, high=high, n=n, status="ok", reason="", **fields)

    @classmethod
    def insufficient(cls, reason: str, *, n: int, **fields: Any) -> Self:
        """Return an estimate without a value.

        >>> Estimate.insufficient("no labels", n=0).status
        'insufficient'
        """
        blank = dict.fromkeys(("value", "low", "high"))
        return cls(**blank, n=n, status="insufficient", reason=reason, **fields)
