"""The common format of published corpora."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import pyarrow as pa

from modwatch.common.errors import SourceError

#: One item of a corpus.
ITEMS = pa.schema(
    [
        pa.field("comment_id", pa.string(), nullable=False),
        pa.field("text", pa.string()),  # null where the publishers omit the texts
        ("created_at", pa.timestamp("us", tz="UTC")),  # null where the publishers omit the times
        ("parent_text", pa.string()),
        ("label", pa.int8()),  # 1 = toxic, hateful or offensive, by the definition of the corpus
        ("score", pa.float64()),  # [0, 1]: score of another model, or share of annotators
        ("groups", pa.list_(pa.string())),  # identities mentioned
    ]
)

#: One label of one annotator in one round.
ANNOTATIONS = pa.schema(
    [
        pa.field("comment_id", pa.string(), nullable=False),
        pa.field("annotator_id", pa.string(), nullable=False),
        ("label", pa.int8()),  # null: unsure
        pa.field("round", pa.int8(), nullable=False),  # 0; 1 for a retest
        ("language", pa.string()),  # of the item as shown, where it varies
    ]
)


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """A published corpus in the common format."""

    #: Name in `corpora.LOADERS`.
    name: str
    #: Schema ITEMS, in file order.
    items: pa.Table = field(repr=False)
    #: Schema ANNOTATIONS; None where the format has none.
    annotations: pa.Table | None = field(default=None, repr=False)
    #: `annotator_id` and a text column per attribute; None where the format has none.
    annotators: pa.Table | None = field(default=None, repr=False)
    #: Number of unusable rows by reason.
    left_out: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def from_rows(
        cls,
        name: str,
        left_out: Mapping[str, int],
        items: Sequence[Mapping[str, object]],
        votes: Sequence[Mapping[str, object]] | None = None,
        annotators: pa.Table | None = None,
    ) -> "Corpus":
        """Return the corpus of some rows; a vote without a round is of round 0.

        >>> vote = {"comment_id": "c", "annotator_id": "a", "label": 1}
        >>> corpus = Corpus.from_rows("one", {}, [{"comment_id": "c"}], [vote])
        >>> corpus.annotations["round"].to_pylist()
        [0]
        """
        rounds = [{"round": 0, **vote} for vote in votes or ()]
        return cls(
            name=name,
            items=table(ITEMS, items),
            annotations=None if votes is None else table(ANNOTATIONS, rounds),
            annotators=annotators,
            left_out=dict(left_out),
        )


def long_table(corpus: Corpus) -> pd.DataFrame:
    """Return the annotations of a corpus in the order in which they were given.

    Columns: `item`, `annotator`, `label` (1 or 0) and `round`. Annotators who were unsure gave no
    label; their number is in `attrs["unsure"]`. It is what
    `modwatch.statistics.disagreement` takes:
    `Annotations.from_columns(**table[["item", "annotator", "label"]])`.

    Raises:
        SourceError: the corpus has no single annotations.
    """
    if corpus.annotations is None:
        raise SourceError(f"{corpus.name} has no annotations by single annotators")
    names = {"comment_id": "item", "annotator_id": "annotator"}
    table = corpus.annotations.to_pandas().rename(columns=names)
    table = table.sort_values("round", kind="stable", ignore_index=True)
    known = table["label"].notna()
    columns = ["item", "annotator", "label", "round"]
    rows: pd.DataFrame = table.loc[known, columns].reset_index(drop=True)
    rows["label"] = rows["label"].astype("int8")
    rows.attrs["unsure"] = int((~known).sum())
    return rows


def annotator_table(rows: Iterable[Mapping[str, Any]], attributes: Sequence[str]) -> pa.Table:
    """Return one row per annotator: `annotator_id` and the `attributes`, as text or null.

    Different values of one attribute are joined by `|`.

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
