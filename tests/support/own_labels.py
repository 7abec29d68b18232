"""Rows of estimates that the labels of a day give by themselves."""

from collections.abc import Mapping
from typing import Any


def own(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row with its value and interval as those by the design alone, too."""
    names = {"value": "sampled", "low": "sampled_low", "high": "sampled_high"}
    return {**row, **{alone: row[name] for name, alone in names.items()}}
