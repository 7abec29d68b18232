"""The glossary: in order, and its names exist in the code."""

import importlib
import re
import unicodedata
from pathlib import Path

import pytest

GLOSSARY = (Path(__file__).parents[2] / "docs" / "glossary.md").read_text()
NAMES = sorted(set(re.findall(r"`(modwatch\.[\w.]+)`", GLOSSARY)))
ENTRIES = re.findall(r"^\*\*(.+)\*\*\n: (.+(?:\n(?!\n).+)*)", GLOSSARY, re.MULTILINE)


@pytest.mark.parametrize("name", NAMES)
def test_name_exists(name: str) -> None:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), f"{name}: mend the glossary"


def test_entries_are_in_order_and_unique() -> None:
    terms = [unicodedata.normalize("NFKD", term.casefold()) for term, _ in ENTRIES]
    assert terms == sorted(set(terms))
    assert len(terms) > 50


@pytest.mark.parametrize(("term", "text"), ENTRIES)
def test_entry_says_where_it_lives(term: str, text: str) -> None:
    assert re.search(r"\[[^\]]*(`modwatch\.|Gordon|Kivlichan|Urbinati|Wei)[^\]]*\]$", text), term
