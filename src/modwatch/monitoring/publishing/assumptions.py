"""What the checks of a window's assumptions found, in words, with their power."""

import pandas as pd

from modwatch.statistics.dependence import KINDS
from modwatch.statistics.live.assumption_checks import LEAST_POWER, OFF, RISEN

_WHOSE = ("of a pair of people", "of a person", "that came soonest")
#: What each check would see, by its name.
_SEEN = {
    **{
        kind: f"half of the second labels {which} copied"
        for kind, which in zip(KINDS, _WHOSE, strict=True)
    },
    "misses by score": f"misses at low scores with {RISEN:.0f} times the odds",
    "false positives by score": f"false positives at high scores with {RISEN:.0f} times the odds",
    "estimates by score": f"prevalence by score {OFF:.0%} off",
    "all people": "copying by all alike",
}
#: What labels can't show.
_NOT_SEEN = pd.DataFrame([{"check": "all people", "found": 0, "power": 0.0}])


def describe_checks(table: pd.DataFrame | None) -> str:
    """Return what the checks of a day's window found; without any, an empty text.

    What would be seen in less than half of such windows counts as not checked.

    >>> row = {"check": "people", "found": 0, "p_value": 0.4, "power": 0.92}
    >>> table = pd.DataFrame([row, {**row, "check": "misses by score", "power": 0.1}])
    >>> first, second = describe_checks(table).split(". ")
    >>> first
    'Checked (chance to see it): half of the second labels of a person copied (92%): no'
    >>> second
    'Not checked: misses at low scores with 2 times the odds (10%); copying by all alike (0%).'
    """
    if table is None or table.empty:
        return ""
    seen, unseen = list[str](), list[str]()
    every = pd.concat([table, _NOT_SEEN])
    for row in every.to_dict("records"):
        power = 0.0 if pd.isna(row["power"]) else row["power"]
        text = f"{_SEEN[row['check']]} ({power:.0%})"
        if row["found"] or power >= LEAST_POWER:
            seen.append(f"{text}: {'**yes**' if row['found'] else 'no'}")
        else:
            unseen.append(text)
    parts = {"Checked (chance to see it)": seen, "Not checked": unseen}
    text = " ".join(f"{name}: {'; '.join(found)}." for name, found in parts.items() if found)
    return text + _dependent(table)


def _dependent(table: pd.DataFrame) -> str:
    """Return which confirmations of the window are not independent; if all are, an empty text."""
    found = table[(table["found"] > 0) & table["check"].isin(KINDS)]
    if found.empty:
        return ""
    kinds = ", ".join(f"{row['check']}: {row['found']}" for _, row in found.iterrows())
    return (
        f" **Confirmations are not independent** ({kinds}; p = {found['p_value'].min():.1g}): they "
        "agree with first labels more often than error rates explain; intervals may be too narrow."
    )
