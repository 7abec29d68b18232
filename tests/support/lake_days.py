"""Days of comments and scores, put into a lake without the path before them."""

import datetime

import numpy as np
import pyarrow as pa

from modwatch.data.lake.delta import Lake
from modwatch.data.lake.schemas import COMMENTS, SCORES
from modwatch.data.validation.profiles import profile_comments, profile_scores, save_profile
from modwatch.data.validation.result import InvalidRows


def batch(schema: pa.Schema, size: int, **columns: object) -> pa.RecordBatch:
    """Return rows of a table; a single value stands for a whole column."""
    whole = {k: v if isinstance(v, list | np.ndarray) else [v] * size for k, v in columns.items()}
    arrays = [pa.array(whole.get(f.name, [None] * size), f.type) for f in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def put_comments(lake: Lake, day: datetime.date, size: int, **columns: object) -> None:
    noon = datetime.datetime.combine(day, datetime.time(12), datetime.UTC)
    ids = [f"c{number}" for number in range(size)]
    row = list(range(size))
    given = {"row": row, "comment_id": ids, "created_at": noon, "text": "an invented text"}
    given |= columns
    lake.replace("comments", day, [batch(COMMENTS, size, dt=day, **given)])


def put_scores(
    lake: Lake,
    day: datetime.date,
    prob: np.ndarray,
    *,
    version: str = "3",
    role: str = "champion",
    flagged: np.ndarray | None = None,
) -> None:
    """Store scores with the threshold 0.5, or with decisions that the source brought."""
    rows = batch(
        SCORES,
        len(prob),
        dt=day,
        comment_id=[f"c{number}" for number in range(len(prob))],
        model_version=version,
        role=role,
        prob=prob,
        uncertainty=prob * (1 - prob),
        cut=False,
        flagged=prob > 0.5 if flagged is None else flagged,
        threshold=0.5 if flagged is None else None,
    )
    lake.replace("scores", day, [rows], role=role)


def put_profile(lake: Lake, day: datetime.date) -> None:
    """Keep the profile of the day's comments and scores, as data validation does."""
    comments = lake.table("comments", day)
    valid = InvalidRows(day=day, reason=np.zeros(comments.num_rows, np.int16), reasons=())
    made = profile_comments(comments.to_batches(), valid)
    scores = lake.table("scores", day, role="champion")
    prob, flagged = (scores.column(name).to_numpy() for name in ("prob", "flagged"))
    versions = scores.column("model_version").unique().to_pylist()
    save_profile(lake, day, comments=made, scores=profile_scores(prob, flagged, versions))
