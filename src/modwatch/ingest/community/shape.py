"""Ids, authors and threads of a day's comments."""

import datetime as dt

import numpy as np

_AUTHORS = 3000
_ANSWERED = 0.6
#: A reply answers one of so many comments before it.
_REACH = 20


def comment_ids(day: dt.date, first: int, size: int) -> list[str]:
    """Return ids that tell day and row: `c20240101-0000000`."""
    return [f"c{day:%Y%m%d}-{first + number:07d}" for number in range(size)]


def parse_id(comment_id: str) -> tuple[str, dt.date, int]:
    """Return the letter, day and row of an id; ValueError when it is not one.

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
    """Return pseudonyms; a few people write most of it."""
    return [f"a{number:04d}" for number in (_AUTHORS * rng.random(size) ** 3).astype(int).tolist()]
