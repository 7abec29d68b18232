"""Formatting of numbers, shares, intervals, times and external names in the report."""

from collections.abc import Mapping
from math import ceil, floor, log10
from typing import Any

import numpy as np

from modwatch.audits.evidence import moment
from modwatch.common.text import is_invisible
from modwatch.statistics.audit.share_interval import IntervalOptions

#: Estimates whose interval reaches this far to one side are shown without decimals.
WIDE = 0.05

#: With a no-break space.
_PER_CENT = "\u00a0%"

NONE = "–"


def whole(number: int | None) -> str:
    """Return a whole number with thousands separators; a dash for None.

    >>> whole(1234567), whole(None)
    ('1,234,567', '–')
    """
    return NONE if number is None else f"{number:,}"


def rough(number: float) -> str:
    """Return an estimated number of comments with two significant digits.

    >>> rough(237.4), rough(8.2), rough(0.2)
    ('240', '8', '0')
    """
    digits = 1 - floor(log10(number)) if number >= 1 else 0
    return f"{int(round(number, min(digits, 0))):,}"


def decimals(value: float, low: float, high: float) -> int:
    """Return how many decimals of a percentage the interval of a share justifies.

    0 where it reaches `WIDE` or further; 1 otherwise; more only for intervals below 1 %, so that
    small shares do not become 0.0 %.

    >>> decimals(0.63, 0.55, 0.70), decimals(0.048, 0.042, 0.061), decimals(0.002, 0.001, 0.003)
    (0, 1, 2)
    """
    if max(value - low, high - value) >= WIDE:
        return 0
    if high < 0.01:
        return 3 if high < 0.001 else 2
    return 1


def hundredths(share: float, places: int) -> str:
    """Return 100 × a share in [0, 1]; never rounds to 0 or 100.

    >>> hundredths(0.631, 1), hundredths(0.9996, 1), hundredths(0.0001, 1), hundredths(1.0, 0)
    ('63.1', 'over 99.9', 'under 0.1', '100')
    """
    step = 10.0**-places
    shown = f"{100 * share:.{places}f}"
    if share > 0 and float(shown) == 0:
        return f"under {step:.{places}f}"
    if share < 1 and float(shown) == 100:
        return f"over {100 - step:.{places}f}"
    return shown


def percent(share: float | None, places: int = 1) -> str:
    """Return a share as a percentage; a dash for None.

    >>> percent(0.5).replace(chr(160), " ")
    '50.0 %'
    """
    return NONE if share is None else f"{hundredths(share, places)}{_PER_CENT}"


#: Smaller rates are not told apart.
_LEAST_RATE = 1e-5


def rate(share: float) -> str:
    """Return a rate as a percentage with three significant digits.

    >>> rate(0.005).replace(chr(160), " "), rate(0.0234567).replace(chr(160), " ")
    ('0.5 %', '2.35 %')
    >>> rate(3e-7).replace(chr(160), " ")
    'under 0.001 %'
    """
    if 0 < share < _LEAST_RATE:
        return f"under {100 * _LEAST_RATE:g}{_PER_CENT}"
    return f"{100 * share:.3g}{_PER_CENT}"


def level(interval: IntervalOptions) -> str:
    """Return the name of the interval, such as `95 % confidence interval`."""
    kind = "interval" if interval.sides == "both" else "bound"
    return f"{100 * interval.level:g}{_PER_CENT} confidence {kind}"


def bound_level(interval: IntervalOptions) -> str:
    """Return the name of a bound in place of an estimate, such as `95 % confidence bound`."""
    return f"{100 * interval.level:g}{_PER_CENT} confidence bound"


def is_exact(estimate: Mapping[str, Any]) -> bool:
    """Return whether every comment has a label, and labels count as true: there is no interval."""
    return bool(estimate.get("all_labelled")) and estimate.get("low") == estimate.get("high")


def estimate_decimals(estimate: Mapping[str, Any], interval: IntervalOptions) -> int:
    """Return how many decimals an estimate justifies; its value must not be None."""
    if is_exact(estimate):
        return 1
    value, low, high = estimate["value"], estimate["low"], estimate["high"]
    if interval.sides == "lower":
        high = min(2 * value - low, 1.0)
    elif interval.sides == "upper":
        low = max(2 * value - high, 0.0)
    return decimals(value, low, high)


def ends(low: float, high: float, places: int, sides: str, unit: str = _PER_CENT) -> str:
    """Return an interval as text.

    >>> ends(0.55, 0.7, 0, "both", "").replace(chr(160), " "), ends(0.55, 1.0, 0, "lower", "")
    ('55 to 70', 'at least 55')
    """
    if sides == "lower":
        return f"at least {hundredths(low, places)}{unit}"
    if sides == "upper":
        return f"at most {hundredths(high, places)}{unit}"
    return f"{hundredths(low, places)}\u00a0to\u00a0{hundredths(high, places)}{unit}"


def value_of(estimate: Mapping[str, Any], interval: IntervalOptions) -> str:
    """Return the value of an estimate; a dash when there is none."""
    if estimate["value"] is None:
        return NONE
    return percent(estimate["value"], estimate_decimals(estimate, interval))


