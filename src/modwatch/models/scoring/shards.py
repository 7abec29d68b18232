"""Splits the comments of a day into shards, and scores the comments of a shard."""

import datetime
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from modwatch.common.errors import ModelError
from modwatch.data.lake.delta import Lake
from modwatch.data.lake.schemas import RESTRICTIONS, schema_of
from modwatch.models.recipe import MOST_SUBWORDS
from modwatch.models.scoring.scorer import Predictions, Scorer
from modwatch.statistics.decisions import is_flagged

#: Columns of `comments` that scores of the source are made from …
OWN_COLUMNS = ("comment_id", "prob", "model_version", "flagged")
#: … those that a model reads, …
MODEL_COLUMNS = ("comment_id", "text")
#: … and those that decide in place of a flag, on a day of which the platform brought decisions.
DECISION_COLUMNS = ("decision", "decided_by")

#: Bytes of UTF-8 a subword, roughly.
_BYTES_PER_SUBWORD = 4

#: Most shards of a day; Airflow expands a task to 1,024 at most, by default.
_MOST_SHARDS = 1_000

#: Rows of a piece, whose scores are kept when the task is killed later.
_PIECE_ROWS = 10_000


def subwords(texts: pa.Array) -> NDArray[np.float64]:
    """Return about how many subwords a model reads of each text.

    >>> subwords(pa.array(["", "a" * 40, "a" * 90_000])).tolist()
    [2.0, 12.0, 16384.0]
    """
    length = pc.fill_null(pc.binary_length(texts), 0).to_numpy(zero_copy_only=False)
    size: NDArray[np.float64] = length.astype(np.float64)
    marks = 2  # at the beginning and end
    return np.minimum(marks + size / _BYTES_PER_SUBWORD, MOST_SUBWORDS)


def shards(batches: Iterable[pa.RecordBatch], *, shard_tokens: int) -> list[range]:
    """Return the rows of each shard: numbers of the source, in order, each in one shard.

    A shard has about `shard_tokens` subwords, or more where the day would have over a thousand
    shards.

    >>> day = [pa.RecordBatch.from_pydict({"row": range(10), "text": ["a" * 72] * 10})]
    >>> shards(day, shard_tokens=100)  # of 20 subwords each
    [range(0, 5), range(5, 10)]

    Args:
        batches: the comments of the day in any order, with `row` and `text`.
        shard_tokens: positive.
    """
    parts = [
        # Copied, so that no batch stays in memory.
        (batch.column("row").to_numpy().copy(), subwords(batch.column("text")))
        for batch in batches
        if batch.num_rows
    ]
    if not parts:
        return []
    row, size = map(np.concatenate, zip(*parts, strict=True))
    order = np.argsort(row)
    row, until = row[order], np.cumsum(size[order])
    count = min(int(np.ceil(until[-1] / shard_tokens)), _MOST_SHARDS, len(row))
    ends = np.searchsorted(until, np.arange(1, count) * until[-1] / count) + 1
    firsts = [row[0], *row[np.unique(ends[ends < len(row)])], row[-1] + 1]
    return [range(int(first), int(end)) for first, end in itertools.pairwise(firsts)]


def pieces(shard: range) -> dict[int, range]:
    """Return the rows of the pieces of a shard, by number: those that are stored stay so.

    >>> pieces(range(5, 20_005))
    {0: range(5, 10005), 1: range(10005, 20005)}
    """
    firsts = range(shard.start, shard.stop, _PIECE_ROWS)
    return {
        number: range(first, min(first + _PIECE_ROWS, shard.stop))
        for number, first in enumerate(firsts)
    }


def digests(comments: pa.RecordBatch) -> NDArray[np.int64]:
    """Return a 64-bit hash (n,) of each comment, over all columns of the batch.

    >>> day = pa.RecordBatch.from_pydict({"comment_id": ["a", "b"], "text": ["x", "x"]})
    >>> bool((digests(day) == digests(day)).all()), len(set(digests(day).tolist()))
    (True, 2)
    """
    hashed = pd.util.hash_pandas_object(comments.to_pandas(), index=False, categorize=False)
    return hashed.to_numpy().view(np.int64)


