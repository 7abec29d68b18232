from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.audits.dsa.cells import count, rate


@pytest.mark.parametrize("text", ["0", "7", " 12 ", "0012", "9" * 30])
def test_counts(text):
    assert count(text).number == int(text)
    assert count(text).rule == ""


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("-1", "count-negative"),
        ("-1.5", "count-negative"),
        ("1.5", "count-not-whole"),
        ("12.345", "count-not-whole"),
        ("1,234", "thousands-separator"),
        ("335,474.00", "thousands-separator"),
        ("1.234.567", "thousands-separator"),
        ("1 234", "thousands-separator"),
        ("1\u202f234\u202f567", "thousands-separator"),
        ("1'234", "thousands-separator"),
        ("1,5", "decimal-comma"),
        ("/", "value-not-number"),
        ("-", "value-not-number"),
        ("n/a", "value-not-number"),
        ("1e5", "value-not-number"),
        ("+5", "value-not-number"),
        ("12 %", "value-not-number"),
        ("１２", "value-not-number"),
        ("9" * 31, "value-not-number"),
        ("1" * 10**7, "value-not-number"),
        ("nan", "value-not-number"),
    ],
)
def test_faulty_counts(text, rule):
    assert count(text).rule == rule
    assert count(text).number is None


@pytest.mark.parametrize("text", ["26577842.0", "0.00", "7.000"])
def test_whole_counts_with_decimals_are_still_understood(text):
    assert count(text).rule == "count-decimals"
    assert count(text).number == Decimal(text)


@pytest.mark.parametrize("text", ["0", "1", "1.00", "0.8312", ".5", " 0.5 "])
def test_rates(text):
    assert rate(text).number == Decimal(text.strip())
    assert rate(text).rule == ""


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("97.27%", "percent-sign"),
        ("95 %", "percent-sign"),
        ("95,5%", "percent-sign"),
        ("97.55", "rate-range"),
        ("1.0001", "rate-range"),
        ("-0.1", "rate-range"),
        ("0,95", "decimal-comma"),
        ("97,5", "decimal-comma"),
        ("0.998 - 0.999", "value-not-number"),
        ("9e-1", "value-not-number"),
        ("high", "value-not-number"),
        ("inf", "value-not-number"),
        ("0." + "3" * 30, "value-not-number"),
    ],
)
def test_faulty_rates(text, rule):
    assert rate(text).rule == rule
    assert rate(text).number is None


@given(st.text(max_size=50))
def test_any_text_is_a_number_or_breaks_a_rule(text):
    for value in (count(text), rate(text)):
        assert value.rule or (value.number is not None and value.number >= 0)
        assert bool(value.rule) == bool(value.message)
        assert len(value.message) < 160
