"""Splits the comments of a day into shards, and scores the comments of a shard."""

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa

from modwatch.lake.schemas import STAGED_SCORES
from modwatch.scoring.scorer import Scorer


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
    batch: pa.RecordBatch, scorer: Scorer, *, day: datetime.date, shard: int
) -> pa.RecordBatch:
    """Return the champion's scores of a batch with `comment_id` and `text`, as STAGED_SCORES."""
    predictions = scorer.score(batch.column("text").to_pylist())
    rows = batch.num_rows
    columns = {
        "dt": pa.array([day] * rows, pa.date32()),
        "comment_id": batch.column("comment_id"),
        "model_version": pa.array([scorer.model_version] * rows),
        "role": pa.array(["champion"] * rows),
        "prob": predictions.prob,
        "uncertainty": predictions.uncertainty,
        "model_variance": predictions.model_variance,
        "mutual_information": predictions.mutual_information,
        "flagged": predictions.prob.astype(np.float64) > scorer.threshold,
        "threshold": np.full(rows, scorer.threshold),
        "shard": np.full(rows, shard, np.int32),
    }
    arrays = [pa.array(columns[field.name], field.type) for field in STAGED_SCORES]
    return pa.RecordBatch.from_arrays(arrays, schema=STAGED_SCORES)
