"""Splits the comments of a day into shards, and scores the comments of a shard."""

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from modwatch.errors import ModelError
from modwatch.lake.schemas import SCORES, STAGED_SCORES
from modwatch.scoring.scorer import Predictions, Scorer


def shard_count(comments: int, shard_rows: int) -> int:
    """Return how many shards of about `shard_rows` comments a day has; 0 for an empty day.

    >>> shard_count(0, 100), shard_count(100, 100), shard_count(101, 100)
    (0, 1, 2)
    """
    return -(-comments // shard_rows)


def in_shard(batch: pa.RecordBatch, shard: int, shards: int) -> pa.RecordBatch:
    """Return the rows of `batch` in `shard`, which depends on the comment id only.

    >>> batch = pa.RecordBatch.from_pydict({"comment_id": ["a", "b", "c"]})
    >>> sum(in_shard(batch, k, 2).num_rows for k in range(2))
    3
    """
    ids = batch.column("comment_id").to_numpy(zero_copy_only=False)
    in_this = pd.util.hash_array(ids, categorize=False) % np.uint64(shards) == shard
    return batch.filter(pa.array(in_this))


def score_rows(
    batch: pa.RecordBatch, scorer: Scorer, *, day: datetime.date, role: str = "champion"
) -> pa.RecordBatch:
    """Return the scores of a batch with `comment_id` and `text`, as SCORES."""
    predictions = scorer.score(batch.column("text").to_pylist())
    rows = batch.num_rows
    return score_batch(
        batch,
        predictions,
        day=day,
        role=role,
        model_version=pa.array([scorer.model_version] * rows),
        flagged=predictions.prob.astype(np.float64) > scorer.threshold,
        threshold=np.full(rows, scorer.threshold),
    )


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
    rows = batch.num_rows
    columns = {
        "dt": pa.array([day] * rows, pa.date32()),
        "comment_id": batch.column("comment_id"),
        "role": pa.array([role] * rows),
        "prob": predictions.prob,
        "uncertainty": predictions.uncertainty,
        "model_variance": predictions.model_variance,
        "mutual_information": predictions.mutual_information,
        **decided,
    }
    arrays = [pa.array(columns[field.name], field.type) for field in SCORES]
    return pa.RecordBatch.from_arrays(arrays, schema=SCORES)


def staged(scores: pa.RecordBatch, shard: int) -> pa.RecordBatch:
    """Return SCORES of a shard as STAGED_SCORES."""
    number = pa.array(np.full(scores.num_rows, shard, np.int32))
    return pa.RecordBatch.from_arrays([*scores.columns, number], schema=STAGED_SCORES)


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