def stale_scores(scored: Iterable[pa.Array], comments: Iterable[NDArray[np.int64]]) -> int:
    """Return how many scores are of comments that have changed since, from the digests of both.

    >>> stale_scores([pa.array([7, 8]), pa.array([9, 5])], [np.array([9, 8, 6])])
    2
    """
    none = np.empty(0, np.int64)
    hashes = (chunk.to_numpy() for chunk in scored)
    of_scores, of_comments = (np.concatenate([none, *chunks]) for chunks in (hashes, comments))
    return int(np.isin(of_scores, of_comments, invert=True).sum())


def stored_pieces(scores: Iterable[pa.RecordBatch], *, model_version: str) -> dict[int, set[int]]:
    """Return the digests of the comments of each piece that a version has scored.

    >>> rows = [{"piece": 0, "model_version": "7", "digest": 12},
    ...         {"piece": 1, "model_version": "6", "digest": 34}]
    >>> stored_pieces([pa.RecordBatch.from_pylist(rows)], model_version="7")
    {0: {12}}

    Args:
        scores: of the shard, with `piece`, `model_version` and `digest`.
        model_version: that scores the day; scores of others are left out.
    """
    found = dict[int, set[int]]()
    for batch in scores:
        wanted = batch.filter(pc.equal(batch.column("model_version"), model_version))
        columns = (wanted.column(name).to_pylist() for name in ("piece", "digest"))
        for piece, digest in zip(*columns, strict=True):
            found.setdefault(piece, set()).add(digest)
    return found


def store_shard(
    lake: Lake,
    day: datetime.date,
    shard: int,
    rows: range,
    *,
    model_version: str,
    columns: Sequence[str],
    scoring: Callable[[], Callable[[pa.RecordBatch], pa.RecordBatch]],
) -> int:
    """Score the pieces of a shard that are not stored; return how many comments the shard holds.

    A piece is stored as soon as it is scored, and is kept if it has exactly the comments of this
    plan, as they are now.

    Args:
        lake: where the comments are, and the table `staged_scores`.
        day: of the comments.
        shard: number of the shard.
        rows: its comments, by their numbers in the source.
        model_version: that scores the day.
        columns: of the comments, that scores are made from.
        scoring: called once if a piece is left, returns what scores a batch of comments.
    """
    keys = ["piece", "model_version", "digest"]
    stored = stored_pieces(
        lake.read("staged_scores", day, columns=keys, shard=shard), model_version=model_version
    )

    def comments(part: range) -> pa.RecordBatch:
        return lake.read_rows("comments", day, part, columns=columns)

    left = {
        piece: part
        for piece, part in pieces(rows).items()
        if piece not in stored or stored[piece] != set(digests(comments(part)).tolist())
    }
    if left:
        score = scoring()
        for piece, part in left.items():
            batch = comments(part)
            scored = staged(score(batch), shard=shard, piece=piece, digest=digests(batch))
            lake.replace("staged_scores", day, [scored], shard=shard, piece=piece)
    return lake.count("staged_scores", day, shard=shard)


class ScoresOnce:
    """Scores equal texts of a shard once; satisfies `scoring.scorer.Scorer`.

    It keeps the texts, and the columns of each.
    """

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer
        self.columns = scorer.columns
        self._place: dict[str, int] = {}
        self._values = np.zeros((len(self.columns), 0), np.float32)

    @property
    def model_version(self) -> str:
        """That of the scorer."""
        return self._scorer.model_version

    @property
    def threshold(self) -> float:
        """That of the scorer."""
        return self._scorer.threshold

    def score(self, texts: Sequence[str]) -> Predictions:
        """Return predictions for `texts`, in their order."""
        new = list(dict.fromkeys(text for text in texts if text not in self._place))
        if new:
            found = self._scorer.score(new).values
            self._values = np.concatenate([self._values, found], axis=1)
            self._place |= {text: len(self._place) + i for i, text in enumerate(new)}
        at = [self._place[text] for text in texts]
        return Predictions(names=self.columns, values=self._values[:, at])


def score_rows(
    batch: pa.RecordBatch, scorer: Scorer, *, day: datetime.date, role: str = "champion"
) -> pa.RecordBatch:
    """Return the scores of a batch with MODEL_COLUMNS as SCORES, with `decided` decisions."""
    predictions = scorer.score(batch.column("text").to_pylist())
    rows = batch.num_rows
    flags = pa.array(is_flagged(predictions.prob, scorer.threshold))
    return score_batch(
        batch,
        predictions,
        day=day,
        role=role,
        model_version=pa.array([scorer.model_version] * rows),
        **decided(batch, flags, scorer.threshold),
    )


