"""Compares texts with golden ones, up to one unit of the last decimal of a number.

Processors differ in the last digits of products and sums: a figure that lies next to the middle
between two decimals is rounded up on one and down on another.
"""

import re

_NUMBER = re.compile(r"(\d+(?:\.\d+)?)")


def _numbered_hashes(text: str) -> str:
    """Return the text with its hashes numbered: they change with the last digit of a number."""
    numbers: dict[str, int] = {}
    return re.sub(
        "[0-9a-f]{64}", lambda found: f"hash {numbers.setdefault(found[0], len(numbers))}", text
    )


def assert_reads_as(text: str, golden: str, where: object) -> None:
    """Compare words and whole numbers exactly, other numbers to a unit of their last decimal."""
    words, golden_words = (_NUMBER.split(_numbered_hashes(whole)) for whole in (text, golden))
    assert words[::2] == golden_words[::2], (
        f"the text changed; if that is meant, write it to {where}"
    )
    differing = [
        (number, expected)
        for number, expected in zip(words[1::2], golden_words[1::2], strict=True)
        if number != expected and not _as_good_as(number, expected)
    ]
    assert differing == [], f"numbers changed; if that is meant, write them to {where}"


def _as_good_as(number: str, expected: str) -> bool:
    decimals = min(len(one.partition(".")[2]) for one in (number, expected))
    if not decimals:
        return False
    return round(abs(float(number) - float(expected)) * 10**decimals, 6) <= 1
