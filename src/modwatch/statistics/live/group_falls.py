"""Which group of comments a fall of accuracy is in."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from modwatch.statistics.drift.shift_segments import LARGE
from modwatch.statistics.estimate import SIGNIFICANT, holm
from modwatch.statistics.intervals import NORMAL_QUANTILE


@dataclass(frozen=True, kw_only=True)
class FallenGroup:
    """A group whose accuracy has fallen more than that of all other comments."""

    #: Attribute and value, such as `platform=app`.
    name: str
    #: Labels of the group since the fall.
    n: int
    #: Its share of all comments, in [0, 1].
    share: float
    #: Its accuracy since the fall, in [0, 1], with its 95 % interval.
    value: float
    low: float
    high: float
    #: That of all other comments.
    others: float
    #: Both before the fall; None if the group had too few labels.
    value_before: float | None
    others_before: float | None

    def sentence(self) -> str:
        """Return the group in one sentence without a full stop.

        >>> FallenGroup(name="platform=app", n=310, share=0.2, value=0.67, low=0.6, high=0.73,
        ...             others=0.953, value_before=0.951, others_before=0.96).sentence()
        'platform=app: accuracy 95.1 % → 67.0 % (60.0–73.0 %), all others 96.0 % → 95.3 %, \
20.0 % of comments, 310 labels'
        """
        ends = f"({100 * self.low:.1f}–{100 * self.high:.1f} %)"
        own = f"accuracy {_path(self.value_before, self.value)} {ends}"
        others = f"all others {_path(self.others_before, self.others)}"
        novelty = "" if self.value_before is not None else " (too few labels before)"
        share = f"{100 * self.share:.1f} % of comments, {self.n:,} labels"
        return f"{self.name}{novelty}: {own}, {others}, {share}"


def fallen_group(
    before: pd.DataFrame, after: pd.DataFrame, *, comments: int, fall: float
) -> FallenGroup | None:
    """Return the group that a fall of accuracy is most certainly in.

    The groups of an attribute have lost accuracy against all other comments by d₁ − d₀, where d is
    the difference of a group from all others, before and since the fall; d₀ is 0 for a group
    without labels before. A group is named if that is significant among all groups (Holm) and, at
    its share of the comments, explains a quarter of the fall at least.

    Args:
        before: rows of `group_estimates.measure_groups` for the days before the fall.
        after: the same since the fall.
        comments: all comments since the fall.
        fall: by how much the accuracy of all comments has fallen, in (0, 1].

    Returns:
        The group with the smallest p-value; None: the fall is spread over all of them, or labels
        are too few.
    """
    known = {_key(row): row for row in _compared(before)}
    found = []
    for row in _compared(after):
        past = known.get(_key(row))
        excess = row["difference"] - (past["difference"] if past else 0.0)
        error = math.hypot(_error(row), _error(past) if past else 0.0)
        found.append((row, past, excess, math.erfc(abs(excess) / error / math.sqrt(2))))
    corrected = holm(pd.Series([p for *_, p in found], dtype="float64"))
    named = [
        (p, excess, row, past)
        for (row, past, excess, p), p_holm in zip(found, corrected, strict=True)
        if p_holm < SIGNIFICANT and -excess * row["comments"] / comments >= LARGE * fall
    ]
    if not named:
        return None
    *_, row, past = min(named, key=lambda finding: finding[:2])
    return FallenGroup(
        name=f"{row['attribute']}={row['group']}",
        n=int(row["n"]),
        share=row["comments"] / comments,
        value=row["value"],
        low=row["low"],
        high=row["high"],
        others=row["value"] - row["difference"],
        value_before=past["value"] if past else None,
        others_before=past["value"] - past["difference"] if past else None,
    )


def _compared(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of accuracy that have a difference with an interval."""
    rows = table[(table["metric"] == "accuracy") & (table["status"] == "ok")]
    ends = rows[["difference", "difference_low", "difference_high"]]
    wide = ends["difference_high"] > ends["difference_low"]
    return [
        {str(name): value for name, value in row.items()}
        for row in rows[ends.notna().all(axis=1) & wide].to_dict("records")
    ]


def _key(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["attribute"], row["group"]


def _error(row: Mapping[str, Any]) -> float:
    width = row["difference_high"] - row["difference_low"]
    return float(width / (2 * NORMAL_QUANTILE))


def _path(before: float | None, after: float) -> str:
    known = [value for value in (before, after) if value is not None]
    return " → ".join(f"{100 * value:.1f} %" for value in known)
