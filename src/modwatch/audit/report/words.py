"""How the report writes numbers, shares, intervals, times and names that others chose."""

from collections.abc import Mapping
from math import floor, log10
from typing import Any

import numpy as np

from modwatch.audit.evidence import moment
from modwatch.audit.intervals import IntervalRule
from modwatch.text import is_invisible

#: An estimate whose interval reaches this far to one side is told in whole per cent.
WIDE = 0.05

#: No-break, so that a number and its unit stay on one line.
_PER_CENT = "\u00a0%"

NONE = "–"


def whole(number: int | None) -> str:
    """Return a whole number with separators of thousands; a dash for None.

    >>> whole(1234567), whole(None)
    ('1,234,567', '–')
    """
    return NONE if number is None else f"{number:,}"


def rough(number: float) -> str:
    """Return a number of comments to two significant digits, which is what an estimate supports.

    >>> rough(237.4), rough(8.2), rough(0.2)
    ('240', '8', '0')
    """
    digits = 1 - floor(log10(number)) if number >= 1 else 0
    return f"{int(round(number, min(digits, 0))):,}"


def decimals(value: float, low: float, high: float) -> int:
    """Return how many decimals of a percentage the interval of a share supports.

    None where it reaches `WIDE` or further; one otherwise; more only where all of it is below 1 %,
    so that small shares do not become 0.0 %.

    >>> decimals(0.63, 0.55, 0.70), decimals(0.048, 0.042, 0.061), decimals(0.002, 0.001, 0.003)
    (0, 1, 2)
    """
    if max(value - low, high - value) >= WIDE:
        return 0
    if high < 0.01:
        return 3 if high < 0.001 else 2
    return 1


def hundredths(share: float, places: int) -> str:
    """Return 100 × a share in [0, 1]; what is not quite 0 or 100 does not become it.

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


def rate(share: float) -> str:
    """Return a rate that was chosen or measured, with three significant digits.

    >>> rate(0.005).replace(chr(160), " "), rate(0.0234567).replace(chr(160), " ")
    ('0.5 %', '2.35 %')
    """
    return f"{100 * share:.3g}{_PER_CENT}"


def level(rule: IntervalRule) -> str:
    """Return the name of the interval, such as `95 % interval`."""
    name = f"{100 * rule.level:g}{_PER_CENT}"
    return f"{name} interval" if rule.sides == "both" else f"{name} bound"


def told_decimals(figure: Mapping[str, Any], rule: IntervalRule) -> int:
    """Return how many decimals a figure of a result supports, whose value is not None."""
    value, low, high = figure["value"], figure["low"], figure["high"]
    if rule.sides == "lower":
        high = min(2 * value - low, 1.0)
    elif rule.sides == "upper":
        low = max(2 * value - high, 0.0)
    return decimals(value, low, high)


def ends(low: float, high: float, places: int, sides: str, unit: str = _PER_CENT) -> str:
    """Return an interval in words.

    >>> ends(0.55, 0.7, 0, "both", "").replace(chr(160), " "), ends(0.55, 1.0, 0, "lower", "")
    ('55 to 70', 'at least 55')
    """
    if sides == "lower":
        return f"at least {hundredths(low, places)}{unit}"
    if sides == "upper":
        return f"at most {hundredths(high, places)}{unit}"
    return f"{hundredths(low, places)}\u00a0to\u00a0{hundredths(high, places)}{unit}"


def value_of(figure: Mapping[str, Any], rule: IntervalRule) -> str:
    """Return the value of a figure of a result; a dash when there is none."""
    if figure["value"] is None:
        return NONE
    return percent(figure["value"], told_decimals(figure, rule))


def ends_of(figure: Mapping[str, Any], rule: IntervalRule) -> str:
    """Return the interval of a figure of a result, or why there is none."""
    if figure["value"] is None:
        return lacking(figure)
    return ends(figure["low"], figure["high"], told_decimals(figure, rule), rule.sides)


def lacking(figure: Mapping[str, Any]) -> str:
    """Return why a figure is not told, and how many labels would do.

    >>> lacking({"reason": "2 of 9; about 12 would do", "labels_needed": 1200})
    '2 of 9; about 1,200 such labels would do'
    """
    reason = str(figure["reason"]).partition("; about")[0] or "too few labels"
    needed = figure.get("labels_needed")
    return reason if needed is None else f"{reason}; about {needed:,} such labels would do"


def lacking_briefly(figure: Mapping[str, Any]) -> str:
    """Return why a figure is not told, as short as a cell of a table needs it.

    >>> lacking_briefly({"reason": "no label of 3 flagged comments"})
    'no label of 3 flagged comments'
    >>> lacking_briefly({"reason": "2 positives among 9 labels of flagged comments, fewer than 3",
    ...                  "labels_needed": 1200})
    'needs about 1,200 labels of flagged comments'
    """
    needed = figure.get("labels_needed")
    if not needed:
        return lacking(figure)
    side = "unflagged" if " of unflagged comments" in str(figure["reason"]) else "flagged"
    return f"needs about {needed:,} labels of {side} comments"


def score(value: float) -> str:
    """Return a score in [0, 1] with four significant digits.

    >>> score(0.000051693), score(0.5)
    ('0.00005169', '0.5')
    """
    return np.format_float_positional(value, precision=4, fractional=False, trim="-")


def at(time: str) -> str:
    """Return a time in ISO 8601 as people read it; AuditError for what is none.

    >>> at("2026-02-01T09:30:00+00:00")
    '2026-02-01 09:30:00 UTC'
    """
    return f"{moment(time):%Y-%m-%d %H:%M:%S} UTC"


def name(text: object) -> str:
    """Return a name that others chose, with what is not seen in it made visible.

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
