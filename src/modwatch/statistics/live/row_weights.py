"""How many comments each labelled row represents by the design of its day.

The n_h routed of N_h comments of a stratum represent N_h/n_h each. Where labels are missing and a
random part of the missing is followed up, the stratum divides in two (Hansen & Hurwitz 1946;
Cochran 1977, section 13.6): rows that were labelled by themselves represent the share of it that
was, and follow-ups all the rest. Without follow-ups, labels are missing at random in the stratum.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modwatch.statistics.arguments import Floats, Ints
from modwatch.statistics.live.labelled_day import LabelledDay


@dataclass(frozen=True, kw_only=True)
class RowWeights:
    """What the m labelled rows of some days represent."""

    #: (m,) number of comments that each row represents, itself included.
    weight: Floats
    #: (m,) whether the label of the row is a follow-up.
    followed: NDArray[np.bool_]
    #: The first stratum of the `top`, and of the `rest`, without labels; empty: all have some.
    lacking: dict[str, str]


def row_weights(days: Sequence[LabelledDay], rows: Sequence[Ints]) -> RowWeights:
    """Return what the rows represent; `rows` are positions of labelled comments of each day.

    The answered follow-ups of a part represent all that was missing in it on all days together.
    Where none was answered, the other rows represent all.

    >>> one, size = np.ones(4, np.int64), np.array([4])
    >>> day = LabelledDay(
    ...     prob=one / 2, stratum=0 * one, label=one, population=size, sample=size,
    ...     labelled=np.array([1, 1, 0, 1]) > 0, missing=np.array([-1, -1, 0, 0]))
    >>> row_weights([day], [day.rows()]).weight.tolist()
    [1.0, 1.0, 2.0]
    """
    parts = _represented(days)
    cells, lacking = _cells(days, parts)
    size = max((int(part.max(initial=-1)) for part in parts), default=-1) + 1
    weights, of_rows, mass = list[Floats](), list[Ints](), np.zeros(size)
    for day, row, cell, part in zip(days, rows, cells, parts, strict=True):
        stratum, mine = day.stratum[row], part[row]
        followed = mine >= 0
        count = np.bincount(stratum[~followed], minlength=cell.size)
        weight = (cell / np.maximum(count, 1))[stratum]
        routed = day.population / np.maximum(day.sample, 1)
        missed, lost = day.stratum[part >= 0], part[part >= 0]
        asked = np.bincount(lost, minlength=size)
        factor = asked / np.maximum(np.bincount(mine[followed], minlength=size), 1)
        weight[followed] = routed[stratum[followed]] * factor[mine[followed]]
        mass += np.bincount(lost, weights=routed[missed], minlength=size)
        weights.append(weight)
        of_rows.append(mine)
    weight = np.concatenate([np.empty(0), *weights])
    number = np.concatenate([np.empty(0, np.int64), *of_rows])
    given = np.bincount(number[number >= 0], weights=weight[number >= 0], minlength=size)
    weight[number >= 0] *= (mass / np.maximum(given, 1))[number[number >= 0]]
    return RowWeights(weight=weight, followed=number >= 0, lacking=lacking)


def _represented(days: Sequence[LabelledDay]) -> list[Ints]:
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
