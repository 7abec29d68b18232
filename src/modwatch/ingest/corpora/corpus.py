"""What every loader of a published corpus returns."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

#: One item of a corpus.
ITEMS = pa.schema(
    [
        pa.field("comment_id", pa.string(), nullable=False),
        pa.field("text", pa.string()),  # null where the publishers give labels without texts
        ("parent_text", pa.string()),
        ("label", pa.int8()),  # 1 = toxic, hateful or offensive, as the corpus means it
        ("score", pa.float64()),  # [0, 1]: another model's score, or the share of raters
        ("groups", pa.list_(pa.string())),  # identities mentioned
    ]
)

#: One label that one annotator gave in one round.
ANNOTATIONS = pa.schema(
    [
        pa.field("comment_id", pa.string(), nullable=False),
        pa.field("annotator_id", pa.string(), nullable=False),
        ("label", pa.int8()),  # null where the annotator was unsure
        pa.field("round", pa.int8(), nullable=False),  # 0, then 1 for a re-test
        ("language", pa.string()),  # in which the item was shown, where it varies
    ]
)


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """A published corpus in one shape, whatever its own."""

    #: Name in `corpora.LOADERS`.
    name: str
    #: Schema ITEMS, in file order.
    items: pa.Table = field(repr=False)
    #: Schema ANNOTATIONS; None where the format has none.
    annotations: pa.Table | None = field(default=None, repr=False)
    #: `annotator_id` and one text column an attribute; None where the format has none.
    annotators: pa.Table | None = field(default=None, repr=False)
    #: Rows that could not be used, by reason.
    left_out: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class LabelledTexts:
    """N texts to train on."""

    #: N texts; never shown in a representation.
    texts: tuple[str, ...] = field(repr=False)
    #: (N,) int8, 0 or 1.
    labels: NDArray[np.int8] = field(repr=False)
    #: Rows of the corpus that were left out, by reason.
    left_out: Mapping[str, int]


def annotator_table(rows: Iterable[Mapping[str, Any]], attributes: Sequence[str]) -> pa.Table:
    """Return one row an annotator: `annotator_id` and the `attributes`, as text or null.

    An annotator who gave different answers on different days has all of them, separated by `|`.

    >>> rows = [{"annotator_id": "w", "country": c} for c in ("A", "B", "A")]
    >>> annotator_table(rows, ["country"]).to_pylist()
    [{'annotator_id': 'w', 'country': 'A|B'}]
    """
    answers: dict[str, dict[str, dict[str, None]]] = {}
    for row in rows:
        known = answers.setdefault(str(row["annotator_id"]), {name: {} for name in attributes})
        for name in attributes:
            if value := (row[name] or "").strip():
                known[name][value] = None
    schema = pa.schema([(name, pa.string()) for name in ("annotator_id", *attributes)])
    merged = [
        {"annotator_id": who, **{name: "|".join(values) or None for name, values in known.items()}}
        for who, known in answers.items()
    ]
    return table(schema, merged)


def table(schema: pa.Schema, rows: Sequence[Mapping[str, object]]) -> pa.Table:
    """Return rows as a table of `schema`; absent values are null."""
    return pa.Table.from_pylist([dict(row) for row in rows], schema=schema)