def with_ends(estimate: Mapping[str, Any], interval: IntervalOptions) -> str:
    """Return an estimate that has a value, with its interval."""
    return f"{value_of(estimate, interval)} ({ends_of(estimate, interval)})"


def ends_of(estimate: Mapping[str, Any], interval: IntervalOptions) -> str:
    """Return the interval of an estimate, or its bound and why there is no more.

    >>> ends_of({"value": 0.17, "all_labelled": True}, IntervalOptions())
    'all labelled, no sampling error'
    """
    if estimate["value"] is None:
        bound = bound_of(estimate)
        return f"{bound}; {lacking(estimate)}" if bound else lacking(estimate)
    if is_exact(estimate):
        return "all labelled, no sampling error"
    return ends(
        estimate["low"], estimate["high"], estimate_decimals(estimate, interval), interval.sides
    )


def bound_of(estimate: Mapping[str, Any]) -> str:
    """Return the bound of a metric that has no estimate; empty without one.

    Rounded away from what it claims: a lower bound down, an upper bound up.

    >>> bound_of({"bound": "lower", "low": 0.4289}).replace(chr(160), " "), bound_of({})
    ('at least 42 %', '')
    """
    side = estimate.get("bound")
    if not side:
        return ""
    share = estimate["low" if side == "lower" else "high"]
    places = decimals(share, share, share) if min(share, 1 - share) < 2 * WIDE else 0
    step = 10.0 ** (places + 2)
    # To 9 digits first: 0.29 × 100 is 28.999….
    shown = (floor if side == "lower" else ceil)(round(share * step, 7)) / step
    return ends(shown, shown, places, side)


def if_random(estimate: Mapping[str, Any], interval: IntervalOptions) -> str:
    """Return the interval if the comments without a label were like the others; a dash without."""
    low, high = estimate.get("low_if_random"), estimate.get("high_if_random")
    if low is None or high is None:
        return NONE
    places = estimate_decimals(dict(estimate) | {"low": low, "high": high}, interval)
    return ends(low, high, places, interval.sides)


def lacking(estimate: Mapping[str, Any]) -> str:
    """Return why a metric is not estimated, and about how many labels would suffice.

    >>> lacking({"reason": "2 of 9; about 1200 labels of them would do", "labels_needed": 1200,
    ...          "labels_needed_side": "flagged"})
    '2 of 9; about 1,200 labels of flagged comments are needed'
    """
    reason = str(estimate["reason"]).partition("; about")[0] or "too few labels"
    needed = _needed(estimate)
    return f"{reason}; {needed} are needed" if needed else reason


def lacking_briefly(estimate: Mapping[str, Any]) -> str:
    """Return the same for a table cell.

    >>> lacking_briefly({"reason": "no label of 3 flagged comments"})
    'no label of 3 flagged comments'
    >>> lacking_briefly({"labels_needed": 1200, "labels_needed_side": "flagged"})
    'needs about 1,200 labels of flagged comments'
    """
    needed, bound = _needed(estimate), bound_of(estimate)
    why = f"needs {needed}" if needed else lacking(estimate)
    return f"{bound}; {why}" if bound else why


def _needed(estimate: Mapping[str, Any]) -> str:
    """Return the labels that would suffice."""
    needed = estimate.get("labels_needed")
    return f"about {needed:,} labels of {estimate['labels_needed_side']} comments" if needed else ""


def score(value: float) -> str:
    """Return a score in [0, 1] with four significant digits.

    >>> score(0.000051693), score(0.5)
    ('0.00005169', '0.5')
    """
    return np.format_float_positional(value, precision=4, fractional=False, trim="-")


def decision(threshold: float | None) -> str:
    """Return what was flagged, by a threshold or, without one, by the source.

    >>> decision(0.5)
    'flagged when the score is above 0.5'
    """
    if threshold is None:
        return "none: comments are flagged as the source decided, whatever the score"
    return f"flagged when the score is above {score(threshold)}"


def at(time: str) -> str:
    """Return a time in ISO 8601 in a readable form; AuditError for anything else.

    >>> at("2026-02-01T09:30:00+00:00")
    '2026-02-01 09:30:00 UTC'
    """
    return f"{moment(time):%Y-%m-%d %H:%M:%S} UTC"


def name(text: object) -> str:
    """Return an external name with its invisible characters replaced by their code points.

    >>> name("a" + chr(0x202E) + "b")
    'a[U+202E]b'
    """
    return "".join(f"[U+{ord(sign):04X}]" if is_invisible(sign) else sign for sign in str(text))


def heading(column: str) -> str:
    """Return the name of a column as a heading.

    >>> heading("target_group")
    'Target group'
    """
    return name(column[:1].upper() + column[1:].replace("_", " "))


def noun(number: int, singular: str, plural: str = "") -> str:
    """Return a number with its noun.

    >>> noun(1, "label"), noun(2000, "label"), noun(2, "person", "people")
    ('1 label', '2,000 labels', '2 people')
    """
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"
