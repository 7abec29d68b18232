"""Which segments of the comments explain that more are flagged, or score higher, than before.

A segment is a value of a factor, such as `platform=forum`, or a pair of values. Its effect on a
mean over all comments, the flagged share or the mean score, has two parts (Kitagawa 1955,
*Components of a difference between two rates*): *composition*, its share of the comments has
changed, and *behaviour*, its own mean has changed. The effects of the values of a factor add up to
the change of the mean, and so do those of a pair of factors.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import special

from modwatch.common.errors import MetricInputError
from modwatch.statistics import arguments
from modwatch.statistics.arguments import Floats
from modwatch.statistics.drift.profile import OTHERS
from modwatch.statistics.estimate import SIGNIFICANT, holm
from modwatch.statistics.intervals import NORMAL_QUANTILE

#: What is compared: the flagged share, or the mean score.
Measure = Literal["flagged", "prob"]

#: Comments that a segment must have: on the day, or as many expected there by the reference.
MINIMUM_COMMENTS = 50

#: Share of the change that a segment must explain to come before all that explain less.
LARGE = 0.25

#: Columns of the cells for each measure, besides the factors: comments, the sum of the measure, and
#: the sum of its squares, which for flags is the sum.
COUNTS: Mapping[Measure, tuple[str, ...]] = {
    "flagged": ("comments", "flagged", "reference_comments", "reference_flagged"),
    "prob": (
        *("comments", "prob", "prob_square"),
        *("reference_comments", "reference_prob", "reference_prob_square"),
    ),
}

#: A value of a transient factor that is none, as `OTHERS` is: comments without one.
NONE = "(none)"

#: Between the labels of a comment.
SEPARATOR = "; "

_SUMS = ("n", "total", "square", "n_before", "total_before", "square_before")


@dataclass(frozen=True, kw_only=True)
class Segment:
    """A segment of a day, compared with the reference."""

    #: Whose change it explains: `flagged`, the flagged share, or `prob`, the mean score.
    measure: Measure
    #: Factors and values, such as `platform=forum, language=de`.
    name: str
    #: Comments of the segment on the day, and in the reference.
    n: int
    reference_n: int
    #: Their shares of all comments, in [0, 1].
    share: float
    reference_share: float
    #: Their flagged shares, or mean scores, in [0, 1]; None without comments.
    rate: float | None
    reference_rate: float | None
    #: Part of the change of the mean over all comments, in [−1, 1], with its 95 % interval.
    effect: float
    low: float
    high: float
    #: What the effect is the sum of.
    composition: float
    behaviour: float
    #: Effect over change; None where the change is none.
    explained: float | None
    #: That the segment changed as all other comments did, alone and corrected (Holm). Of a
    #: transient value, also that it, or the day, differs no more than such values always do.
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
        what = "flagged" if self.measure == "flagged" else "mean score"
        rates = [
            self._written(rate) for rate in (self.reference_rate, self.rate) if rate is not None
        ]
        shares = [f"{100 * share:.1f} %" for share in (self.reference_share, self.share) if share]
        changed = f"{what} {' → '.join(rates)}, {' → '.join(shares)} of comments"
        part = "" if self.explained is None else f", {100 * self.explained:.0f} % of the shift"
        return f"{self.name}{self._novelty()}: {changed}, n = {self.n:,}{part}"

    def _novelty(self) -> str:
        """Return whether the segment has comments on one side only, so that one figure is given."""
        if not self.reference_n:
            return " (new)"
        return "" if self.n else " (gone; as it was)"

    def _written(self, rate: float) -> str:
        return f"{100 * rate:.1f} %" if self.measure == "flagged" else f"{rate:.3f}"


def explain_shift(
    cells: pd.DataFrame,
    factors: Sequence[str],
    *,
    measure: Measure = "flagged",
    transient: Sequence[str] = (),
    labels: Sequence[str] = (),
) -> list[Segment]:
    """Return the segments whose effect goes the way of the change, the most telling first.

    The sums of the measure on the day and in the reference are divided into those inside and
    outside of a segment. The likelihood ratio of that table, with and without a change of its own
    inside (Kulldorff 1997, *A spatial scan statistic*), over the dispersion Σs²/Σs of compound
    Poisson sums, which is 1 for flags, is largest for the segment that is neither too narrow nor
    too wide. Segments that explain less than `LARGE` of the change come last: their table may
    differ because their share of the comments changed, without any effect.

    Values of `transient` factors, such as threads, come and go, and differ from each other on every
    day. They, and the mean of the day, are also compared with all of the reference, over the
    variance between such values that day and reference show (F tests).

    Args:
        cells: one row for each combination of values, with the columns `factors`, `transient`,
            `labels` and `COUNTS` of the measure.
        factors: names of the columns to divide by, alone and in pairs.
        measure: what has changed.
        transient: names of the columns to divide by alone; `OTHERS` and `NONE` are no values.
        labels: names of the columns of which a comment may have several values, with `SEPARATOR`
            between them; each is a segment alone, and `NONE` is no value.

    Returns:
        Segments with at least `MINIMUM_COMMENTS`; none without flagged comments, or if either side
        is empty.

    Raises:
        MetricInputError: a count is negative, a sum is larger than the number of comments, or a
            name of a segment is missing.
    """
    for column in (*factors, *transient, *labels):
        arguments.names(column, cells[column])
    sums = _sums(cells, measure)
    total = sums.to_numpy(np.float64).sum(axis=0)
    if not total[0] or not total[3] or not total[1] + total[4]:
        return []
    change = total[1] / total[0] - total[4] / total[3]
    parts = [
        _segments(name, group, total)
        for name, group in _partitions(cells[[*factors]].join(sums), factors)
        if len(group) > 1  # one value: the segment is everything
    ]
    parts += [_segments(name, group, total) for name, group in _labelled(cells, sums, labels)]
    parts += [
        _with_transient_test(_segments(name, group, total), group, total)
        for name, group in _transient(cells, sums, transient)
    ]
    if not parts:
        return []
    return _ranked(pd.concat(parts, ignore_index=True), change, measure)


def _ranked(table: pd.DataFrame, change: float, measure: Measure) -> list[Segment]:
    """Return the segments that are large enough and go the way of the change, in order."""
    table = table[table["expected"].clip(lower=table["n"]) >= MINIMUM_COMMENTS]
    same = table[["n", "reference_n", "effect", "statistic"]].round(9).duplicated()
    table = table[~same]  # of a value and a pair with the same comments, the value stays
    table["p_holm"] = holm(table["p_value"])
    table["explained"] = table["effect"] / change if change else math.nan
    table = table[table["effect"] * change > 0]
    large = table["explained"] >= LARGE
    order = table.assign(large=~large, minus=-table["statistic"]).sort_values(
        ["large", "minus", "name"], kind="stable"
    )
    fields = [name for name in Segment.__dataclass_fields__ if name != "measure"]
    return [Segment(measure=measure, **_plain(row)) for row in order[fields].to_dict("records")]


def leading(segments: Sequence[Segment]) -> Segment | None:
    """Return the segment to name first; None: the change is spread over all of them."""
    first = next(iter(segments), None)
    large = first is not None and (first.explained or 0.0) >= LARGE
    return first if first is not None and large and first.stands_out else None


def _sums(cells: pd.DataFrame, measure: Measure) -> pd.DataFrame:
    """Return the columns `_SUMS` of the cells, checked."""
    columns = [*COUNTS[measure]]
    if measure == "flagged":
        columns = [*columns[:2], columns[1], *columns[2:], columns[3]]
    sums = cells[columns].set_axis([*_SUMS], axis=1).astype(np.float64)
    values = sums.to_numpy()
    slack = 1e-6 * values[:, [0, 3]] + 1e-6
    if (
        not np.isfinite(values).all()
        or (values < 0).any()
        or (values[:, [1, 4]] > values[:, [0, 3]] + slack).any()
    ):
        raise MetricInputError(
            "the sums of the cells must be finite and at least 0, and flagged comments, or scores, "
            "no more than the comments of their cell"
        )
    return sums


def _partitions(
    cells: pd.DataFrame, factors: Sequence[str]
) -> Iterator[tuple[list[str], pd.DataFrame]]:
    """Yield the sums by each factor, then by each pair, with the names of the segments."""
    for chosen in (*combinations(factors, 1), *combinations(factors, 2)):
        group = cells.groupby(list(chosen), sort=True)[list(_SUMS)].sum()
        keys = group.index if len(chosen) > 1 else [(value,) for value in group.index]
        names = [
            ", ".join(f"{factor}={value}" for factor, value in zip(chosen, key, strict=True))
            for key in keys
        ]
        yield names, group


def _transient(
    cells: pd.DataFrame, sums: pd.DataFrame, factors: Sequence[str]
) -> Iterator[tuple[list[str], pd.DataFrame]]:
    """Yield the sums by the values of each transient factor that are a name."""
    for factor in factors:
        ((names, group),) = _partitions(cells[[factor]].join(sums), [factor])
        named = ~group.index.isin([OTHERS, NONE])
        yield [name for name, kept in zip(names, named, strict=True) if kept], group[named]


def _labelled(
    cells: pd.DataFrame, sums: pd.DataFrame, columns: Sequence[str]
) -> Iterator[tuple[list[str], pd.DataFrame]]:
    """Yield the sums by each label of each column; a comment with several counts for each."""
    for column in columns:
        rows = sums.assign(**{column: cells[column].str.split(SEPARATOR)}).explode(column)
        group = rows[rows[column] != NONE].groupby(column)[[*_SUMS]].sum()
        yield [f"{column}={value}" for value in group.index], group


def _segments(names: Sequence[str], group: pd.DataFrame, total: Floats) -> pd.DataFrame:
    """Return the figures of the segments of one partition; `total` (6,) are the `_SUMS` of all."""
    n, mass, square, before, mass_before, square_before = group.to_numpy(np.float64).T
    share, share_before = n / total[0], before / total[3]
    rate = _over(mass, n, mass_before, before)
    rate_before = _over(mass_before, before, mass, n)
    usual = (total[1] / total[0] + total[4] / total[3]) / 2
    composition = (share - share_before) * ((rate + rate_before) / 2 - usual)
    behaviour = (share + share_before) / 2 * (rate - rate_before)
    effect = composition + behaviour
    error = np.sqrt(
        _variance(n, mass, square, total[0], usual)
        + _variance(before, mass_before, square_before, total[3], usual)
    )
    dispersion = (total[2] + total[5]) / (total[1] + total[4])
    statistic = _likelihood_ratio(mass, mass_before, total[1], total[4]) / dispersion
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
            "statistic": statistic,
            "p_value": special.chdtrc(1, statistic),
        }
    )


def _with_transient_test(table: pd.DataFrame, group: pd.DataFrame, total: Floats) -> pd.DataFrame:
    """Return the figures of a transient factor with the test among its values.

    The mean of n comments of one value has the variance of n independent ones times 1 + (n − 1)ρ,
    where ρ is the correlation within values; it is estimated by the method of moments from all
    other values. Three hypotheses must be rejected, so that the largest p-value counts: that the
    value is like those of the reference, that the mean of the day is, and that the value changed as
    all other comments did.
    """
    n, mass, _, before, mass_before, _ = group.to_numpy(np.float64).T
    usual = total[4] / total[3]
    alone = max(total[5] / total[3] - usual**2, 1e-12)  # variance of one comment
    rho, degrees = _correlation(n + before, mass + mass_before, usual, alone)
    of_day, of_reference = (
        (1 + (size * (size - 1)).sum() / whole * rho) / whole
        for size, whole in ((n, total[0]), (before, total[3]))
    )
    own = (1 + np.maximum(n - 1, 0) * rho) / np.maximum(n, 1)
    plain = _binomial_ratio(mass, n, usual) * max(usual * (1 - usual), 1e-12) / alone
    statistic = plain / (np.maximum(n, 1) * (own + of_reference))
    change = total[1] / total[0] - usual
    of_change = change**2 / (alone * (of_day + of_reference))
    among_values = special.fdtrc(1, np.maximum(degrees, 1), np.minimum(statistic, of_change))
    among_values[degrees == 0] = 1.0
    # One that stands out is ranked as the others are, whose statistic has no correlation in it.
    rank = np.where(among_values < SIGNIFICANT, plain, statistic)
    return table.assign(
        statistic=np.minimum(rank, table["statistic"]),
        p_value=np.maximum(among_values, table["p_value"]),
    )


def _correlation(size: Floats, mass: Floats, usual: float, alone: float) -> tuple[Floats, Floats]:
    """Return for each value (S,) the correlation within all others, and its degrees of freedom."""
    pairs = size * (size - 1)
    excess = (mass - size * usual) ** 2 / alone - size
    others = pairs.sum() - pairs
    rho = np.clip((excess.sum() - excess) / np.maximum(others, 1e-12), 0, 1)
    return rho, others**2 / np.maximum((pairs**2).sum() - pairs**2, 1e-12)


def _binomial_ratio(mass: Floats, n: Floats, usual: float) -> Floats:
    """Return 2·ln of the likelihood ratio (S,) of a share mass/n and the usual one, χ² of 1."""
    cells = np.maximum(np.stack([mass, n - mass]), 0.0)
    return _deviance(cells, np.stack([n * usual, n * (1 - usual)]))


def _deviance(cells: Floats, expected: Floats) -> Floats:
    """Return 2·ln of the likelihood ratio (S,) of cells (C, S) and what is expected of them."""
    ratio = np.divide(cells, expected, out=np.ones_like(cells), where=expected > 0)
    return np.asarray(np.maximum(2 * special.xlogy(cells, ratio).sum(axis=0), 0.0))


def _over(part: Floats, whole: Floats, part_else: Floats, whole_else: Floats) -> Floats:
    """Return part/whole; that of the other side where this one is empty: no change."""
    other = np.divide(part_else, whole_else, out=np.zeros_like(part), where=whole_else > 0)
    return np.divide(part, whole, out=other, where=whole > 0)


def _variance(n: Floats, mass: Floats, square: Floats, total: float, usual: float) -> Floats:
    """Return the variance (S,) of the part of one side in the effect of a segment.

    Every comment adds (s − usual)/total inside of the segment, and 0 outside.
    """
    mean = (mass - n * usual) / total
    of_squares = (square - 2 * usual * mass + n * usual**2) / total
    return np.asarray(np.maximum(of_squares - mean**2, 0.0) / total)


def _likelihood_ratio(
    inside: Floats, inside_before: Floats, total: float, total_before: float
) -> Floats:
    """Return 2·ln of the likelihood ratio (S,) of sums inside and outside, χ² of 1."""
    cells = np.stack([inside, inside_before, total - inside, total_before - inside_before])
    cells = np.maximum(cells, 0.0)  # sums of scores are off by rounding
    whole = total + total_before
    rows = np.array([total, total_before, total, total_before])[:, None] / whole
    columns = np.stack([inside + inside_before] * 2 + [whole - inside - inside_before] * 2)
    return _deviance(cells, rows * columns)


def _plain(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the fields of a segment: whole counts, and None for what is not known."""
    plain = {str(k): None if isinstance(v, float) and math.isnan(v) else v for k, v in row.items()}
    return plain | {name: round(float(row[name])) for name in ("n", "reference_n")}
