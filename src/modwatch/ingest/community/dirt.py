"""Defects as real feeds have them, so that a quarantine is never empty in a demonstration."""

import datetime as dt

import pyarrow as pa

from modwatch.ingest.landing import column_batch

#: Text that runs from right to left ("hello everybody, thank you for the garden"): odd, not wrong.
_RIGHT_TO_LEFT = "שלום לכולם, תודה על הגינה 🌱"
_WAYS = 4
_GREETING = 3


def dirty_batch(day: dt.date, first: int, clean: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows of `clean` once more, spoilt, as rows of the day from `first` on.

    In turn: a row delivered twice, an empty text, a time on the next day, and a greeting that
    runs from right to left with an emoji, which is sound. Ids are new but for the first way.
    """
    rows = clean.to_pylist()
    for number, row in enumerate(rows):
        way = number % _WAYS
        if way:
            row["comment_id"], row["label"] = _dirt_id(day, first + number), 0
        if way == 1:
            row["text"] = ""
        elif way == 2:
            row["created_at"] += dt.timedelta(days=1)
        elif way == _GREETING:
            row.update(text=_RIGHT_TO_LEFT, language="he", groups=[])
    names = [name for name in clean.schema.names if name not in {"dt", "row"}]
    return column_batch(day, first, {name: [row[name] for row in rows] for name in names})


def greeting_ids(day: dt.date, first: int, size: int) -> list[str]:
    """Return the ids of the greetings in a dirty batch of `size` rows from row `first` on."""
    return [_dirt_id(day, first + number) for number in range(_GREETING, size, _WAYS)]


def _dirt_id(day: dt.date, row: int) -> str:
    return f"x{day:%Y%m%d}-{row:07d}"
