"""Which segments of the comments explain that more, or fewer, are flagged than in a reference.

A segment is a value of a factor, such as `platform=forum`, or a pair of values. Its effect has two
parts (Kitagawa 1955, *Components of a difference between two rates*): *composition*, its share of
the comments has changed, and *behaviour*, its flagged share has changed. The effects of the values
of a factor add up to the change of the flagged share, and so do those of a pair of factors.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

from modwatch.errors import MetricInputError
from modwatch.metrics.intervals import NORMAL_QUANTILE
from modwatch.metrics.significance import SIGNIFICANT, holm

Floats = NDArray[np.float64]

#: Comments that a segment must have: on the day, or as many expected there by the reference.
MINIMUM_COMMENTS = 50

#: Share of the change that a segment must explain to come before all that explain less.
LARGE = 0.25

#: Columns of the cells, beside the factors.
COUNTS = ("comments", "flagged", "reference_comments", "reference_flagged")


@dataclass(frozen=True, kw_only=True)
class Segment:
    """A segment of a day beside its reference."""

    #: Factors and values, such as `platform=forum, language=de`.
    name: str
    #: Comments of the segment on the day, and in the reference.
    n: int
    reference_n: int
    #: Their shares of all comments, in [0, 1].
    share: float
    reference_share: float
    #: Their flagged shares, in [0, 1]; None without comments.
    rate: float | None
    reference_rate: float | None
    #: Part of the change of the flagged share, in [−1, 1], with its 95 % interval.
    effect: float
    low: float
    high: float
    #: What the effect is the sum of.
    composition: float
    behaviour: float
    #: Effect over change; None where the change is none.
    explained: float | None
    #: That the segment changed as all other comments did, alone and corrected (Holm).
    p_value: float
    p_holm: float

    @property
    def stands_out(self) -> bool:
        """Whether the segment changed otherwise than the rest, more than by chance."""
        return self.p_holm < SIGNIFICANT

    def sentence(self) -> str:
        """Return the segment in one sentence without a full stop.

        >>> cells = pd.DataFrame({"platform": ["forum", "news"], "comments": [1240, 5000],
        ...     "flagged": [459, 400], "reference_comments": [17000, 70000],
        ...     "reference_flagged": [1360, 5600]})
        >>> explain_shift(cells, ["platform"])[0].sentence()
        'platform=forum: flagged 8.0 % → 37.0 %, 19.5 % → 19.9 % of comments, n = 1,240, 100 % of \
the shift'
        """
        rates = " → ".join(
            "–" if rate is None else f"{100 * rate:.1f} %"
            for rate in (self.reference_rate, self.rate)
        )
        shares = f"{100 * self.reference_share:.1f} % → {100 * self.share:.1f} % of comments"
        part = "" if self.explained is None else f", {100 * self.explained:.0f} % of the shift"
        return f"{self.name}: flagged {rates}, {shares}, n = {self.n:,}{part}"


def explain_shift(cells: pd.DataFrame, factors: Sequence[str]) -> list[Segment]:
    """Return the segments whose effect goes the way of the change, the most telling first.

    Flagged comments of the day and of the reference are divided into those inside and outside of a
    segment. The likelihood ratio of that table, with and without a change of its own inside
    (Kulldorff 1997, *A spatial scan statistic*), is largest for the segment that is neither too
    narrow nor too wide. Segments that explain less than `LARGE` of the change come last: their
    table may differ because their share of the comments changed, without any effect.

    Args:
        cells: one row for each combination of values, with the columns `factors` and `COUNTS`.
        factors: names of the columns to divide by, alone and in pairs.

    Returns:
        Segments with at least `MINIMUM_COMMENTS`; none without flagged comments, or if either side
        is empty.

    Raises:
        MetricInputError: a count is negative, or more comments are flagged than there are.
    """
    counts = cells[list(COUNTS)].to_numpy(np.float64)
    _check(counts)
    total = counts.sum(axis=0)
    if not total[0] or not total[2] or not total[1] + total[3]:
        return []
    change = total[1] / total[0] - total[3] / total[2]
    parts = [
        _segments(name, group, total)
        for name, group in _partitions(cells, factors)
        if len(group) > 1  # one value: the segment is everything
    ]
    if not parts:
        return []
    table = pd.concat(parts, ignore_index=True)
    table = table[table["expected"].clip(lower=table["n"]) >= MINIMUM_COMMENTS]
    table = table.drop_duplicates([*("n", "reference_n", "effect", "statistic")])  # keeps singles
    table["p_value"] = special.chdtrc(1, table["statistic"])
    table["p_holm"] = holm(table["p_value"])
    table["explained"] = table["effect"] / change if change else math.nan
    table = table[table["effect"] * change > 0]
    large = table["explained"] >= LARGE
    order = table.assign(large=~large, minus=-table["statistic"]).sort_values(
        ["large", "minus", "name"], kind="stable"
    )
    fields = list(Segment.__dataclass_fields__)
    return [Segment(**_plain(row)) for row in order[fields].to_dict("records")]


def leading(segments: Sequence[Segment]) -> Segment | None:
    """Return the segment to name first; None: the change is spread over all of them.

    >>> leading([]) is None
    True
    """
    first = next(iter(segments), None)
    large = first is not None and (first.explained or 0.0) >= LARGE
    return first if first is not None and large and first.stands_out else None


def _check(counts: Floats) -> None:
    if counts.size and (
        counts.min() < 0
        or (counts[:, 1] > counts[:, 0]).any()
        or (counts[:, 3] > counts[:, 2]).any()
    ):
        raise MetricInputError("flagged comments must be counted among the comments of their cell")


def _partitions(
    cells: pd.DataFrame, factors: Sequence[str]
) -> Iterator[tuple[list[str], pd.DataFrame]]:
    """Yield the counts by each factor, then by each pair, with the names of the segments."""
    for chosen in (*combinations(factors, 1), *combinations(factors, 2)):
        group = cells.groupby(list(chosen), sort=True)[list(COUNTS)].sum()
        keys = group.index if len(chosen) > 1 else [(value,) for value in group.index]
        names = [
            ", ".join(f"{factor}={value}" for factor, value in zip(chosen, key, strict=True))
            for key in keys
        ]
        yield names, group


def _segments(names: Sequence[str], group: pd.DataFrame, total: Floats) -> pd.DataFrame:
    """Return the figures of the segments of one partition; `total` (4,) are the `COUNTS` of all."""
    n, flagged, before, flagged_before = group.to_numpy(np.float64).T
    share, share_before = n / total[0], before / total[2]
    rate = _over(flagged, n, flagged_before, before)
    rate_before = _over(flagged_before, before, flagged, n)
    usual = (total[1] / total[0] + total[3] / total[2]) / 2
    composition = (share - share_before) * ((rate + rate_before) / 2 - usual)
    behaviour = (share + share_before) / 2 * (rate - rate_before)
    effect = composition + behaviour
    error = np.sqrt(
        _variance(share, rate, usual) / total[0]
        + _variance(share_before, rate_before, usual) / total[2]
    )
    return pd.DataFrame(
        {
            "name": names,
            "n": n,
            "reference_n": before,
            "share": share,
            "reference_share": share_before,
            "rate": np.where(n > 0, rate, np.nan),
            "reference_rate": np.where(before > 0, rate_before, np.nan),
            "effect": effect,
            "low": effect - NORMAL_QUANTILE * error,
            "high": effect + NORMAL_QUANTILE * error,
            "composition": composition,
            "behaviour": behaviour,
            "expected": share_before * total[0],
            "statistic": _likelihood_ratio(flagged, flagged_before, total[1], total[3]),
        }
    )


def _over(part: Floats, whole: Floats, part_else: Floats, whole_else: Floats) -> Floats:
    """Return part/whole; that of the other side where this one is empty: no change."""
    other = np.divide(part_else, whole_else, out=np.zeros_like(part), where=whole_else > 0)
    return np.divide(part, whole, out=other, where=whole > 0)


def _variance(share: Floats, rate: Floats, usual: float) -> Floats:
    """Return the variance (S,) of what one comment adds to a segment's effect."""
    mean = share * (rate - usual)
    square = share * (rate * (1 - usual) ** 2 + (1 - rate) * usual**2)
    return np.asarray(square - mean**2)


def _likelihood_ratio(
    inside: Floats, inside_before: Floats, total: float, total_before: float
) -> Floats:
    """Return 2·ln of the likelihood ratio (S,) of flagged comments inside and outside, χ² of 1."""
    cells = np.stack([inside, inside_before, total - inside, total_before - inside_before])
    whole = total + total_before
    rows = np.array([total, total_before, total, total_before])[:, None] / whole
    columns = np.stack([inside + inside_before] * 2 + [whole - inside - inside_before] * 2)
    expected = rows * columns
    ratio = np.divide(cells, expected, out=np.ones_like(cells), where=expected > 0)
    return np.asarray(np.maximum(2 * special.xlogy(cells, ratio).sum(axis=0), 0.0))


def _plain(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the fields of a segment: whole counts, and None for what is not known."""
    plain = {str(k): None if isinstance(v, float) and math.isnan(v) else v for k, v in row.items()}
    return plain | {name: round(float(row[name])) for name in ("n", "reference_n")}
