"""The check page of a day, and the list of all days: static HTML that ops can open from disk.

A page holds no script, no external asset, no comment and no id. Its Content-Security-Policy
allows one style sheet, by its hash, and nothing else.
"""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from modwatch.quality.suite import share_in_words
from modwatch.quality.verdict import Status, Verdict

#: Days shown in the strip of volumes.
STRIP_DAYS = 28

_BAR_STEP, _BAR_WIDTH, _STRIP_HEIGHT = 12, 9, 60


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One day in the strip of volumes."""

    day: date
    rows: int
    #: Left edge and height in units of the drawing, whose height is `Strip.height`.
    x: int
    height: float
    #: `today`, `rejected` or `usual`; names the colour.
    kind: str


@dataclass(frozen=True, kw_only=True)
class Strip:
    """Landed comments a day, oldest first, as a drawing without axes."""

    bars: tuple[Bar, ...]
    width: int
    height: int
    bar_width: int
    #: The same in words.
    summary: str


@dataclass(frozen=True, kw_only=True)
class DayPage:
    """What the page of one day shows; the template uses every field."""

    day: date
    #: The worse status of the suites that ran.
    status: Status
    #: Comments first, then scores if they were checked.
    verdicts: tuple[Verdict, ...]
    strip: Strip


@dataclass(frozen=True, kw_only=True)
class DayLine:
    """One day in the list of all days; the template uses every field."""

    day: date
    status: Status
    link: str
    rows: int
    #: Quarantined rows, with their share.
    quarantined: str
    #: Names of the failed day-level rules.
    failed: tuple[str, ...]
    #: Whether the scores were checked too.
    scored: bool


def render_page(verdicts: Sequence[Verdict], *, history: Iterable[Verdict] = ()) -> str:
    """The check page of one day, as HTML text, to be kept as `<day>/index.html`.

    Args:
        verdicts: the verdict on the day's comments and, once checked, on its scores.
        history: verdicts of other days; those on comments of earlier days are drawn.
    """
    ordered = tuple(sorted(verdicts, key=lambda verdict: verdict.suite))
    comments = ordered[0]
    page = DayPage(
        day=comments.day,
        status=_worst(ordered),
        verdicts=ordered,
        strip=_strip(comments, history),
    )
    return _render("day.html", page=page)


def render_index(verdicts: Iterable[Verdict]) -> str:
    """The list of all checked days, latest first, as HTML text, to be kept as `index.html`."""
    days: dict[date, list[Verdict]] = {}
    for verdict in sorted(verdicts, key=lambda v: (v.day, v.suite)):
        days.setdefault(verdict.day, []).append(verdict)
    lines = [_line(day, found) for day, found in sorted(days.items(), reverse=True)]
    return _render("index.html", lines=lines)


def _line(day: date, verdicts: Sequence[Verdict]) -> DayLine:
    comments = [v for v in verdicts if v.suite == "comments"]
    rows = sum(v.rows for v in comments)
    refused = sum(v.rows - v.accepted for v in comments)
    return DayLine(
        day=day,
        status=_worst(verdicts),
        link=f"{day}/index.html",
        rows=rows,
        quarantined=f"{refused:,} ({share_in_words(refused, rows)})",
        failed=tuple(result.name for v in verdicts for result in v.failed_of("day")),
        scored=len(comments) < len(verdicts),
    )


def _worst(verdicts: Sequence[Verdict]) -> Status:
    order: tuple[Status, ...] = ("passed", "warned", "rejected")
    return max((v.status for v in verdicts), key=order.index)


def _strip(today: Verdict, history: Iterable[Verdict]) -> Strip:
    """The volumes of the latest days up to `today`."""
    earlier = [v for v in history if v.suite == "comments" and v.day < today.day]
    days = [*sorted(earlier, key=lambda v: v.day)[-STRIP_DAYS + 1 :], today]
    most = max(1, *(v.rows for v in days), 1)
    bars = tuple(
        Bar(
            day=v.day,
            rows=v.rows,
            x=place * _BAR_STEP,
            height=round(_STRIP_HEIGHT * v.rows / most, 1),
            kind=_kind(v, today),
        )
        for place, v in enumerate(days)
    )
    return Strip(
        bars=bars,
        width=len(bars) * _BAR_STEP,
        height=_STRIP_HEIGHT,
        bar_width=_BAR_WIDTH,
        summary=_summary(today, earlier=days[:-1]),
    )


def _kind(verdict: Verdict, today: Verdict) -> str:
    if verdict is today:
        return "today"
    return "rejected" if verdict.rejected else "usual"


def _summary(today: Verdict, *, earlier: Sequence[Verdict]) -> str:
    if not earlier:
        return f"{today.rows:,} comments landed on {today.day}; no earlier day was checked."
    low, high = min(v.rows for v in earlier), max(v.rows for v in earlier)
    return (
        f"{today.rows:,} comments landed on {today.day}; from {earlier[0].day} to "
        f"{earlier[-1].day}, the fewest a day were {low:,} and the most {high:,}."
    )


def _render(template: str, **context: Any) -> str:
    environment = Environment(
        loader=PackageLoader("modwatch.quality"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    # The style sheet is our own file, and must stay as it is for its hash to match.
    style = Markup(resources.files(__package__).joinpath("templates/page.css").read_text("utf-8"))  # noqa: S704
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    page = environment.get_template(template)
    return page.render(style=style, style_hash=f"sha256-{digest}", **context)
