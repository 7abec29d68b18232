"""Compares groups of comments: by columns with few values, and by identities they mention."""

import datetime
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from modwatch.common.columns import Column, grouped
from modwatch.common.errors import DesignError
from modwatch.data.lake.day_scores import DayScores, day_scores
from modwatch.data.lake.delta import Lake, as_batch
from modwatch.data.lake.schemas import COMMENT_GROUPS
from modwatch.data.validation.profiles import category_names
from modwatch.data.validation.rows import absent, bools
from modwatch.monitoring.measurements import tables
from modwatch.monitoring.measurements.measurement import error_evidence
from modwatch.monitoring.measurements.windows import Window
from modwatch.routing.design import RoutingPolicy
from modwatch.statistics.divergence.mentions import Terms, identity_mentions
from modwatch.statistics.live.group_estimates import (
    IDENTITY,
    Group,
    compare_scores,
    measure_groups,
)

Mask = NDArray[np.bool_]

#: Comments that a group requires, and groups of an attribute that are compared: the largest.
MINIMUM_COMMENTS, MOST_GROUPS = 100, 12

#: Longest name of a value, which messages quote, in characters.
LONGEST_NAME = 40


def compare_day(lake: Lake, day: datetime.date, terms: Terms) -> int:
    """Compare the groups of a day by scores and routing; return how many groups.

    `terms` are the words of each identity, for comments whose source names no groups.
    """
    scores = day_scores(lake, day)
    routed = lake.table("routed", day, columns=["comment_id", "stratum"])
    top = routed.filter(pc.equal(routed.column("stratum"), 0)).column("comment_id")
    reviewed = pc.is_in(scores.comment_id, top).to_numpy().astype(bool)
    found = _groups(lake, day, scores, terms)
    members = {group: found.mask(group) for group in _largest([found], lake.columns)}
    table = compare_scores(scores.prob, scores.flagged, reviewed, members)
    _replace(lake, day, "day", table, digest="")
    return len(members)


def compare_window(lake: Lake, window: Window, policy: RoutingPolicy, terms: Terms) -> None:
    """Compare the groups of a window by its labels, unless the same was compared before."""
    if not window.days:
        lake.replace("comment_groups", window.last, [], scope="window")
        return
    words = sorted((name, tuple(words)) for name, words in terms.items())
    content = repr((window.digest, words, *grouped(lake.columns)))
    digest = hashlib.sha256(content.encode()).hexdigest()
    made = lake.table("comment_groups", window.last, columns=["digest"], scope="window").column(0)
    if len(made) and made[0].as_py() == digest:
        return
    table = _measured(lake, window.days, policy, terms)
    _replace(lake, window.last, "window", table, digest=digest)


def printable(name: str) -> str:
    """Return a value of the source as it may stand in a message, on one line.

    >>> printable("a\\nb")
    'a?b'
    """
    return "".join(c if c.isprintable() else "?" for c in name[:LONGEST_NAME])


def _measured(
    lake: Lake, chosen: Sequence[datetime.date], policy: RoutingPolicy, terms: Terms
) -> pd.DataFrame:
    """Return the groups of these days by their labels."""
    labelled, found = [], []
    for day in chosen:
        scores = day_scores(lake, day)
        try:
            grouped = tables.grouped_day(lake, day, scores, policy)
        except DesignError:  # routed by another policy: its strata are not known any more
            continue
        labelled.append(grouped)
        found.append(_groups(lake, day, scores, terms))
    members = (
        (group, [day.mask(group) for day in found]) for group in _largest(found, lake.columns)
    )
    return measure_groups(labelled, members, known=error_evidence(lake, chosen, policy))


@dataclass(frozen=True, kw_only=True)
class _DayGroups:
    """The groups of a day's N scored comments, as positions."""

    size: int
    positions: Mapping[Group, NDArray[np.int64]] = field(repr=False)

    def mask(self, group: Group) -> Mask:
        """Return which comments (N,) belong to the group."""
        inside = np.zeros(self.size, bool)
        inside[self.positions.get(group, np.empty(0, np.int64))] = True
        return inside


def _groups(lake: Lake, day: datetime.date, scores: DayScores, terms: Terms) -> _DayGroups:
    parts: dict[Group, list[NDArray[np.int64]]] = {}
    attributes = grouped(lake.columns)
    columns = ["comment_id", *attributes, "groups", "text"]
    ids, read = list[pa.Array](), 0
    for batch in lake.read("comments", day, columns=columns):
        for group, inside in _of_batch(batch, attributes, terms):
            if inside.any():
                parts.setdefault(group, []).append(read + np.flatnonzero(inside))
        ids.append(batch.column("comment_id"))
        read += batch.num_rows
    place = scores.positions(ids)
    positions = {}
    for group, rows in parts.items():
        found = place[np.concatenate(rows)]
        if (found >= 0).any():  # others were not scored
            positions[group] = found[found >= 0]
    return _DayGroups(size=len(scores.comment_id), positions=positions)


def _of_batch(
    batch: pa.RecordBatch, attributes: Sequence[str], terms: Terms
) -> Iterator[tuple[Group, Mask]]:
    for attribute in attributes:
        column = batch.column(attribute)
        names = category_names(column, attribute).to_pandas().mask(bools(absent(column)))
        for name in names.dropna().unique():
            yield (attribute, str(name)), (names == name).to_numpy()
    for name, inside in identities(batch, terms):
        yield (IDENTITY, name), inside


def identities(batch: pa.RecordBatch, terms: Terms) -> Iterator[tuple[str, Mask]]:
    """Yield each identity, and which comments (n,) of a batch mention it.

    They are those of the column `groups`, or of the words where the source has none.
    """
    named = batch.column("groups")
    if named.null_count < len(named):
        row = pc.list_parent_indices(named).to_numpy(zero_copy_only=False)
        name = pc.list_flatten(named).to_pandas()
        for identity in name.dropna().unique():
            inside = np.zeros(len(named), bool)
            inside[row[(name == identity).to_numpy()]] = True
            yield str(identity), inside
    elif terms:
        yield from identity_mentions(batch.column("text").to_pandas(), terms).items()


def _largest(days: Sequence[_DayGroups], own: Sequence[Column] = ()) -> list[Group]:
    """Return the groups that are compared, by attribute and name."""
    size = sum(day.size for day in days)
    count: Counter[Group] = Counter()
    for day in days:
        count.update({group: len(at) for group, at in day.positions.items()})
    chosen: list[Group] = []
    for attribute in (*grouped(own), IDENTITY):
        known = [
            (-number, group)
            for group, number in count.items()
            if group[0] == attribute
            and number >= MINIMUM_COMMENTS
            # All comments, or nearly: there is nothing to compare with.
            and size - number >= MINIMUM_COMMENTS
        ]
        chosen += sorted(group for _, group in sorted(known)[:MOST_GROUPS])
    return chosen


def _replace(
    lake: Lake, day: datetime.date, scope: str, table: pd.DataFrame, *, digest: str
) -> None:
    rows = as_batch(table.assign(dt=day, scope=scope, digest=digest), COMMENT_GROUPS)
    lake.replace("comment_groups", day, [rows], scope=scope)
