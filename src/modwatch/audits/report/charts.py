"""The charts of the report: shares with their intervals, a row each, in per cent of the width.

So colours follow light, dark and print, labels wrap on a narrow screen, and the
Content-Security-Policy allows no styles except the page's own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from modwatch.audits.report import formatting
from modwatch.audits.report.metrics import Result, by_column, history, of_metric, title
from modwatch.statistics.audit.finite_inversion import hypergeometric_interval
from modwatch.statistics.audit.share_interval import IntervalOptions

#: Maximum values of a column in a chart, the largest ones.
MAX_VALUES = 12


@dataclass(frozen=True, kw_only=True)
class Row:
    """A share with its interval, in per cent; None when there is no estimate.

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
    return Ranges(
        title=title(metric),
        caption=caption,
        groups=tuple(groups),
        whole=None if len(groups) == 1 else _percent(estimate["value"]),
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
    label, ends = range_of(stratum).partition(": ")[2], _ends_of_stratum(stratum)
    if ends is None:
        return Row(label=label, text="no labels")
    low, share, high = map(_percent, ends)
    counts = f"{stratum['positives']:,} of {formatting.noun(stratum['labels'], 'label')}"
    return Row(label=label, text=counts, low=low, value=share, high=high)


def stratum_share(stratum: Result) -> str:
    """Return the share of positives in a stratum with its exact interval; a dash without labels.

    >>> stratum_share({"positives": 1, "labels": 2, "population": 2}).replace(chr(160), " ")
    '50 %, all labelled'
    """
    ends = _ends_of_stratum(stratum)
    if ends is None:
        return formatting.NONE
    low, share, high = ends
    if stratum["labels"] == stratum["population"]:
        return f"{formatting.rate(share)}, all labelled"
    places = formatting.decimals(share, low, high)
    return f"{formatting.percent(share, places)} ({formatting.ends(low, high, places, 'both')})"


def _ends_of_stratum(stratum: Result) -> tuple[float, float, float] | None:
    """Return low, share and high; all the same where every comment is labelled."""
    positives, labels, population = (
        stratum[name] for name in ("positives", "labels", "population")
    )
    if not labels:
        return None
    share = positives / labels
    if labels == population:
        return share, share, share
    low, high = hypergeometric_interval(np.array(positives), labels, population)
    return float(low), share, float(high)


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


def over_time(
    result: Result, earlier: tuple[Result, ...], interval: IntervalOptions
) -> list[Ranges]:
    """Return recall and precision of each audit, oldest first; none without an earlier audit."""
    audits = history(result, earlier)
    if len(audits) == 1:
        return []
    return [_over_time(audits, metric, interval) for metric in ("recall", "precision")]


def _over_time(audits: Sequence[Result], metric: str, interval: IntervalOptions) -> Ranges:
    rows = tuple(
        _row(
            f"{formatting.name(audit['audit'])}, to {audit['last_day']}",
            of_metric(audit["figures"], metric),
            interval,
        )
        for audit in audits
    )
    return Ranges(
        title=f"{title(metric)} over time",
        caption=f"{title(metric)} of each audit, oldest first, with its confidence interval. The "
        "dashed line marks this audit.",
        groups=(("", rows),),
        whole=rows[-1].value,
    )


def _row(label: str, estimate: Result, interval: IntervalOptions) -> Row:
    if estimate["value"] is None and not estimate.get("bound"):
        return Row(label=label, text="no estimate: too few labels or positives")
    known = estimate["value"] is not None
    text = formatting.with_ends(estimate, interval) if known else formatting.bound_of(estimate)
    # An end that is not known is the furthest possible.
    low, high = _percent(estimate["low"]) or 0.0, _percent(estimate["high"])
    return Row(
        label=label,
        text=text,
        low=low,
        value=_percent(estimate["value"]),
        high=100.0 if high is None else high,
    )


def _percent(share: float | None) -> float | None:
    return None if share is None else round(100 * share, 2)
