"""The timeline as a page: every figure by day with its interval, thresholds, models, incidents.

Static HTML with drawings that show their numbers when the pointer rests on them: no script, nothing
is loaded. A day's estimate is a dot with its interval, and no line joins them. Falls are incidents.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from types import MappingProxyType

import numpy as np

from modwatch.common import charts
from modwatch.common.charts import Scale
from modwatch.common.html import render_html
from modwatch.monitoring.incidents.rules import AlertRule, in_words
from modwatch.monitoring.publishing.days import Day, KeyFigure
from modwatch.monitoring.publishing.keys import COUNTED, DAY_GROUP, KEYS, threshold_rows
from modwatch.monitoring.publishing.timeline_charts import Charts
from modwatch.statistics.live.figures import ALONE, FIGURES, TOGETHER, title_of

_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 680.0, 170.0, 48.0, 22.0, 22.0

#: The right end of the x-axis; labels reach beyond it.
_RIGHT = _WIDTH - 18

#: Groups from top to bottom, the most important first.
_ORDER = (DAY_GROUP, TOGETHER, ALONE, "model", "review", "drift", "day")

#: The figures that are shown first; the others are folded.
_FIRST = (
    *("day/comments", "day/flagged_share"),
    *(figure.name for figure in FIGURES.values() if figure.of_day),
    *("review/completion", "drift/score_psi", "day/alerts"),
)

_GROUPS = {
    DAY_GROUP: "of the day, with earlier labels",
    TOGETHER: "with review, window",
    ALONE: "model alone, window",
    "model": "model alone, day",
    "review": "review",
    "drift": "drift",
    "day": "day",
}

_MOST_LABELS = 8

#: Bounds at which alerts open, and the names of their rules, by metric key.
Thresholds = Mapping[str, Sequence[tuple[float, str]]]


@dataclass(frozen=True, kw_only=True)
class Dot:
    """A day's value; the interval is None where it was counted."""

    x: float
    y: float
    low: float | None
    high: float | None
    text: str


