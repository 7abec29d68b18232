"""What surrounds the texts of a synthetic day: volume, times, ids, authors and threads."""

import datetime as dt

import numpy as np
from numpy.typing import NDArray

#: Volume from Monday to Sunday relative to the mean day; the mean is 1.
WEEKLY = (1.02, 0.98, 0.97, 0.99, 1.01, 1.06, 0.97)

#: Relative volume of each UTC hour: lowest at 3, highest at 20.
HOURLY = (
    5, 3, 2, 1, 1, 2, 4, 7, 9, 10, 10, 11, 13, 11, 10, 10, 11, 12, 14, 16, 18, 17, 13, 8,
)  # fmt: skip

_DAY_MICROSECONDS = 24 * 3600 * 1_000_000

_AUTHORS = 3000
_ANSWERED = 0.6
#: A reply answers one of this many preceding comments.
_REACH = 20


def day_size(mean: float, day: dt.date, rng: np.random.Generator) -> int:
    """Return the number of comments of `day`: `mean`, times a weekday factor, with 2 % noise."""
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


def comment_ids(day: dt.date, first: int, size: int) -> list[str]:
    """Return ids made of day and row, such as `c20240101-0000000`."""
    return [f"c{day:%Y%m%d}-{first + number:07d}" for number in range(size)]


def parse_id(comment_id: str) -> tuple[str, dt.date, int]:
    """Return the letter, day and row of an id; ValueError for other text.

    >>> parse_id("c20240101-0000017")
    ('c', datetime.date(2024, 1, 1), 17)
    """
    letter, day, dash, row = comment_id[:1], comment_id[1:9], comment_id[9:10], comment_id[10:]
    if letter not in {"c", "x"} or dash != "-" or not row.isdecimal():
        raise ValueError("not an id of a community")
    return letter, dt.date.fromisoformat(day), int(row)


def threads(size: int, rng: np.random.Generator) -> tuple[list[int], list[int | None]]:
    """Return for each comment its thread's first comment, and the comment it answers, if any."""
    roots: list[int] = []
    parents: list[int | None] = []
    answers = (rng.random(size) < _ANSWERED).tolist()
    back = rng.random(size).tolist()
    for i in range(size):
        parent = i - 1 - int(back[i] * min(i, _REACH)) if answers[i] and i else None
        parents.append(parent)
        roots.append(i if parent is None else roots[parent])
    return roots, parents


def authors(size: int, rng: np.random.Generator) -> list[str]:
    """Return pseudonyms of authors; a few write most comments."""
    return [f"a{number:04d}" for number in (_AUTHORS * rng.random(size) ** 3).astype(int).tolist()]
