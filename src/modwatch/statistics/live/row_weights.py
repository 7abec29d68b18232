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

    The answered follow-ups of all days together represent all that was missing on these days, those
    of the top and those of the slice apart. Where none was answered, the other rows represent all.

    >>> one, size = np.ones(4, np.int64), np.array([4])
    >>> day = LabelledDay(
    ...     prob=one / 2, stratum=0 * one, label=one, population=size, sample=size,
    ...     labelled=np.array([1, 1, 0, 1]) > 0, missing=np.array([0, 0, 1, 1]) > 0)
    >>> row_weights([day], [day.rows()]).weight.tolist()
    [1.0, 1.0, 2.0]
    """
    missing = _represented(days)
    cells, lacking = _cells(days, missing)
    weights, parts = list[Floats](), list[Ints]()
    mass = np.zeros(2)
    for day, row, cell, later in zip(days, rows, cells, missing, strict=True):
        stratum, followed = day.stratum[row], later[row]
        count = np.bincount(stratum[~followed], minlength=cell.size)
        weight = (cell / np.maximum(count, 1))[stratum]
        routed = day.population / np.maximum(day.sample, 1)
        lost = day.stratum[later]
        missed, drawn = (np.bincount(part == 0, minlength=2) for part in (lost, stratum[followed]))
        factor = missed / np.maximum(drawn, 1)
        top = (stratum[followed] == 0).astype(np.int64)
        weight[followed] = routed[stratum[followed]] * factor[top]
        mass += np.bincount(lost == 0, weights=routed[lost], minlength=2)
        weights.append(weight)
        parts.append(np.where(followed, (stratum == 0).astype(np.int64), -1))
    weight, part = (np.concatenate([np.empty(0), *values]) for values in (weights, parts))
    for side in range(2):
        weight[part == side] *= mass[side] / max(float(weight[part == side].sum()), 1.0)
    return RowWeights(weight=weight, followed=part >= 0, lacking=lacking)


def _represented(days: Sequence[LabelledDay]) -> list[NDArray[np.bool_]]:
    """Return the missing comments (N,) of each day that follow-ups represent."""
    found = [np.zeros(len(day.prob), np.bool_) for day in days]
    for top in (True, False):
        parts = [day.unanswered(top=top) for day in days]
        if any((part & day.labelled).any() for part, day in zip(parts, days, strict=True)):
            found = [one | part for one, part in zip(found, parts, strict=True)]
    return found


def _cells(
    days: Sequence[LabelledDay], missing: Sequence[NDArray[np.bool_]]
) -> tuple[list[Floats], dict[str, str]]:
    """Return what each day's strata represent but for the missing, and the first without labels."""
    counts, cells = list[Ints](), list[Floats]()
    for day, later in zip(days, missing, strict=True):
        size = len(day.population)
        counts.append(np.bincount(day.stratum[day.labelled & ~later], minlength=size))
        lost = np.bincount(day.stratum[later], minlength=size)
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
