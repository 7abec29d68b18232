"""Cells of a report: characters, spelling, and the numbers in them."""

import re
from dataclasses import dataclass
from decimal import Decimal

from modwatch.text import BIDI_CONTROLS, CONTROLS, SURROGATES

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
    harmless = (each if each.isalnum() or each in " .,:/%+-_[]()" else "?" for each in text[:41])
    shown = "".join(harmless)
    return f"'{shown[:39]}…'" if len(shown) > 40 else f"'{shown}'"


#: Maximum length of a number.
MAX_DIGITS = 30

_WHOLE = re.compile(r"\d+", re.ASCII)
_DECIMAL = re.compile(r"\d+\.\d+|\.\d+", re.ASCII)
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


def count(text: str) -> Value:
    """Return the count in a cell.

    >>> count("12").number, count("1,200").rule, count("12.0").rule, count("12.5").rule
    (Decimal('12'), 'thousands-separator', 'count-decimals', 'count-not-whole')
    """
    text = text.strip()
    if len(text) > MAX_DIGITS:
        return _not_a_number(text)
    if _WHOLE.fullmatch(text):
        return Value(number=Decimal(text))
    if _NEGATIVE.fullmatch(text):
        return Value(rule="count-negative", message=f"{echo(text)} is below 0.")
    if _GROUPED.fullmatch(text):
        message = f"{echo(text)} has a thousands separator; write digits only."
        return Value(rule="thousands-separator", message=message)
    if _COMMA.fullmatch(text):
        return _decimal_comma(text)
    if not _DECIMAL.fullmatch(text):
        return _not_a_number(text)
    number = Decimal(text)
    if number == number.to_integral_value():
        message = f"{echo(text)} is a count; omit the decimals."
        return Value(number=number, rule="count-decimals", message=message)
    return Value(
        rule="count-not-whole", message=f"{echo(text)} is a count and must be a whole number."
    )


def rate(text: str) -> Value:
    """Return the share in [0, 1] in a cell.

    >>> rate("0.95").number, rate("95 %").rule, rate("97.5").rule, rate("0,95").rule
    (Decimal('0.95'), 'percent-sign', 'rate-range', 'decimal-comma')
    """
    text = text.strip()
    if len(text) > MAX_DIGITS:
        return _not_a_number(text)
    if _PERCENT.fullmatch(text):
        message = f"{echo(text)} is a percentage; write a fraction from 0 to 1."
        return Value(rule="percent-sign", message=message)
    if _COMMA.fullmatch(text):
        return _decimal_comma(text)
    if _NEGATIVE.fullmatch(text):
        return Value(rule="rate-range", message=f"{echo(text)} is below 0.")
    if not (_WHOLE.fullmatch(text) or _DECIMAL.fullmatch(text)):
        return _not_a_number(text)
    number = Decimal(text)
    if number > 1:
        message = f"{echo(text)} is above 1; divide it by 100 if it is a percentage."
        return Value(rule="rate-range", message=message)
    return Value(number=number)


def _decimal_comma(text: str) -> Value:
    return Value(rule="decimal-comma", message=f"{echo(text)} has a decimal comma; use a point.")


def _not_a_number(text: str) -> Value:
    message = (
        f"{echo(text)} is not a number; if there is none, leave the value blank and give the "
        "reason in the context."
    )
    return Value(rule="value-not-number", message=message)
