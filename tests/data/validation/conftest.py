"""Landed days and scores, made to order."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from modwatch.common.columns import profiled
from modwatch.data.lake.schemas import LANDED, SCORES
from modwatch.data.validation.comments import ValidatedComments, validate_comments
from modwatch.data.validation.result import ValidationResult
from modwatch.statistics.drift.profile import Profile

DAY = date(2026, 1, 5)


@pytest.fixture(scope="session")
def day():
    return DAY


@pytest.fixture(scope="session")
def landed():
    """Good rows of a day, numbered from `start`, with the given columns instead of good ones."""

    def build(rows: int, *, dt: date = DAY, start: int = 0, **columns: list[Any]) -> pa.RecordBatch:
        numbers = range(start, start + rows)
        good: dict[str, list[Any]] = {
            "dt": [dt] * rows,
            "row": list(numbers),
            "origin": [f"day.csv:{number}" for number in numbers],
            "comment_id": [f"{dt}/{number}" for number in numbers],
            "created_at": [datetime(dt.year, dt.month, dt.day, 12, tzinfo=UTC)] * rows,
            "text": [f"comment {number}" for number in numbers],
            "language": ["en"] * rows,
        }
        filled = {name: (good | columns).get(name, [None] * rows) for name in LANDED.names}
        return pa.RecordBatch.from_pydict(filled, schema=LANDED)

    return build


@pytest.fixture(scope="session")
def validate():
    """Validate a landed day of the given batches."""

    def run(*batches: pa.RecordBatch, dt: date = DAY, **options: Any) -> ValidatedComments:
        return validate_comments(lambda **_: batches, day=dt, **options)

    return run


@pytest.fixture(scope="session")
def usual():
    """Profiles of trailing days, each of `rows` comments in English without optional columns."""

    def run(days: int, rows: int, **missing: int) -> list[Profile]:
        gaps = dict.fromkeys(profiled(), rows) | {"language": 0} | missing
        mixes = {"language": {"en": rows}, "platform": {"(none)": rows}}
        day = Profile(comments=rows, missing=gaps, categories=mixes)
        return [day] * days

    return run


@pytest.fixture(scope="session")
def passed():
    """Results of the comments of the days before DAY that passed, each of `rows` rows."""

    def run(days: int, rows: int) -> list[ValidationResult]:
        dates = [DAY - timedelta(days=back) for back in range(days, 0, -1)]
        return [
            ValidationResult(
                suite="comments", day=day, rows=rows, valid=rows, results=(), quarantined={}
            )
            for day in dates
        ]

    return run


@pytest.fixture(scope="session")
def scores():
    """Scores of the comments of the same ids."""

    def build(
        ids: list[str], prob: Any, *, dt: date = DAY, version: str = "1", role: str = "champion"
    ) -> pa.RecordBatch:
        p = np.asarray(prob, dtype=np.float32)
        rows = len(ids)
        columns = {
            "dt": [dt] * rows,
            "comment_id": ids,
            "model_version": [version] * rows,
            "role": [role] * rows,
            "prob": p,
            "uncertainty": p * (1 - p),
            "model_variance": [None] * rows,
            "mutual_information": [None] * rows,
            "cut": [False] * rows,
            "flagged": p > 0.5,
            "threshold": [0.5] * rows,
        }
        return pa.RecordBatch.from_pydict(columns, schema=SCORES)

    return build
