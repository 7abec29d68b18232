"""The published scores of a day, as arrays, and the origin of their model."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from modwatch.data.lake.delta import Key, Lake
from modwatch.statistics.collaboration.review_strategies import score_columns

#: The feature of a model's reference that names its origin, if that must be known.
ORIGIN = "origin"

#: That of the demonstration model on a day of comments that nobody invented.
DEMONSTRATION = "figures mean nothing: demonstration model"

#: Rows of `profiles` with an origin.
_ORIGINS: Mapping[str, Key] = {"feature": ORIGIN, "held_out": True}

#: Numbers (N,) from 0 of the values of an attribute.
Codes = NDArray[np.int16]

#: Values of an attribute that are distinguished.
_MOST_VALUES = 1_000


@dataclass(frozen=True, kw_only=True)
class DayScores:
    """The scores of one model of a day of N comments."""

    #: (N,) strings.
    comment_id: pa.ChunkedArray
    #: (N,) in [0, 1].
    prob: NDArray[np.float32]
    #: (N,) the automated decisions.
    flagged: NDArray[np.bool_]
    #: (N,) whether the model read only a part of the comment.
    cut: NDArray[np.bool_]
    #: (N,) further columns of the model that review scores need, as far as it has them.
    columns: Mapping[str, NDArray[np.float32]]
    #: The model's, which flags prob > threshold; None where the source brought the decisions, and
    #: 0.5 without scores.
    threshold: float | None
    #: The version that scored the day; empty without scores.
    model_version: str

    def positions(self, ids: Sequence[pa.Array]) -> NDArray[np.int64]:
        """Return where each comment of `ids`, one array after the other, stands here; −1: nowhere.

        In one call for a whole day: each makes a table of all comments here.
        """
        if not ids:
            return np.zeros(0, np.int64)
        found = pc.index_in(pa.chunked_array(list(ids)), self.comment_id.combine_chunks())
        return np.asarray(pc.fill_null(found, -1), np.int64)


def day_scores(lake: Lake, day: datetime.date, *, role: str = "champion") -> DayScores:
    """Return the published scores of `day` by the model with this role, champion or challenger."""
    further = score_columns()
    columns = ["comment_id", "prob", "flagged", "cut", *further]
    rows = lake.table("scores", day, columns=columns, role=role)
    model = ["threshold", "model_version"]
    heads = (
        batch.slice(0, 1).to_pylist()
        for batch in lake.read("scores", day, columns=model, role=role)
    )
    first = next((head[0] for head in heads if head), {"threshold": 0.5, "model_version": ""})
    return DayScores(
        comment_id=rows.column("comment_id"),
        prob=rows.column("prob").to_numpy(),
        flagged=rows.column("flagged").to_numpy(),
        cut=rows.column("cut").to_numpy(),
        columns={
            name: rows.column(name).to_numpy() for name in further if not rows[name].null_count
        },
        **first,
    )


def attribute_codes(
    lake: Lake, day: datetime.date, scores: DayScores, attribute: str, names: dict[str, int]
) -> Codes:
    """Return the code (N,) in `names` of each scored comment's value, 0 where there is none.

    New values get a code of their own, as long as codes suffice.
    """
    parts, ids = [np.zeros(0, np.int16)], list[pa.Array]()
    for batch in lake.read("comments", day, columns=["comment_id", attribute]):
        value = pc.fill_null(batch.column(attribute).cast(pa.string()), "").dictionary_encode()
        known = value.dictionary.to_pylist()
        for name in known:
            if len(names) < _MOST_VALUES:
                names.setdefault(name, len(names))
        code = np.array([names.get(name, 0) for name in known], np.int16)
        parts.append(code[value.indices.to_numpy()])
        ids.append(batch.column("comment_id"))
    place, codes = scores.positions(ids), np.concatenate(parts)
    found = np.zeros(len(scores.comment_id), np.int16)
    found[place[place >= 0]] = codes[place >= 0]
    return found


def demonstrations(lake: Lake, first: datetime.date, last: datetime.date) -> set[datetime.date]:
    """Return the days from `first` to `last` whose figures mean nothing: DEMONSTRATION."""
    columns = ["dt", "category"]
    batches = lake.read_between("profiles", first, last, columns=columns, **_ORIGINS)
    rows = (row for batch in batches for row in batch.to_pylist())
    return {row["dt"] for row in rows if row["category"] == DEMONSTRATION}


def model_origin(lake: Lake, day: datetime.date) -> str:
    """Return what the model of `day` says of its origin; empty if it says nothing."""
    found = lake.table("profiles", day, columns=["category"], **_ORIGINS).column(0).to_pylist()
    return found[0] if found else ""
