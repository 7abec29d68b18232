"""Groups of several groupings that may be shown together."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from modwatch.disagreement.annotations import Annotations
from modwatch.divergence.groups import MINIMUM_ANNOTATORS, Groups

_Ints = NDArray[np.intp]

_REASON = "few people would follow from it and another grouping"


def shown_together(
    groupings: Sequence[Groups], annotations: Annotations, *, minimum: int = MINIMUM_ANNOTATORS
) -> list[Groups]:
    """Return the groupings with more groups suppressed, so that no two of them tell of few people.

    Women less women of each age are the women whose age has no figure. From the figures of two
    groupings follow sums over the cells of their cross table: those of a vector f(row) + g(column).
    The cells where it is not 0 are a cut of the bipartite graph whose vertices are the groups of
    both (with the people of no shown group as one more each) and whose edges are the cells. While
    a cut has fewer than `minimum` people, the smallest group of its smaller side is suppressed.

    Sums over three groupings at once are not looked for.

    Args:
        groupings: of the same annotations, each with its small groups suppressed.
        annotations: whose annotators are grouped.
        minimum: people of whom a figure may tell.

    >>> annotations = Annotations.of(item=[0] * 30, annotator=range(30), label=[0, 1] * 15)
    >>> gender = {person: "woman" if person < 15 else "man" for person in range(30)}
    >>> age = {person: f"{gender[person]} × {'20s' if person % 15 < 12 else '30s'}"
    ...     for person in range(30)}
    >>> both = [Groups.of(annotations, each) for each in (gender, age)]
    >>> both[1].names
    ('man × 20s', 'woman × 20s')
    >>> [each.names for each in shown_together(both, annotations)]
    [('man', 'woman'), ()]
    """
    present = np.zeros(len(annotations.annotators), bool)
    present[annotations.annotator] = True
    found = list(groupings)
    changed = True
    while changed:
        changed = False
        for pair in combinations(range(len(found)), 2):
            one, other = (found[each] for each in pair)
            worst = _to_suppress(one, other, present, minimum)
            if worst is not None:
                side, group = worst
                found[pair[side]] = _without(found[pair[side]], group)
                changed = True
    return found


def _to_suppress(
    one: Groups, other: Groups, present: NDArray[np.bool_], minimum: int
) -> tuple[int, int] | None:
    """Return the grouping, 0 or 1, and the group to suppress; None if there is no small cut."""
    # The last row and column have the people of no shown group.
    rows, columns = len(one.names) + 1, len(other.names) + 1
    row, column = (
        np.where(each.code >= 0, each.code, len(each.names))[present] for each in (one, other)
    )
    table = np.zeros((rows, columns), np.int32)
    np.add.at(table, (row, column), 1)
    for vertices in _small_cut(table, minimum):
        sizes = [
            (int(table[n].sum()), 0, n)
            if n < rows
            else (int(table[:, n - rows].sum()), 1, n - rows)
            for n in vertices.tolist()
            if n not in (rows - 1, rows + columns - 1)
        ]
        if sizes:
            _, which, group = min(sizes)
            return which, group
    return None


def _small_cut(table: NDArray[np.int32], minimum: int) -> list[_Ints]:
    """Return the vertices of the sides of a cut of 1 to `minimum` − 1 people, the fewer first.

    Vertices are rows, then columns. Sides of as many vertices are one. Empty without such a cut.
    """
    across = sparse.coo_array(table)
    graph = sparse.csr_array(
        (
            np.tile(across.data, 2),
            (
                np.r_[across.row, across.col + len(table)],
                np.r_[across.col + len(table), across.row],
            ),
        ),
        shape=(sum(table.shape), sum(table.shape)),
    )
    _, component = csgraph.connected_components(graph, directed=False)
    for first, vertex in _pairs(component):
        flow = csgraph.maximum_flow(graph, first, vertex)
        if flow.flow_value < minimum:
            left = graph - flow.flow
            left.data = left.data.clip(0)
            left.eliminate_zeros()
            side = np.zeros(len(component), bool)
            side[csgraph.breadth_first_order(left, first, return_predecessors=False)] = True
            of_cut = component == component[first]
            one, other = np.flatnonzero(of_cut & side), np.flatnonzero(of_cut & ~side)
            if len(one) == len(other):
                return [np.r_[one, other]]
            return sorted((one, other), key=len)
    return []


def _pairs(component: NDArray[np.int32]) -> list[tuple[int, int]]:
    """Return a vertex of each component with each of its others: any cut parts one such pair."""
    pairs = []
    for number in range(component.max() + 1):
        first, *others = np.flatnonzero(component == number).tolist()
        pairs += [(first, other) for other in others]
    return pairs


def _without(groups: Groups, number: int) -> Groups:
    """Return the groups with one more suppressed."""
    code = np.where(groups.code == number, -1, groups.code)
    names = tuple(name for n, name in enumerate(groups.names) if n != number)
    return replace(
        groups,
        names=names,
        code=np.where(code > number, code - 1, code),
        suppressed={**groups.suppressed, groups.names[number]: _REASON},
    )
