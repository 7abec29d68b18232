"""Cells of a report: characters, spelling, and the numbers in them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from modwatch.common.errors import DsaReportError
from modwatch.common.text import BIDI_CONTROLS, CONTROLS, SURROGATES

#: Control characters except tab and line ends, surrogates, and bidirectional controls.
HARMFUL = re.compile(f"[{CONTROLS}{SURROGATES}{BIDI_CONTROLS}]")

#: Characters that start a formula in spreadsheets, including their full-width forms.
FORMULA_SIGNS = tuple("=+-@\t\r＝＋－＠")

_SAME = str.maketrans({"–": "-", "—": "-", "‑": "-", "’": "'", "\u00a0": " "})


def plain(text: str) -> str:
    """Return a name with normalised whitespace, dashes and apostrophes.

    >>> plain("Own–initiative ")
    'Own-initiative'
    """
    return " ".join(text.translate(_SAME).split())


def key(text: str) -> str:
    """Return the comparison key of a name, equal for spelling variants.

    >>> key("own initiative  ") == key("Own-initiative")
    True
    """
    return " ".join(plain(text).replace("-", " ").casefold().split())


def echo(text: str) -> str:
    """Return up to 40 characters of a cell, quoted, with unsafe ones replaced.

    >>> echo("<b>é</b>")
    "'?b?é?/b?'"
    """
    harmless = (sign if sign.isalnum() or sign in " .,:/%+-_[]()" else "?" for sign in text[:41])
    shown = "".join(harmless)
    return f"'{shown[:39]}…'" if len(shown) > 40 else f"'{shown}'"


def refuse_unusable(name: str, text: str) -> None:
    """Raise DsaReportError for a text of a report that is empty or has control characters."""
    if not text.strip():
        raise DsaReportError(f"{name}: must not be empty.")
    harm = HARMFUL.search(text)
    if harm:
        raise DsaReportError(
            f"{name}: character {harm.start() + 1} is a control character; remove it."
        )


#: Maximum length of a number.
MAX_DIGITS = 30

_PLAIN = re.compile(r"\d+|\d*\.\d+", re.ASCII)
_NEGATIVE = re.compile(r"-\d+(\.\d+)?", re.ASCII)
_PERCENT = re.compile(r"-?\d+([.,]\d+)? ?%", re.ASCII)
_COMMA = re.compile(r"-?\d+,\d+", re.ASCII)
_GROUPED = re.compile(
    r"\d{1,3}((,\d{3})+|(['’ \u00a0\u202f]\d{3})+|(\.\d{3}){2,})([.,]\d+)?", re.ASCII
)


@dataclass(frozen=True, kw_only=True)
class Value:
    """The number in a cell, or the rule that it breaks."""

    #: None where it is not a valid number.
    number: Decimal | None = None
    #: The broken rule and one sentence about it; empty when there is none.
    rule: str = ""
    message: str = ""


#: Patterns of invalid counts and rates, each with the broken rule and what is wrong, in order.
_BAD_COUNTS = (
    (_NEGATIVE, "count-negative", "is below 0."),
    (_GROUPED, "thousands-separator", "has a thousands separator; write digits only."),
    (_COMMA, "decimal-comma", "has a decimal comma; use a point."),
)
_BAD_RATES = (
    (_PERCENT, "percent-sign", "is a percentage; write a fraction from 0 to 1."),
    (_COMMA, "decimal-comma", "has a decimal comma; use a point."),
    (_NEGATIVE, "rate-range", "is below 0."),
)


def count(text: str) -> Value:
    """Return the count in a cell.

    >>> count("12").number, count("1,200").rule, count("12.0").rule, count("12.5").rule
    (Decimal('12'), 'thousands-separator', 'count-decimals', 'count-not-whole')
    """
    value = _parsed(text, _BAD_COUNTS)
    number = value.number
    if number is None or "." not in text:
        return value
    if number == number.to_integral_value():
        return _broken(text, "count-decimals", "is a count; omit the decimals.", number)
    return _broken(text, "count-not-whole", "is a count and must be a whole number.")


def rate(text: str) -> Value:
    """Return the share in [0, 1] in a cell.

    >>> rate("0.95").number, rate("95 %").rule, rate("97.5").rule, rate("0,95").rule
    (Decimal('0.95'), 'percent-sign', 'rate-range', 'decimal-comma')
    """
    value = _parsed(text, _BAD_RATES)
    if value.number is not None and value.number > 1:
        return _broken(text, "rate-range", "is above 1; divide it by 100 if it is a percentage.")
    return value


def _parsed(text: str, bad: Iterable[tuple[re.Pattern[str], str, str]]) -> Value:
    """Return the number in a cell, or which of the `bad` patterns it has."""
    text = text.strip()
    if len(text) <= MAX_DIGITS:
        if _PLAIN.fullmatch(text):
            return Value(number=Decimal(text))
        for pattern, rule, wrong in bad:
            if pattern.fullmatch(text):
                return _broken(text, rule, wrong)
    wrong = "is not a number; if there is none, leave the value blank and give the reason in the "
    return _broken(text, "value-not-number", f"{wrong}context.")


def _broken(text: str, rule: str, wrong: str, number: Decimal | None = None) -> Value:
    return Value(number=number, rule=rule, message=f"{echo(text.strip())} {wrong}")
