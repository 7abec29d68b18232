"""The glossary: in order, and its names exist in the code."""

import importlib
import re
import unicodedata
from pathlib import Path

GLOSSARY = (Path(__file__).parents[2] / "docs" / "glossary.md").read_text()
NAMES = sorted(set(re.findall(r"`(modwatch(?:_lab)?\.[\w.]+)`", GLOSSARY)))
ENTRIES = re.findall(r"^\*\*(.+)\*\*\n: (.+(?:\n(?!\n).+)*)", GLOSSARY, re.MULTILINE)
PLACE = re.compile(r"\[[^\]]*(`modwatch(_lab)?\.|Gordon|Kivlichan|Urbinati|Wei)[^\]]*\]$")


def exists(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        return hasattr(importlib.import_module(module), attribute)
    return True


def test_its_names_exist(services):
    assert len(NAMES) > 50
    assert [name for name in NAMES if not exists(name)] == []


def test_entries_are_in_order_and_unique():
    terms = [unicodedata.normalize("NFKD", term.casefold()) for term, _ in ENTRIES]
    assert terms == sorted(set(terms))
    assert len(terms) > 50


def test_each_entry_says_where_it_lives():
    assert [term for term, text in ENTRIES if not PLACE.search(text)] == []
