"""Groups of annotators, small ones suppressed, and groupings that may be shown together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from modwatch.common.errors import MetricInputError
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


def shown_together(
    groupings: Sequence[Groups],
    annotations: Annotations,
    *,
    minimum: int = MINIMUM_ANNOTATORS,
    released: int = 0,
) -> list[Groups]:
    """Return the groupings with more groups suppressed, so that no figure describes few people.

    Women less women of each age are the women whose age has no figure. The groupings are taken in
    turn. In the cross table of one with all before it, in which people without a shown group are a
    group of their own, each combination that occurs must have at least `minimum` people. Whatever
    is computed from the figures is about whole combinations, and so never about fewer. A group
    with a smaller combination is suppressed; so is, where the people without a group are too few,
    the smallest group beside them.

    Args:
        groupings: of the same annotations, each with its small groups suppressed; the most
            important first.
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
    people = np.unique(annotations.annotator)
    found, cell = list(groupings), np.zeros(people.size, np.intp)
    for number in range(len(found)):
        while number >= released:
            group = _to_suppress(cell, found[number].code[people], minimum)
            if group is None:
                break
            found[number] = _without(found[number], group)
        both = np.stack([cell, found[number].code[people]])
        cell = np.unique(both, axis=1, return_inverse=True)[1].ravel()
    return found


def _to_suppress(cell: NDArray[np.intp], code: NDArray[np.intp], minimum: int) -> int | None:
    """Return a group that must not be shown; None if every combination has people enough.

    `cell` (A,) is the combination of the groupings before, `code` (A,) the group of this one.
    """
    (before, group), people = np.unique(np.stack([cell, code]), axis=1, return_counts=True)
    small = people < minimum
    if (small & (group >= 0)).any():
        return int(group[small & (group >= 0)][0])
    beside = group[np.isin(before, before[small]) & (group >= 0)]
    if not beside.size:
        return None
    return int(min(beside, key=lambda number: (code == number).sum()))


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