@dataclass(frozen=True, kw_only=True)
class Mark:
    """What happened on a day or over days: a model, an incident, a rejected day."""

    x: float
    width: float
    text: str
    kind: str


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One metric over the days; the template uses every field."""

    title: str
    dots: Sequence[Dot]
    #: Height and text of the bounds at which alerts open, and of the ticks of the y-axis.
    bounds: Sequence[tuple[float, str]]
    ticks: Sequence[tuple[float, str]]
    #: Whether values are columns from 0, as counts are.
    counted: bool


def timeline_page(
    days: Sequence[Day],
    rules: Sequence[AlertRule],
    charts: Mapping[str, Charts] = MappingProxyType({}),
) -> str:
    """Return the timeline of `days`, which are in order and at least one, as HTML text.

    `rules` are those whose bounds are drawn; `charts` are further ones, by heading, which
    are folded.
    """
    bounds = thresholds(rules)
    axis = _Axis(first=days[0].day, count=(days[-1].day - days[0].day).days + 1)
    there = {key for day in days for key in day.figures if key in KEYS}
    rest = sorted(
        there.difference(_FIRST), key=lambda key: (_ORDER.index(key.partition("/")[0]), key)
    )
    first = [key for key in _FIRST if key in there]
    return render_html(
        "modwatch.monitoring.publishing",
        "timeline.html",
        first=days[0].day,
        last=days[-1].day,
        newest=days[-1],
        panels={
            "": [_of_key(key, days, bounds, axis) for key in first],
            "All other figures": [_of_key(key, days, bounds, axis) for key in rest],
            **{heading: _of_charts(more, days, axis) for heading, more in charts.items()},
        },
        marks=[*_model_changes(days, axis), *_bad_days(days, axis)],
        incidents=_incidents(days, axis),
        labels=axis.labels(),
        width=_WIDTH,
        height=_HEIGHT,
        left=_LEFT,
        right=_RIGHT,
        top=_TOP,
        floor=_HEIGHT - _BOTTOM,
    )


def thresholds(rules: Sequence[AlertRule]) -> Thresholds:
    """Return the bounds at which alerts of `rules` open."""
    found: dict[str, list[tuple[float, str]]] = {}
    for rule in (rule for rule in rules if rule.open.compare != "insufficient"):
        for key in threshold_rows(rule.metric, rule.feature, rule.reference):
            found.setdefault(key, []).append((rule.open.bound, in_words(rule.name)))
    return found


@dataclass(frozen=True, kw_only=True)
class _Axis:
    """The x-axis: a place a day."""

    first: date
    count: int

    @property
    def step(self) -> float:
        return (_RIGHT - _LEFT) / self.count

    def place(self, day: date) -> int:
        return (day - self.first).days

    def middle(self, place: float) -> float:
        """Return the x of the middle of a day."""
        return round(_LEFT + (place + 0.5) * self.step, 1)

    def edge(self, place: int) -> float:
        return round(_LEFT + place * self.step, 1)

    def labels(self) -> list[tuple[float, str]]:
        """Return x and text of a few days, the last one always."""
        places = charts.labelled_places(self.count, _MOST_LABELS)
        start = np.datetime64(self.first)
        return [(self.middle(place), f"{(start + place).item():%d %b}") for place in places]


def _of_key(key: str, days: Sequence[Day], thresholds: Thresholds, axis: _Axis) -> Panel:
    group, _, metric = key.partition("/")
    figures = {day.day: day.figures[key] for day in days if key in day.figures}
    title = f"{title_of(metric)} ({_GROUPS[group]})"
    return _panel(title, figures, thresholds.get(key, ()), axis, is_counted=key in COUNTED)


def _of_charts(charts: Charts, days: Sequence[Day], axis: _Axis) -> list[Panel]:
    shown = (
        (title, {day.day: figures[day.day] for day in days if day.day in figures})
        for title, figures in charts.items()
    )
    return [_panel(title, known, (), axis, is_counted=False) for title, known in shown if known]


def _panel(
    title: str,
    figures: Mapping[date, KeyFigure],
    bounds: Sequence[tuple[float, str]],
    axis: _Axis,
    *,
    is_counted: bool,
) -> Panel:
    """Return a chart of one figure; `bounds` are those of alerts."""
    scale = _scale(figures.values(), [bound for bound, _ in bounds], is_counted=is_counted)
    return Panel(
        title=title,
        dots=[_dot(day, figure, scale, axis) for day, figure in figures.items()],
        bounds=[(scale.at(bound), f"{name}: {bound:g}") for bound, name in bounds],
        ticks=[(scale.at(value), f"{value:,.4g}") for value in scale.ticks()],
        counted=is_counted,
    )


def _scale(figures: Collection[KeyFigure], bounds: Sequence[float], *, is_counted: bool) -> Scale:
    """Return a scale that holds every value, interval and threshold; counts start at 0."""
    ends = (end for figure in figures for end in (figure.value, *(figure.interval or ())))
    held = [*ends, *bounds, *([0.0] if is_counted else [])]
    low, high = min(held), max(held)
    room = 0.06 * (high - low) or max(abs(high), 1.0) * 0.1
    return Scale(
        low=low if is_counted else low - room,
        high=high + room,
        start=_HEIGHT - _BOTTOM,
        end=_TOP,
    )


def _dot(day: date, figure: KeyFigure, scale: Scale, axis: _Axis) -> Dot:
    value, ends = figure.value, figure.interval
    text = f"{day}: {value:,.4g}"
    if ends is not None:
        text += f" ({ends[0]:.4g} to {ends[1]:.4g})"
    return Dot(
        x=axis.middle(axis.place(day)),
        y=scale.at(value),
        low=scale.at(ends[0]) if ends else None,
        high=scale.at(ends[1]) if ends else None,
        text=text,
    )


def _model_changes(days: Sequence[Day], axis: _Axis) -> Iterator[Mark]:
    scored = [day for day in days if day.model_version]
    for before, day in pairwise(scored):
        if day.model_version != before.model_version:
            text = f"model {day.model} from {day.day}"
            yield Mark(x=axis.edge(axis.place(day.day)), width=0, text=text, kind="model")


def _bad_days(days: Sequence[Day], axis: _Axis) -> Iterator[Mark]:
    for day in days:
        if day.is_bad or not day.is_measured:
            kind = "critical" if day.is_measured else "unmeasured"
            yield _day_mark(day, axis, f"{day.day}: {day.status}", kind)


def _day_mark(day: Day, axis: _Axis, text: str, kind: str) -> Mark:
    return Mark(x=axis.edge(axis.place(day.day)), width=round(axis.step, 1), text=text, kind=kind)


def _incidents(days: Sequence[Day], axis: _Axis) -> dict[str, list[Mark]]:
    """Return the days of the alerts of each rule, the latest rule first."""
    marks: dict[str, list[Mark]] = {}
    for day in reversed(days):
        shown = dict.fromkeys((alert.severity, in_words(alert.rule)) for alert in day.alerts)
        for severity, rule in shown:
            text = f"{day.day}: {severity}, {rule}"
            marks.setdefault(rule, []).append(_day_mark(day, axis, text, severity))
    return marks
