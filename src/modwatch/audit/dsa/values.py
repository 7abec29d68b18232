"""Values as they are written, and what is wrong with those that are not plain numbers."""

import re
from dataclasses import dataclass
from decimal import Decimal

from modwatch.audit.dsa.characters import echo

#: Longest number that is taken for one; counts of this world have some ten digits.
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
    """What a cell says."""

    #: None where it is no number that can be relied on.
    number: Decimal | None = None
    #: The rule that is broken, and one sentence on it; empty when none is.
    rule: str = ""
    message: str = ""


def count(text: str) -> Value:
    """Return the count that a cell holds.

    >>> count("12").number, count("1,200").rule, count("12.0").rule, count("12.5").rule
    (Decimal('12'), 'thousands-separator', 'count-decimals', 'count-not-whole')
    """
    text = text.strip()
    if len(text) > MAX_DIGITS:
        return _no_number(text)
    if _WHOLE.fullmatch(text):
        return Value(number=Decimal(text))
    if _NEGATIVE.fullmatch(text):
        return Value(rule="count-negative", message=f"{echo(text)} is below 0.")
    if _GROUPED.fullmatch(text):
        message = f"{echo(text)} groups its digits; write digits only."
        return Value(rule="thousands-separator", message=message)
    if _COMMA.fullmatch(text):
        return _decimal_comma(text)
    if not _DECIMAL.fullmatch(text):
        return _no_number(text)
    number = Decimal(text)
    if number == number.to_integral_value():
        message = f"{echo(text)} is a count; leave out the decimals."
        return Value(number=number, rule="count-decimals", message=message)
    return Value(rule="count-not-whole", message=f"{echo(text)} is a count and must be whole.")


def rate(text: str) -> Value:
    """Return the share in [0, 1] that a cell holds.

    >>> rate("0.95").number, rate("95 %").rule, rate("97.5").rule, rate("0,95").rule
    (Decimal('0.95'), 'percent-sign', 'rate-range', 'decimal-comma')
    """
    text = text.strip()
    if len(text) > MAX_DIGITS:
        return _no_number(text)
    if _PERCENT.fullmatch(text):
        message = f"{echo(text)} is a percentage; write a fraction from 0 to 1."
        return Value(rule="percent-sign", message=message)
    if _COMMA.fullmatch(text):
        return _decimal_comma(text)
    if _NEGATIVE.fullmatch(text):
        return Value(rule="rate-range", message=f"{echo(text)} is below 0.")
    if not (_WHOLE.fullmatch(text) or _DECIMAL.fullmatch(text)):
        return _no_number(text)
    number = Decimal(text)
    if number > 1:
        message = f"{echo(text)} is above 1; divide it by 100 if it is a percentage."
        return Value(rule="rate-range", message=message)
    return Value(number=number)


def _decimal_comma(text: str) -> Value:
    return Value(rule="decimal-comma", message=f"{echo(text)} has a comma; write a point.")


def _no_number(text: str) -> Value:
    message = (
        f"{echo(text)} is not one number; where there is none, leave it blank and say why in the "
        "context."
    )
    return Value(rule="value-not-number", message=message)
