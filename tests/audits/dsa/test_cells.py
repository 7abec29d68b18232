from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.audits.dsa.cells import count, rate

FAULTY_COUNTS = {
    "count-negative": ["-1", "-1.5"],
    "count-not-whole": ["1.5", "12.345"],
    "thousands-separator": ["1,234", "335,474.00", "1.234.567", "1 234", "1\u202f234\u202f567",
                            "1'234"],
    "decimal-comma": ["1,5"],
    "value-not-number": ["/", "n/a", "1e5", "+5", "12 %", "１２", "9" * 31, "1" * 10**7, "nan"],
}  # fmt: skip
FAULTY_RATES = {
    "percent-sign": ["97.27%", "95 %", "95,5%"],
    "rate-range": ["97.55", "1.0001", "-0.1"],
    "decimal-comma": ["0,95", "97,5"],
    "value-not-number": ["0.998 - 0.999", "9e-1", "high", "inf", "0." + "3" * 30],
}


def test_numbers():
    for text in ("0", "7", " 12 ", "0012", "9" * 30):
        assert (count(text).number, count(text).rule) == (int(text), "")
    for text in ("26577842.0", "0.00", "7.000"):  # still understood
        assert (count(text).number, count(text).rule) == (Decimal(text), "count-decimals")
    for text in ("0", "1", "1.00", "0.8312", ".5", " 0.5 "):
        assert (rate(text).number, rate(text).rule) == (Decimal(text.strip()), "")


@pytest.mark.parametrize(("read", "faulty"), [(count, FAULTY_COUNTS), (rate, FAULTY_RATES)])
def test_faulty_numbers(read, faulty):
    for rule, texts in faulty.items():
        for text in texts:
            assert (read(text).number, read(text).rule) == (None, rule)


@given(st.text(max_size=50))
def test_any_text_is_a_number_or_breaks_a_rule(text):
    for value in (count(text), rate(text)):
        assert value.rule or (value.number is not None and value.number >= 0)
        assert bool(value.rule) == bool(value.message)
        assert len(value.message) < 160
