"""The page on transparency reports says what the code does."""

import re
from pathlib import Path

import pytest

from modwatch.audits.dsa.vocabulary import COLUMNS, LANGUAGES, QUALITATIVE_COLUMNS, REQUIRED_OF

PAGE = (Path(__file__).parents[3] / "docs" / "dsa.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("columns", [COLUMNS, QUALITATIVE_COLUMNS])
def test_columns_are_named_in_order(columns):
    assert ", ".join(columns) in PAGE, "docs/dsa.md: mend the columns"


def test_scopes_are_named():
    assert " ".join(LANGUAGES) in PAGE, "docs/dsa.md: mend the languages"
    for scope in set(REQUIRED_OF) - set(LANGUAGES):
        assert f"`{scope}`" in PAGE, f"docs/dsa.md: name {scope}"


def test_links_lead_somewhere():
    for link in re.findall(r"\]\(([^)#:]+)\)", PAGE):
        assert (Path(__file__).parents[3] / "docs" / link).exists(), f"{link}: mend docs/dsa.md"
