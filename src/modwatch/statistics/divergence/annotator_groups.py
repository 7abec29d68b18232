"""Groups of annotators, small ones suppressed, and groupings that may be shown together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from modwatch.common.errors import MetricInputError
from modwatch.statistics.arguments import Floats
from modwatch.statistics.disagreement.annotations import Annotations
from modwatch.statistics.intervals import mid_p

#: A standard error, or a margin, below this is one of annotators who are all alike.
ALIKE = 1e-9

#: Figures of smaller groups could identify people.
MINIMUM_ANNOTATORS = 5


@dataclass(frozen=True, kw_only=True)
class Groups:
    """The group of each annotator."""

    #: The G groups that are large enough, sorted.
    names: tuple[str, ...]
    #: (A,) number of each annotator's group, −1 for none or a suppressed one.
    code: NDArray[np.intp] = field(repr=False)
    #: Groups without figures, and why.
    suppressed: Mapping[str, str]
    #: Annotators without a group.
    without: int

    @classmethod
    def from_annotations(
        cls,
        annotations: Annotations,
        group: Mapping[Any, str] | pd.Series,
        *,
        minimum: int = MINIMUM_ANNOTATORS,
    ) -> "Groups":
        """Return the groups of the annotators that occur in `annotations`.

        Groups that are too small, or would follow from the others, are `suppressed_groups`.

        Args:
            annotations: whose annotators are grouped.
            group: name of the group by annotator id; an annotator without one has none.
            minimum: annotators of a group.

        Raises:
            MetricInputError: an annotator has two groups, no group is large enough, or `minimum`
                is below 1.
        """
        check_minimum(minimum)
        series = pd.Series(group)
        different = series.rename_axis("annotator").reset_index(name="group").drop_duplicates()
        twice = different.loc[different["annotator"].duplicated(), "annotator"].nunique()
        if twice:
            raise MetricInputError(
                f"{twice} annotators have two groups; give each one, such as a group of its own "
                "for several"
            )
        series = series[~series.index.duplicated()]
        present = np.zeros(len(annotations.annotators), bool)
        present[annotations.annotator] = True
        mine = series.reindex(annotations.annotators).where(present).to_numpy(dtype=object)
        known = ~pd.isna(mine)
        sizes = pd.Series(mine[known]).astype(str).value_counts().sort_index()
        small = suppressed_groups(sizes, int((present & ~known).sum()), minimum=minimum)
        names = tuple(name for name in sizes.index if name not in small)
        if not names:
            raise MetricInputError(f"no group has {minimum} annotators; use a coarser grouping")
        code = np.full(len(mine), -1, np.intp)
        code[known] = pd.Index(names).get_indexer(mine[known].astype(str))
        return cls(names=names, code=code, suppressed=small, without=int((present & ~known).sum()))

    def sizes(self) -> NDArray[np.int64]:
        """Return the number of annotators (G,) of each group."""
        return np.bincount(self.code[self.code >= 0], minlength=len(self.names))


def unlike(people: int) -> float:
    """Return how many of all people may be unlike `people` who are all alike, as a share (95 %)."""
    return mid_p(0, people)[1]


def check_minimum(minimum: int) -> None:
    """Raise MetricInputError if `minimum` is no number of annotators of a group."""
    if minimum < 1:
        raise MetricInputError(f"minimum must be at least 1 annotator, got {minimum}")


def intersections(annotators: pd.DataFrame, by: Sequence[str]) -> pd.Series:
    """Return the group of each row from several attributes, joined by ` × `; missing if one is.

    Args:
        annotators: one row an annotator, indexed by their id.
        by: columns.

    Raises:
        MetricInputError: a column does not exist.

    >>> people = pd.DataFrame({"gender": ["woman", None], "age": ["30s", "40s"]}, index=["a", "b"])
    >>> intersections(people, ["gender", "age"]).fillna("").to_dict()
    {'a': 'woman × 30s', 'b': ''}
    """
    missing = [name for name in by if name not in annotators.columns]
    if missing or not by:
        raise MetricInputError(
            f"annotators have no column {missing or '(none given)'}; there are "
            f"{', '.join(map(str, annotators.columns))}"
        )
    parts = annotators[list(by)]
    rows = parts.fillna("").astype(str).itertuples(index=False)
    joined = pd.Series([" × ".join(row) for row in rows], index=annotators.index, dtype=object)
    return joined.where(parts.notna().all(axis=1))


def suppressed_groups(sizes: pd.Series, without: int, *, minimum: int) -> dict[str, str]:
    """Return the groups that must not be shown, with the reason.

    Those of fewer than `minimum` people and, where these together with the people without a group
    are some, but fewer than `minimum`, the smallest other one: a figure of all people, less those
    of the shown groups, would be theirs.

    Args:
        sizes: people of each group, by its name.
        without: people without a group.
        minimum: people of a group.

    >>> list(suppressed_groups(pd.Series({"a": 30, "b": 12, "c": 3}), 0, minimum=10))
    ['c', 'b']
    >>> list(suppressed_groups(pd.Series({"a": 30, "b": 12, "c": 3}), 40, minimum=10))
    ['c']
    """
    small = {str(name): f"fewer than {minimum} annotators" for name in sizes.index[sizes < minimum]}
    hidden = without + int(sizes[sizes < minimum].sum())
    shown = sizes[sizes >= minimum]
    if 0 < hidden < minimum and len(shown):
        small[str(shown.idxmin())] = "few people would follow from it"
    return small


_REASON = "few people would follow from it and another grouping"

#: Of numbers that are ratios of small integers.
_ROUNDING, _DIGITS = 1e-7, 6

#: Steps of a search. In simulations, 1,000 people in four groupings took 241, all others fewer.
_MOST_STEPS = 1_000


def shown_together(
    groupings: Sequence[Groups],
    annotations: Annotations,
    *,
    minimum: int = MINIMUM_ANNOTATORS,
    released: int = 0,
) -> list[Groups]:
    """Return the groupings with more groups suppressed, so that no figure describes few people.

    Women less women of each age are the women whose age has no figure. From the figures of all
    people and of all shown groups follow their linear combinations, each a weight for every cell of
    the cross table of all groupings: it describes the people in the cells where it is not 0. While
    one describes 1 to `minimum` − 1 people, the smallest group without which it does not follow is
    suppressed.

    Args:
        groupings: of the same annotations, each with its small groups suppressed.
        annotations: whose annotators are grouped.
        minimum: fewest people that a figure may describe.
        released: the first groupings, so many, were shown earlier, and stay as they are.

    Raises:
        MetricInputError: `minimum` is below 1.

    >>> people = range(30)
    >>> annotations = Annotations.from_columns(item=[0] * 30, annotator=people, label=[0, 1] * 15)
    >>> gender = {person: "woman" if person < 15 else "man" for person in people}
    >>> age = {person: f"{gender[person]} × {'20s' if person % 15 < 12 else '30s'}"
    ...     for person in people}
    >>> both = [Groups.from_annotations(annotations, group) for group in (gender, age)]
    >>> both[1].names
    ('man × 20s', 'woman × 20s')
    >>> [groups.names for groups in shown_together(both, annotations)]
    [('man', 'woman'), ()]
    """
    check_minimum(minimum)
    present = np.zeros(len(annotations.annotators), bool)
    present[annotations.annotator] = True
    found = list(groupings)
    while (worst := _to_suppress(found, present, minimum, released)) is not None:
        which, group = worst
        found[which] = _without(found[which], group)
    return found


def _to_suppress(
    groupings: Sequence[Groups], present: NDArray[np.bool_], minimum: int, released: int
) -> tuple[int, int] | None:
    """Return the grouping, and its group to suppress; None if no figure describes few people."""
    shown = [(n, group) for n, groups in enumerate(groupings) for group in range(len(groups.names))]
    if all(n < released for n, _ in shown):
        return None
    codes = np.stack([groups.code[present] for groups in groupings])
    cells, people = np.unique(codes, axis=1, return_counts=True)
    everyone = np.ones(len(people))
    members = np.array([everyone, *(cells[n] == group for n, group in shown)], np.float64)
    basis = _independent(members)
    combination = _about_few(basis, people, minimum)
    if combination is None:
        return None
    sizes = members[1:] @ people
    # Of groups of one size the later grouping's, which is often the finer one.
    open_ = [n for n, (grouping, _) in enumerate(shown) if grouping >= released]
    order = sorted(open_, key=lambda n: (sizes[n], -shown[n][0]))
    enough, _ = _determining(basis, np.arange(len(people)))
    for n in order:
        rest = np.delete(members, n + 1, axis=0)[:, enough]
        if len(_independent(np.r_[rest, combination[None, enough]])) > len(_independent(rest)):
            return shown[n]
    part, *_ = np.linalg.lstsq(members[:, enough].T, combination[enough])
    return shown[next((n for n in order if abs(part[n + 1]) > _ROUNDING), order[0])]


@dataclass(frozen=True, kw_only=True)
class _Open:
    """A part of the search: combinations that are 0 in some cells, and may differ in others."""

    #: (k, C) a basis of the combinations.
    basis: Floats
    #: (C,) people of each cell that does not count as described.
    people: NDArray[np.int64]
    #: How many more people a combination must describe.
    budget: int


def _about_few(basis: Floats, people: NDArray[np.int64], minimum: int) -> Floats | None:
    """Return a combination (C,) that describes fewer than `minimum` people; None without one.

    A set of cells *determines* the combinations if only 0 is 0 in all of them. With as many
    determining sets as the budget, no two of which share a person, each combination describes
    a person in each, and so too many. If there are fewer, some combination is 0 outside of them.
    Either it describes few people, or one of its cells is described or not: two smaller searches
    (branch and bound). After many steps that combination is returned, as if it described few.

    Args:
        basis: (k, C) independent combinations of C cells.
        people: (C,) of each cell.
        minimum: fewest people that a combination may describe.
    """
    search, steps = [_Open(basis=basis, people=people, budget=minimum)], 0
    while search:
        part, kind, size = _contracted(search.pop())
        outside = _outside(part.basis, kind, size, part.budget)
        if outside is None:
            continue
        steps += 1
        described = np.unique(kind[(outside != 0) & (part.people > 0)])
        if size[described].sum() < part.budget or steps == _MOST_STEPS:
            return outside
        least = described[size[described].argmin()]
        cells = kind == least
        search.append(replace(part, basis=_zero_in(part.basis, cells.argmax())))
        search.append(
            replace(
                part,
                people=np.where(cells, 0, part.people),
                budget=part.budget - int(size[least]),
            )
        )
    return None


def _contracted(part: _Open) -> tuple[_Open, NDArray[np.intp], NDArray[np.int64]]:
    """Return a part without combinations about too many people, the kinds, and their people."""
    basis = part.basis
    while True:
        kind = _kinds(basis)
        size = np.bincount(kind, np.where(basis.any(axis=0), part.people, 0)).astype(np.int64)
        large = np.flatnonzero(size >= part.budget)
        if not large.size:
            return replace(part, basis=basis), kind, size
        for number in large:
            basis = _zero_in(basis, (kind == number).argmax())


def _kinds(basis: Floats) -> NDArray[np.intp]:
    """Return the kind (C,) of each cell: those of a kind have proportional columns."""
    cells = np.arange(basis.shape[1])
    columns = np.r_[np.zeros((1, len(cells))), basis]
    first = columns[(columns != 0).argmax(axis=0), cells]
    scaled = (columns / np.where(first == 0, 1, first)).round(_DIGITS) + 0.0  # no −0
    return np.unique(scaled, axis=1, return_inverse=True)[1]


def _outside(
    basis: Floats, kind: NDArray[np.intp], size: NDArray[np.int64], number: int
) -> Floats | None:
    """Return a combination that is 0 outside of determining sets; None if there are `number`."""
    _, cell = np.unique(kind, return_index=True)
    left = size.copy()
    for _ in range(number):
        kinds = np.argsort(-left, kind="stable")[: (left > 0).sum()]
        used, zero = _determining(basis, cell[kinds])
        if zero is not None:
            return zero
        left[kind[used]] -= 1
    return None


def _determining(basis: Floats, cells: NDArray[np.intp]) -> tuple[list[np.intp], Floats | None]:
    """Return cells that determine the combinations, the first ones if possible."""
    used: list[np.intp] = []
    while len(basis):
        some = basis[:, cells].any(axis=0)
        if not some.any():
            return used, basis[0]
        cells = cells[some.argmax() :]
        used.append(cells[0])
        basis = _zero_in(basis, cells[0])
    return used, None


def _zero_in(basis: Floats, cell: np.intp) -> Floats:
    """Return a basis of the combinations that are 0 in a cell."""
    column = basis[:, cell]
    if not column.any():
        return basis
    pivot = np.abs(column).argmax()
    rest = basis - np.outer(column / column[pivot], basis[pivot])
    rest[np.abs(rest) < _ROUNDING] = 0
    return np.delete(rest, pivot, axis=0)


def _independent(rows: Floats) -> Floats:
    """Return a basis of the combinations of rows."""
    found = []
    while rows.any():
        row, column = np.unravel_index(np.abs(rows).argmax(), rows.shape)
        found.append(rows[row] / rows[row, column])
        rows = _zero_in(rows, column)
    return np.array(found).reshape(len(found), rows.shape[1])


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
