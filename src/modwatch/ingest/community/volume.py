"""How many comments a day has, and when in the day they are written."""

import datetime as dt

import numpy as np
from numpy.typing import NDArray

#: Volume from Monday to Sunday relative to the mean day; the mean is 1.
WEEKLY = (1.02, 0.98, 0.97, 0.99, 1.01, 1.06, 0.97)

#: Volume of each UTC hour relative to the others: asleep at four, awake at lunch, busy at nine.
HOURLY = (
    5, 3, 2, 1, 1, 2, 4, 7, 9, 10, 10, 11, 13, 11, 10, 10, 11, 12, 14, 16, 18, 17, 13, 8,
)  # fmt: skip

_DAY_MICROSECONDS = 24 * 3600 * 1_000_000


def day_size(mean: float, day: dt.date, rng: np.random.Generator) -> int:
    """Return the number of comments of `day`: the mean, the weekday's factor, and 2 % of noise."""
    return round(mean * WEEKLY[day.weekday()] * float(np.exp(rng.normal(0, 0.02))))


def times_of_day(position: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return microseconds since midnight at quantiles `position` in [0, 1) of the daily profile.

    >>> times_of_day(np.array([0.0, 0.999999])).tolist()[0]
    0
    """
    share = np.concatenate([[0.0], np.cumsum(HOURLY) / sum(HOURLY)])  # (25,)
    hours = np.interp(position, share, np.arange(25.0))
    since_midnight: NDArray[np.int64] = (hours * 3600e6).astype(np.int64)
    return np.minimum(since_midnight, _DAY_MICROSECONDS - 1)
