"""What the pictures show, as places in per cent of their width and height: the page draws them.

Drawn by the page itself, so that colours follow light, dark and print, words wrap on a narrow
screen, and the Content-Security-Policy needs to allow no styles but the page's own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from modwatch.audit.intervals import IntervalRule
from modwatch.audit.report import words
from modwatch.audit.report.figures import Result, by_column, history, of_metric, title
from modwatch.metrics.intervals import mid_p

#: Values of a column that a picture shows, those with most comments.
MOST_VALUES = 12

#: Days that fit along the bottom of a trend.
_DAY_LABELS = 3

#: Sides and top of a trend left free for its words, in per cent.
_LEFT, _RIGHT, _TOP, _BOTTOM = 16.0, 88.0, 8.0, 80.0


@dataclass(frozen=True, kw_only=True)
class Row:
    """A share with its interval on a line from 0 to 100; places are None when it is not told."""

    label: str
    text: str
    low: float | None = None
    value: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class Ranges:
    """Shares with their intervals, below each other."""

    title: str
    caption: str
    #: Heading, empty for the first group, and rows.
    groups: tuple[tuple[str, tuple[Row, ...]], ...]
    #: Place of the value that all others are compared with.
    whole: float | None = None


@dataclass(frozen=True, kw_only=True)
class Point:
    """An audit in a trend; the places y are None when its figure is not told."""

    x: float
    text: str
    y: float | None = None
    low: float | None = None
    high: float | None = None
    #: Day along the bottom; empty where there is no room.
    day: str = ""
    now: bool = False


@dataclass(frozen=True, kw_only=True)
class Trend:
    """A figure over audits, oldest first."""

    title: str
    points: tuple[Point, ...]
    #: The same in words.
    summary: str
    #: Label and place y of each line of the grid.
    grid: tuple[tuple[str, float], ...]

    @property
    def steps(self) -> list[tuple[Point, Point]]:
        """Points to be joined: neighbours in time of which both are told."""
        return [
            (one, other)
            for one, other in pairwise(self.points)
            if one.y is not None and other.y is not None
        ]


def ranges(result: Result, metric: str, rule: IntervalRule) -> Ranges:
    """Return a metric as a whole and by each column."""
    figure = of_metric(result["figures"], metric)
    groups: list[tuple[str, tuple[Row, ...]]] = [("", (_row("All comments", figure, rule),))]
    cut = False
    for column, domains in by_column(result).items():
        rows = tuple(
            _row(words.name(each["value"]), of_metric(each["figures"], metric), rule)
            for each in domains[:MOST_VALUES]
        )
        cut = cut or len(domains) > MOST_VALUES
        groups.append((words.heading(column), rows))
    caption = f"{title(metric)} with its {words.level(rule)}."
    if len(groups) > 1 and figure["value"] is not None:
        caption += " The dashed line is the value for all comments."
    if cut:
        caption += f" Of each kind, the {MOST_VALUES} with most comments; the table has all."
    value = figure["value"]
    return Ranges(
        title=title(metric),
        caption=caption,
        groups=tuple(groups),
        whole=None if value is None or len(groups) == 1 else _place(value),
    )


def strata(result: Result) -> Ranges:
    """Return the share of positives among the labels of each stratum."""
    groups = []
    for side, heading in (("flagged", "Flagged"), ("unflagged", "Not flagged")):
        rows = []
        for stratum in result["strata"]:
            if stratum["side"] != side:
                continue
            share = stratum_share(stratum)
            counts = f"{stratum['positives']:,} of {words.noun(stratum['labels'], 'label')}"
            label = range_of(stratum).partition(": ")[2]
            rows.append(
                Row(label=label, text="no label")
                if share is None
                else Row(
                    label=label, text=counts, low=share.low, value=share.value, high=share.high
                )
            )
        if rows:
            groups.append((heading, tuple(rows)))
    return Ranges(
        title="Share of positives by score",
        caption="Share of positives among the labels of each range of scores, with a 95\u00a0% "
        "interval of that range alone.",
        groups=tuple(groups),
    )


def stratum_share(stratum: Result) -> Row | None:
    """Return the share of positives in a stratum with its mid-P interval; None without labels.

    Where every comment is labelled, the interval is the share itself.

    >>> stratum_share({"positives": 1, "labels": 2, "population": 2}).text.replace(chr(160), " ")
    '50 %, all labelled'
    """
    positives, labels = stratum["positives"], stratum["labels"]
    if not labels:
        return None
    share = positives / labels
    if labels == stratum["population"]:
        text = f"{100 * share:.3g}\u00a0%, all labelled"
        return Row(label="", text=text, low=_place(share), value=_place(share), high=_place(share))
    low, high = mid_p(positives, labels)
    places = words.decimals(share, low, high)
    text = f"{words.percent(share, places)} ({words.ends(low, high, places, 'both')})"
    return Row(label="", text=text, low=_place(low), value=_place(share), high=_place(high))


def range_of(stratum: Result) -> str:
    """Return the range of scores of a stratum in words.

    >>> range_of({"side": "unflagged", "lower": 0.1, "upper": None})
    'Not flagged: 0.1 and above'
    """
    side = "Flagged" if stratum["side"] == "flagged" else "Not flagged"
    lower, upper = stratum["lower"], stratum["upper"]
    if lower is None:
        words_ = "all" if upper is None else f"below {words.score(upper)}"
    elif upper is None:
        words_ = f"{words.score(lower)} and above"
    else:
        words_ = f"{words.score(lower)} to below {words.score(upper)}"
    return f"{side}: {words_}"


def trends(result: Result, earlier: tuple[Result, ...], rule: IntervalRule) -> list[Trend]:
    """Return recall and precision over audits; none without an earlier audit."""
    audits = history(result, earlier)
    if len(audits) == 1:
        return []
    return [_trend(audits, metric, rule) for metric in ("recall", "precision")]


def _trend(audits: Sequence[Result], metric: str, rule: IntervalRule) -> Trend:
    last, apart = len(audits) - 1, -(-len(audits) // _DAY_LABELS)
    points = []
    for place, audit in enumerate(audits):
        figure = of_metric(audit["figures"], metric)
        told = figure["value"] is not None
        y, low, high = (_height(figure[e]) if told else None for e in ("value", "low", "high"))
        points.append(
            Point(
                x=round(_LEFT + (_RIGHT - _LEFT) * place / last, 2),
                y=y,
                low=low,
                high=high,
                day=audit["last_day"] if (last - place) % apart == 0 else "",
                now=place == last,
                text=f"{words.name(audit['audit'])}: {_text(figure, rule)}",
            )
        )
    summary = f"{title(metric)} of {words.noun(len(audits), 'audit')}, oldest first, from "
    return Trend(
        title=title(metric),
        points=tuple(points),
        summary=f"{summary}{points[0].text}, to {points[-1].text}",
        grid=tuple((f"{share}\u00a0%", _height(share / 100)) for share in (0, 50, 100)),
    )


def _row(label: str, figure: Result, rule: IntervalRule) -> Row:
    if figure["value"] is None:
        return Row(label=label, text="not told: too little was found or labelled")
    low, value, high = (_place(figure[end]) for end in ("low", "value", "high"))
    return Row(label=label, text=_text(figure, rule), low=low, value=value, high=high)


def _text(figure: Result, rule: IntervalRule) -> str:
    if figure["value"] is None:
        return "not told"
    return f"{words.value_of(figure, rule)} ({words.ends_of(figure, rule)})"


def _place(share: float) -> float:
    return round(100 * share, 2)


def _height(share: float) -> float:
    """Return the place of a share on the y-axis, which runs downwards."""
    return round(_BOTTOM - (_BOTTOM - _TOP) * share, 2)
