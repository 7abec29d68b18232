"""CivilComments in two formats.

Borkan et al. (2019), Nuanced Metrics for Measuring Unintended Bias.

- Jigsaw's table, `train.csv` (column `target`) or `all_data.csv` (`toxicity`): the share of
  annotators who labelled the comment toxic, and for each identity the share who saw a mention;
- in order of time, with every single rating (github.com/ipavlopoulos/dfu): a Parquet file with the
  columns `created_at`, `text`, `scores` (−2 very toxic, −1 toxic, 0 unsure, 1 not toxic) and
  `country` (the code of each rater's country, for some comments).
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from modwatch.common.errors import SourceError
from modwatch.data.sources.readers import column_names
from modwatch_lab.corpora import reading
from modwatch_lab.corpora.corpus import ANNOTATIONS, ITEMS, Corpus

#: Minimum share of annotators for a toxic label or the mention of an identity.
THRESHOLD = 0.5

#: The 24 identity columns of the release.
IDENTITIES = (
    "asian", "atheist", "bisexual", "black", "buddhist", "christian", "female", "heterosexual",
    "hindu", "homosexual_gay_or_lesbian", "intellectual_or_learning_disability", "jewish", "latino",
    "male", "muslim", "other_disability", "other_gender", "other_race_or_ethnicity",
    "other_religion", "other_sexual_orientation", "physical_disability",
    "psychiatric_or_mental_illness", "transgender", "white",
)  # fmt: skip

_COLUMNS = ("created_at", "text", "scores", "country")
_RATINGS = (-2, -1, 0, 1)


def load(path: Path, left_out: Counter[str]) -> Corpus:
    """Return the comments of a file, or of the `train.csv` or `all_data.csv` of a folder.

    `score` is the share of annotators. `groups` is null where identities were not annotated, and
    empty where none reached the threshold.
    """
    path = reading.find(path, "train.csv*", "all_data.csv*")
    names = column_names(path)
    target = next((name for name in ("target", "toxicity") if name in names), None)
    if target is None:
        raise SourceError(
            f"{path} has neither a column target nor toxicity; use Jigsaw's train.csv or "
            "all_data.csv (for the spans release use civil_comments_spans)."
        )
    items = [
        _item(row, target, path)
        for row in reading.rows(path, ("id", "comment_text", target), left_out)
    ]
    return Corpus.from_rows("civil_comments", left_out, items)


def _item(row: dict[str, str], target: str, path: Path) -> dict[str, object]:
    share = reading.number(row[target], path)
    shares = {name: reading.number(row.get(name, ""), path) for name in IDENTITIES}
    annotated = {name: value for name, value in shares.items() if value is not None}
    groups = [name for name, value in annotated.items() if value >= THRESHOLD]
    return {
        "comment_id": row["id"],
        "text": row["comment_text"],
        "label": None if share is None else int(share >= THRESHOLD),
        "score": share,
        "groups": groups if annotated else None,
    }


def load_ratings(path: Path, left_out: Counter[str]) -> Corpus:
    """Return the comments of a file, or of a folder with it, in order of time.

    An item's id has the number of its row in the file. Its `score` is the share of toxic ratings,
    unsure ones included in the number of ratings, and its label is 1 if that is one half or more,
    as the publishers of the corpus count. Comments without ratings are left out as `no_rating`,
    those without text or time as `malformed_record`. The file does not identify raters, so each
    rating has an annotator of its own; the label of an unsure one is null.
    """
    file = reading.find(path, "comments_with_ratings.parquet")
    rows = _rows(file)
    of, rating = _ratings(rows, file)
    toxic = np.bincount(of[rating < 0], minlength=rows.num_rows)
    given = np.bincount(of, minlength=rows.num_rows)
    readable = np.asarray(rows["text"].is_valid()) & np.asarray(rows["created_at"].is_valid())
    kept = readable & (given > 0)
    left_out["malformed_record"] += int((~readable).sum())
    left_out["no_rating"] += int((readable & ~kept).sum())
    ids = pa.array([f"cctk-{number:05d}" for number in range(1, rows.num_rows + 1)])
    items = {
        "comment_id": ids,
        "text": rows["text"],
        "created_at": rows["created_at"],
        "label": 2 * toxic >= given,
        "score": toxic / np.maximum(given, 1),
    }
    annotators = {
        "annotator_id": pa.array([f"rating-{number:06d}" for number in range(1, len(of) + 1)]),
        "country": _countries(rows, file),
    }
    votes = {
        "comment_id": ids.take(pa.array(of)),
        "annotator_id": annotators["annotator_id"],
        "label": pa.array(rating < 0, mask=rating == 0),
        "round": np.zeros(len(of), np.int8),
    }
    return Corpus(
        name="civil_comments_cctk",
        items=_table(items, ITEMS).filter(pa.array(kept)).sort_by("created_at"),
        annotations=_table(votes, ANNOTATIONS).filter(pa.array(kept[of])),
        annotators=pa.table(annotators).filter(pa.array(kept[of])),
        left_out={reason: count for reason, count in left_out.items() if count},
    )


def _rows(file: Path) -> pa.Table:
    """Return the columns of the file that matter, in one chunk; SourceError for another format."""
    reading.check_columns(file, _COLUMNS, column_names(file))
    try:
        rows = pq.read_table(file, columns=list(_COLUMNS))
        types = {"created_at": pa.timestamp("us"), "text": pa.string()}
        types |= dict.fromkeys(("scores", "country"), pa.list_(pa.int64()))
        return rows.cast(pa.schema([(name, types[name]) for name in _COLUMNS])).combine_chunks()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as exc:
        raise SourceError(
            f"{file} is not readable as published ({type(exc).__name__}); download the file again."
        ) from None  # the message of pyarrow shows the value


def _ratings(rows: pa.Table, file: Path) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the row of every rating, and the rating; SourceError for one that is not published."""
    scores = rows["scores"].combine_chunks()
    rating = pc.list_flatten(scores)
    if rating.null_count or not pc.all(pc.is_in(rating, pa.array(_RATINGS))).as_py():
        raise SourceError(
            f"A rating in {file} is not -2, -1, 0 or 1; this is not the published format."
        )
    return pc.list_parent_indices(scores).to_numpy(), rating.to_numpy()


def _countries(rows: pa.Table, file: Path) -> pa.Array:
    """Return the code of the country of every rating, null where the file has none."""
    lists = zip(rows["scores"].to_pylist(), rows["country"].to_pylist(), strict=True)
    codes: list[int | None] = []
    for scores, countries in lists:
        ratings = len(scores or ())
        if countries is not None and len(countries) != ratings:
            raise SourceError(
                f"A comment in {file} has {ratings} ratings and {len(countries)} countries; this "
                "is not the published format."
            )
        codes += countries if countries is not None else [None] * ratings
    return pa.array(codes, pa.int64()).cast(pa.string())


def _table(columns: Mapping[str, Any], schema: pa.Schema) -> pa.Table:
    """Return `columns` as a table of `schema`; absent columns are null."""
    nulls = {name: pa.nulls(len(columns["comment_id"])) for name in schema.names}
    return pa.table({**nulls, **columns}).cast(schema)
