"""Defective rows, as real feeds have them."""

import datetime as dt

import pyarrow as pa

from modwatch.data.sources.landing import column_batch

#: Valid right-to-left text: "hello everybody, thank you for the garden".
_RIGHT_TO_LEFT = "שלום לכולם, תודה על הגינה 🌱"


def defective_batch(day: dt.date, first: int, clean: pa.RecordBatch) -> pa.RecordBatch:
    """Return defective copies of the rows of `clean`, numbered from `first` within the day.

    The defects alternate: a duplicate row, an empty text, a timestamp on the next day, and a
    right-to-left greeting with an emoji, which is valid. All but the duplicates have new ids.
    """
    rows = clean.to_pylist()
    for number, row in enumerate(rows):
        defect = number % 4
        if defect:
            row["comment_id"], row["label"] = f"x{day:%Y%m%d}-{first + number:07d}", 0
        if defect == 1:
            row["text"] = ""
        elif defect == 2:
            row["created_at"] += dt.timedelta(days=1)
        elif defect == 3:
            row.update(text=_RIGHT_TO_LEFT, language="he", groups=[])
    names = [name for name in clean.schema.names if name not in {"dt", "row"}]
    return column_batch(day, first, {name: [row[name] for row in rows] for name in names})
