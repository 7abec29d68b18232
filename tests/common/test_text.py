"""Invisible characters."""

import re
import unicodedata

import pytest

from modwatch.common.text import BIDI_CONTROLS, CONTROLS, INVISIBLE, is_invisible


@pytest.mark.parametrize("character", ["a", "é", "ü", "日", "👩", "-", "\xa0"])
def test_what_is_drawn_is_visible(character: str) -> None:
    assert not is_invisible(character)


@pytest.mark.parametrize(
    "character",
    ["\x00", "\x7f", "\xad", "\u200b", "\u202e", "\u2028", "\u3164", "\ufe0f", "\ud800"],
)
def test_what_is_not_drawn_is_invisible(character: str) -> None:
    assert is_invisible(character)


def test_the_classes_are_classes_of_regular_expressions() -> None:
    bidi = re.compile(f"[{BIDI_CONTROLS}]")
    named = {chr(point) for point in range(0x3000) if bidi.match(chr(point))}
    assert {unicodedata.bidirectional(each) for each in named} <= {
        "L", "R", "AL", "LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI", "BN",
    }  # fmt: skip
    assert len(named) == 12
    assert not re.search(f"[{CONTROLS}{INVISIBLE}]", "a line\tand\r\nanother")