def decided(
    batch: pa.RecordBatch, flags: pa.Array, threshold: float | None = None
) -> dict[str, pa.Array]:
    """Return `flagged` and `threshold` of a batch of comments, from the flags (n,) of a model.

    With DECISION_COLUMNS, a decision of the platform stands in place of the flag, and there is no
    threshold: what was not restricted was kept. Not where a person decided, or where the decision
    is unknown: there, the flag is what was decided automatically.

    >>> rows = {"decision": ["removed", "kept", "removed", None], "decided_by": [None] * 4}
    >>> rows["decided_by"] = pa.array([None, "rule", "person", None])
    >>> day = pa.RecordBatch.from_pydict(rows)
    >>> decided(day, pa.array([False, True, False, True]), 0.5)["flagged"].to_pylist()
    [True, False, False, True]
    """
    if "decision" not in batch.schema.names:
        return {"flagged": flags, "threshold": pa.array([threshold] * len(flags), pa.float64())}
    by_person = pc.fill_null(pc.equal(batch.column("decided_by"), "person"), False)
    restricted = pc.is_in(batch.column("decision"), pa.array(RESTRICTIONS))
    is_flag = pc.or_(by_person, batch.column("decision").is_null())
    flagged = pc.if_else(is_flag, flags, restricted)
    return {"flagged": flagged, "threshold": pa.nulls(len(flags), pa.float64())}


def score_batch(
    batch: pa.RecordBatch,
    predictions: Predictions,
    *,
    day: datetime.date,
    role: str,
    **decided: pa.Array | NDArray[Any],
) -> pa.RecordBatch:
    """Return predictions for a batch with `comment_id` as SCORES.

    `decided` are its columns `model_version`, `flagged` and `threshold`.
    """
    rows, schema = batch.num_rows, schema_of("scores")
    columns = {
        **{name: pa.nulls(rows) for name in schema.names},
        "dt": pa.array([day] * rows, pa.date32()),
        "comment_id": batch.column("comment_id"),
        "role": pa.array([role] * rows),
        **predictions.by_name,
        **decided,
    }
    return pa.RecordBatch.from_pydict(columns, schema=schema)


def staged(
    scores: pa.RecordBatch, *, shard: int, piece: int, digest: NDArray[np.int64]
) -> pa.RecordBatch:
    """Return SCORES of a piece of a shard, of comments with these digests, as STAGED_SCORES."""
    of_piece = {"shard": [shard] * len(digest), "piece": [piece] * len(digest), "digest": digest}
    columns = dict(zip(scores.schema.names, scores.columns, strict=True)) | of_piece
    return pa.RecordBatch.from_pydict(columns, schema=schema_of("staged_scores"))


def probabilities_only(scores: pa.RecordBatch) -> pa.RecordBatch:
    """Return SCORES unchanged; raise ModelError unless every `prob` is in [0, 1].

    For scores that the validation of the day does not see.
    """
    prob = scores.column("prob").to_numpy()
    if not ((prob >= 0) & (prob <= 1)).all():
        (version,) = {*scores.column("model_version").slice(0, 1).to_pylist()}
        raise ModelError(
            f"version {version} returns values outside [0, 1]; remove its alias in MLflow"
        )
    return scores


def own_version(comments: Iterable[pa.RecordBatch]) -> str | None:
    """Return the model version of a day whose scores the source brought; None: a model scores it.

    A validated day has such scores for all comments or for none, so that the first one tells.

    Args:
        comments: rows of `comments` with `model_version`; read up to the first row.
    """
    first = next((batch for batch in comments if batch.num_rows), None)
    version = None if first is None else first.column("model_version")[0].as_py()
    return None if version is None else str(version)


def own_scores(batch: pa.RecordBatch, *, day: datetime.date) -> pa.RecordBatch:
    """Return the scores that came with a batch of comments, as SCORES.

    Flags are taken as they are, decisions as `decided` says. The uncertainty is p(1−p), without
    further columns, as of a deterministic model.
    """
    prob = pc.fill_null(batch.column("prob"), float("nan")).to_numpy().astype(np.float32)
    return score_batch(
        batch,
        Predictions.of(prob),
        day=day,
        role="champion",
        model_version=batch.column("model_version"),
        **decided(batch, batch.column("flagged")),
    )
