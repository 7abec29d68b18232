"""The charts of the report: positions in per cent of width and height, for the SVG template.

So colours follow light, dark and print, labels wrap on a narrow screen, and the
Content-Security-Policy allows no styles except the page's own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from modwatch.audits.report import formatting
from modwatch.audits.report.metrics import Result, by_column, history, of_metric, title
from modwatch.common.charts import Scale, labelled_places
from modwatch.statistics.audit.finite_inversion import hypergeometric_interval
from modwatch.statistics.audit.share_interval import IntervalOptions

#: Maximum values of a column in a chart, the largest ones.
MAX_VALUES = 12

#: Maximum date labels along the bottom of a trend.
_DAY_LABELS = 3

#: Left and right end of the plot area of a trend, in per cent.
_LEFT, _RIGHT = 16.0, 88.0

#: Shares along a row, and up a trend, in per cent; y points down.
_ACROSS = Scale(low=0, high=1, start=0, end=100)
_UP = Scale(low=0, high=1, start=80, end=8)


@dataclass(frozen=True, kw_only=True)
class Row:
    """A share with its interval on a line from 0 to 100; None when there is no estimate.

    A bound has `low` and `high`, one of them 0 or 100, and no value.
    """

    label: str
    text: str
    low: float | None = None
    value: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class Ranges:
    """Shares with their intervals, one per row."""

    title: str
    caption: str
    #: Heading, empty for the first group, and rows.
    groups: tuple[tuple[str, tuple[Row, ...]], ...]
    #: Position of the reference line.
    whole: float | None = None


@dataclass(frozen=True, kw_only=True)
class Point:
    """An audit in a trend; y, low and high are None when there is no estimate, y for a bound."""

    x: float
    text: str
    y: float | None = None
    low: float | None = None
    high: float | None = None
    #: Date label; empty where there is no room.
    day: str = ""
    now: bool = False


@dataclass(frozen=True, kw_only=True)
class Trend:
    """A metric over audits, oldest first."""

    title: str
    points: tuple[Point, ...]
    #: Text alternative.
    summary: str
    #: Label and position y of each grid line.
    grid: tuple[tuple[str, float], ...]

    @property
    def steps(self) -> list[tuple[Point, Point]]:
        """Pairs of neighbouring points that both have estimates."""
        return [
            (one, other)
            for one, other in pairwise(self.points)
            if one.y is not None and other.y is not None
        ]


def ranges(result: Result, metric: str, interval: IntervalOptions) -> Ranges:
    """Return a metric for all comments and by each column."""
    estimate, columns = of_metric(result["figures"], metric), by_column(result)
    groups: list[tuple[str, tuple[Row, ...]]] = [("", (_row("All comments", estimate, interval),))]
    for column, domains in columns.items():
        rows = tuple(
            _row(formatting.name(domain["value"]), of_metric(domain["figures"], metric), interval)
            for domain in domains[:MAX_VALUES]
        )
        groups.append((formatting.heading(column), rows))
    caption = f"{title(metric)} with its {formatting.level(interval)}."
    if len(groups) > 1 and estimate["value"] is not None:
        caption += " The dashed line marks the value for all comments."
    if any(len(domains) > MAX_VALUES for domains in columns.values()):
        caption += f" Shows the {MAX_VALUES} largest values; the table lists all."
    value = estimate["value"]
    return Ranges(
        title=title(metric),
        caption=caption,
        groups=tuple(groups),
        whole=None if value is None or len(groups) == 1 else _ACROSS.at(value),
    )


def strata(result: Result) -> Ranges:
    """Return the share of positives among the labels of each stratum."""
    groups = []
    for side, heading in (("flagged", "Flagged"), ("unflagged", "Not flagged")):
        rows = tuple(
            _of_stratum(stratum) for stratum in result["strata"] if stratum["side"] == side
        )
        if rows:
            groups.append((heading, rows))
    return Ranges(
        title="Share of positives by score",
        caption="Share of positives among the labels of each range of scores, with the 95\u00a0% "
        "confidence interval of that range.",
        groups=tuple(groups),
    )


def _of_stratum(stratum: Result) -> Row:
    share, label = stratum_share(stratum), range_of(stratum).partition(": ")[2]
    if share is None:
        return Row(label=label, text="no labels")
    counts = f"{stratum['positives']:,} of {formatting.noun(stratum['labels'], 'label')}"
    return replace(share, label=label, text=counts)


def stratum_share(stratum: Result) -> Row | None:
    """Return the share of positives in a stratum with its exact interval; None without labels.

    Where every comment is labelled, both ends are the share itself.

    >>> stratum_share({"positives": 1, "labels": 2, "population": 2}).text.replace(chr(160), " ")
    '50 %, all labelled'
    """
    positives, labels = stratum["positives"], stratum["labels"]
    if not labels:
        return None
    low = high = share = positives / labels
    if labels == stratum["population"]:
        text = f"{formatting.rate(share)}, all labelled"
    else:
        low, high = map(
            float, hypergeometric_interval(np.array(positives), labels, stratum["population"])
        )
        places = formatting.decimals(share, low, high)
        text = f"{formatting.percent(share, places)} ({formatting.ends(low, high, places, 'both')})"
    return Row(
        label="", text=text, low=_ACROSS.at(low), value=_ACROSS.at(share), high=_ACROSS.at(high)
    )


def range_of(stratum: Result) -> str:
    """Return the range of scores of a stratum as text.

    >>> range_of({"side": "unflagged", "lower": 0.1, "upper": None})
    'Not flagged: 0.1 and above'
    """
    side = "Flagged" if stratum["side"] == "flagged" else "Not flagged"
    lower, upper = stratum["lower"], stratum["upper"]
    if lower is None:
        text = "all" if upper is None else f"below {formatting.score(upper)}"
    elif upper is None:
        text = f"{formatting.score(lower)} and above"
    else:
        text = f"{formatting.score(lower)} to below {formatting.score(upper)}"
    return f"{side}: {text}"


def trends(result: Result, earlier: tuple[Result, ...], interval: IntervalOptions) -> list[Trend]:
    """Return recall and precision over audits; none without an earlier audit."""
    audits = history(result, earlier)
    if len(audits) == 1:
        return []
    return [_trend(audits, metric, interval) for metric in ("recall", "precision")]


def _trend(audits: Sequence[Result], metric: str, interval: IntervalOptions) -> Trend:
    last, labelled = len(audits) - 1, labelled_places(len(audits), _DAY_LABELS)
    points = []
    for place, audit in enumerate(audits):
        estimate = of_metric(audit["figures"], metric)
        low, high = _ends(estimate)
        points.append(
            Point(
                x=round(_LEFT + (_RIGHT - _LEFT) * place / last, 2),
                y=None if estimate["value"] is None else _UP.at(estimate["value"]),
                low=None if low is None else _UP.at(low),
                high=None if high is None else _UP.at(high),
                day=audit["last_day"] if place in labelled else "",
                now=place == last,
                text=f"{formatting.name(audit['audit'])}: {_text(estimate, interval)}",
            )
        )
    summary = f"{title(metric)} of {formatting.noun(len(audits), 'audit')}, oldest first, from "
    return Trend(
        title=title(metric),
        points=tuple(points),
        summary=f"{summary}{points[0].text}, to {points[-1].text}",
        grid=tuple((f"{share}\u00a0%", _UP.at(share / 100)) for share in (0, 50, 100)),
    )


def _row(label: str, estimate: Result, interval: IntervalOptions) -> Row:
    low, high = _ends(estimate)
    if low is None or high is None:
        return Row(label=label, text="no estimate: too few labels or positives")
    value = None if estimate["value"] is None else _ACROSS.at(estimate["value"])
    text = _text(estimate, interval)
    return Row(label=label, text=text, low=_ACROSS.at(low), value=value, high=_ACROSS.at(high))


def _ends(estimate: Result) -> tuple[float | None, float | None]:
    """Return what is known of a metric: an interval, or from a bound on; None when nothing is."""
    if estimate["value"] is None and not estimate.get("bound"):
        return None, None
    low, high = estimate["low"], estimate["high"]
    return 0.0 if low is None else low, 1.0 if high is None else high


def _text(estimate: Result, interval: IntervalOptions) -> str:
    if estimate["value"] is None:
        return formatting.bound_of(estimate) or "no estimate"
    return f"{formatting.value_of(estimate, interval)} ({formatting.ends_of(estimate, interval)})"
