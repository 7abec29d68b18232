"""Scores that came with the comments."""

import datetime

import numpy as np
import pyarrow as pa

from modwatch.data.lake.schemas import COMMENTS, SCORES
from modwatch.models.scoring.own import own_scores, own_version

DAY = datetime.date(2026, 1, 5)


def comments(*rows: dict[str, object]) -> pa.RecordBatch:
    plain = {
        "dt": DAY,
        "created_at": datetime.datetime(2026, 1, 5, tzinfo=datetime.UTC),
        "text": "words",
    }
    named = [{"comment_id": f"c{number}", **plain, **row} for number, row in enumerate(rows)]
    return pa.RecordBatch.from_pylist(named, schema=COMMENTS)


def test_scores_are_taken_as_they_are() -> None:
    batch = comments(
        {"prob": 0.9, "model_version": "v7", "flagged": False},
        {"prob": 0.25, "model_version": "v7", "flagged": True},
    )
    scores = own_scores(batch, day=DAY)
    assert scores.schema == SCORES
    assert scores.column("flagged").to_pylist() == [False, True]
    assert scores.column("prob").to_pylist() == [np.float32(0.9), 0.25]
    assert np.allclose(scores.column("uncertainty").to_numpy(), [0.09, 0.1875])
    for name in ("model_variance", "mutual_information"):
        assert scores.column(name).to_pylist() == [0, 0]
    assert scores.column("threshold").null_count == 2
    assert set(scores.column("model_version").to_pylist()) == {"v7"}
    assert set(scores.column("role").to_pylist()) == {"champion"}


def test_a_missing_probability_is_left_to_validation() -> None:
    scores = own_scores(comments({"model_version": "v7", "flagged": False}), day=DAY)
    assert np.isnan(scores.column("prob").to_numpy()).all()


def test_the_first_comment_tells_who_scored_the_day() -> None:
    empty, row = comments(), comments({"model_version": "v7"})
    assert own_version([empty, row]) == "v7"
    assert own_version([comments({})]) is None
    assert own_version([empty]) is None
    assert own_version([]) is None
