"""The validation page of a day, and the list of all days: rendered, and published.

Both are static HTML that opens from disk. A page has no script, no external asset, no comment and
no id. Its Content-Security-Policy allows one style sheet, by its hash, and nothing else.
"""

from collections.abc import Iterable, Sequence
from datetime import date
from typing import get_args

from modwatch.common.errors import DayRejectedError
from modwatch.common.html import render_html
from modwatch.data.validation.result import CheckStore, Status, Suite, ValidationResult, percentage

#: Days shown in the strip of volumes.
STRIP_DAYS = 28

_BAR_STEP, _BAR_WIDTH, _STRIP_HEIGHT = 12, 9, 60


def publish_result(checks: CheckStore, result: ValidationResult) -> None:
    """Keep a validation result, and render the page of its day and the list of days again.

    Raises:
        DayRejectedError: validation failed; the message names the rules and the page.
    """
    checks.save(result)
    days = checks.days()
    results = [result for suite in get_args(Suite) for result in checks.history(suite, days)]
    of_day = [found for found in results if found.day == result.day]
    place = checks.save_page(result.day, render_page(of_day, history=results))
    checks.save_page(None, render_index(results))
    if result.rejected:
        raise DayRejectedError(f"{result.error} The page is {place}.")


def render_page(
    results: Sequence[ValidationResult], *, history: Iterable[ValidationResult] = ()
) -> str:
    """Return the validation page of one day as HTML text, to be kept as `<day>/index.html`.

    Args:
        results: of the day's comments and, once validated, of its scores.
        history: results of other days; the chart shows those of comments of earlier days.
    """
    ordered = sorted(results, key=lambda result: result.suite)  # comments first
    comments = ordered[0]
    earlier = [v for v in history if v.suite == "comments" and v.day < comments.day]
    days = [*sorted(earlier, key=lambda v: v.day)[-STRIP_DAYS + 1 :], comments]
    return render_html(
        "modwatch.data.validation",
        "day.html",
        day=comments.day,
        status=_worst(ordered),
        results=ordered,
        bars=_bars(comments, days),
        bar_width=_BAR_WIDTH,
        strip_width=len(days) * _BAR_STEP,
        strip_height=_STRIP_HEIGHT,
        volume=_summary(comments, earlier=days[:-1]),
    )


def render_index(results: Iterable[ValidationResult]) -> str:
    """Return the list of all validated days, latest first, as HTML text, kept as `index.html`."""
    days: dict[date, list[ValidationResult]] = {}
    for result in sorted(results, key=lambda found: (found.day, found.suite)):
        days.setdefault(result.day, []).append(result)
    lines = [_line(day, of_day) for day, of_day in sorted(days.items(), reverse=True)]
    return render_html("modwatch.data.validation", "index.html", lines=lines)


def _line(
    day: date, results: Sequence[ValidationResult]
) -> tuple[date, Status, int, str, list[str], bool]:
    """Return day, status, rows, quarantined rows, failed rules of the day, and if it has scores.

    Quarantined rows come with their share.
    """
    comments = [result for result in results if result.suite == "comments"]
    rows = sum(result.rows for result in comments)
    invalid = sum(result.rows - result.valid for result in comments)
    failed = [rule.name for result in results for rule in result.failed_of("day")]
    quarantined = f"{invalid:,} ({percentage(invalid, rows)})"
    return day, _worst(results), rows, quarantined, failed, len(comments) < len(results)


def _worst(results: Sequence[ValidationResult]) -> Status:
    order: tuple[Status, ...] = ("passed", "warned", "rejected")
    return max((result.status for result in results), key=order.index)


def _bars(
    today: ValidationResult, days: Sequence[ValidationResult]
) -> list[tuple[date, int, int, float, str]]:
    """Return day, rows, left edge, height and kind of the bar of each day, oldest first.

    The kind, `today`, `rejected` or `usual`, names the colour.
    """
    most = max(1, *(v.rows for v in days), 1)
    return [
        (v.day, v.rows, place * _BAR_STEP, round(_STRIP_HEIGHT * v.rows / most, 1), _kind(v, today))
        for place, v in enumerate(days)
    ]


def _kind(result: ValidationResult, today: ValidationResult) -> str:
    if result is today:
        return "today"
    return "rejected" if result.rejected else "usual"


def _summary(today: ValidationResult, *, earlier: Sequence[ValidationResult]) -> str:
    if not earlier:
        return f"{today.rows:,} rows landed on {today.day}. No earlier day has been validated."
    low, high = min(v.rows for v in earlier), max(v.rows for v in earlier)
    return (
        f"{today.rows:,} rows landed on {today.day}. From {earlier[0].day} to {earlier[-1].day}, "
        f"the minimum was {low:,} and the maximum {high:,}."
    )
