"""How many comments each labelled row represents by the design of its day.

The n_h routed of N_h comments of a stratum represent N_h/n_h each. Where a random part of missing
labels is followed up, the stratum divides in two (Hansen & Hurwitz 1946; Cochran 1977, section
13.6): follow-ups represent what was missing, and other rows what was not.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from modwatch.statistics.arguments import Floats, Ints
from modwatch.statistics.live.labelled_day import LabelledDay


def row_weights(
    days: Sequence[LabelledDay], rows: Sequence[Ints]
) -> tuple[Floats, NDArray[np.bool_], dict[str, str]]:
    """Return how many comments each row (m,) represents, and whether it is a follow-up (m,).

    And, of `top` and `rest`, the first stratum without labels, empty if all have some. `rows` are
    positions of labelled comments of each day. The answered follow-ups of a part represent all that
    was missing in it on all days together. Where none was answered, the other rows represent all.

    >>> one, size = np.ones(4, np.int64), np.array([4])
    >>> day = LabelledDay(
    ...     prob=one / 2, stratum=0 * one, label=one, population=size, sample=size,
    ...     labelled=np.array([1, 1, 0, 1]) > 0, missing=np.array([-1, -1, 0, 0]))
    >>> row_weights([day], [day.rows()])[0].tolist()
    [1.0, 1.0, 2.0]
    """
    parts = represented(days)
    cells, lacking = _cells(days, parts)
    size = max((int(part.max(initial=-1)) for part in parts), default=-1) + 1
    weights, of_rows, mass = [np.empty(0)], [np.empty(0, np.int64)], np.zeros(size)
    for day, row, cell, part in zip(days, rows, cells, parts, strict=True):
        stratum, mine, lost = day.stratum[row], part[row], part >= 0
        count = np.bincount(stratum[mine < 0], minlength=cell.size)
        routed = day.population / np.maximum(day.sample, 1)
        weights.append(np.where(mine < 0, (cell / np.maximum(count, 1))[stratum], routed[stratum]))
        mass += np.bincount(part[lost], weights=routed[day.stratum[lost]], minlength=size)
        of_rows.append(mine)
    weight, number = np.concatenate(weights), np.concatenate(of_rows)
    followed = number >= 0
    given = np.bincount(number[followed], weights=weight[followed], minlength=size)
    weight[followed] *= (mass / np.maximum(given, 1))[number[followed]]
    return weight, followed, lacking


def represented(days: Sequence[LabelledDay]) -> list[Ints]:
    """Return `LabelledDay.draw` (N,) of each day, −1 in parts in which nothing was answered."""
    draws = [day.draw for day in days]
    pairs = zip(draws, days, strict=True)
    answered = {int(part) for draw, day in pairs for part in np.unique(draw[day.labelled])}
    return [np.where(np.isin(draw, list(answered)), draw, -1) for draw in draws]


def _cells(
    days: Sequence[LabelledDay], parts: Sequence[Ints]
) -> tuple[list[Floats], dict[str, str]]:
    """Return what each day's strata represent but for the missing, and the first without labels."""
    counts, cells = list[Ints](), list[Floats]()
    for day, part in zip(days, parts, strict=True):
        size = len(day.population)
        counts.append(np.bincount(day.stratum[day.labelled & (part < 0)], minlength=size))
        lost = np.bincount(day.stratum[part >= 0], minlength=size)
        cells.append(day.population * (1 - lost / np.maximum(day.sample, 1)))
    lacking = {"top": "", "rest": ""}
    whole = [cell.copy() for cell in cells]
    for number, (cell, count) in enumerate(zip(whole, counts, strict=True)):
        for stratum in np.flatnonzero((cell > 0) & (count == 0)):
            near = _nearest(counts, number, int(stratum)) if stratum and count[1:].any() else None
            if near is not None:
                cells[near][stratum] += cell[stratum]
                continue
            name = "rest" if stratum else "top"
            where = f"day {number + 1}, stratum {stratum} of {cell[stratum]:.6g} comments"
            lacking[name] = lacking[name] or where
    return cells, lacking


def _nearest(counts: Sequence[Ints], number: int, stratum: int) -> int | None:
    """Return the day nearest to `number` with labels in the stratum."""
    having = [i for i, count in enumerate(counts) if stratum < count.size and count[stratum]]
    return min(having, key=lambda day: (abs(day - number), day), default=None)
