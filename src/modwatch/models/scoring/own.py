"""Scores that the source brought with the comments: no model scores such a day."""

import datetime
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from modwatch.models.scoring.scorer import Predictions
from modwatch.models.scoring.shards import score_batch

#: Columns of `comments` that hold them.
COLUMNS = ("comment_id", "prob", "model_version", "flagged")


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

    Decisions are taken as they are, and there is no threshold. The uncertainty is p(1−p), without
    model variance and mutual information, as of a deterministic model.
    """
    prob = pc.fill_null(batch.column("prob"), float("nan")).to_numpy().astype(np.float32)
    return score_batch(
        batch,
        Predictions.certain(prob),
        day=day,
        role="champion",
        model_version=batch.column("model_version"),
        flagged=batch.column("flagged"),
        threshold=pa.nulls(batch.num_rows, pa.float64()),
    )
