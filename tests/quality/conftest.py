"""Landed days and scores, made to order."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from modwatch.lake.schemas import LANDED, SCORES
from modwatch.quality import CheckedComments, Verdict, check_comments, profile_comments

DAY = date(2026, 1, 5)


@pytest.fixture(scope="session")
def day() -> date:
    return DAY


@pytest.fixture(scope="session")
def landed() -> Callable[..., pa.RecordBatch]:
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
def check(landed: Callable[..., pa.RecordBatch]) -> Callable[..., CheckedComments]:
    """Check a landed day of one batch."""

    def run(batch: pa.RecordBatch, *, dt: date = DAY, **options: Any) -> CheckedComments:
        return check_comments(profile_comments([batch], day=dt), **options)

    return run


@pytest.fixture(scope="session")
def usual(landed: Callable[..., pa.RecordBatch]) -> Callable[..., list[Verdict]]:
    """Verdicts that let pass the days before DAY, each with `rows` good comments."""

    def run(days: int, rows: int, **columns: Any) -> list[Verdict]:
        return [verdict(date(2026, 1, 5 - days + number), rows, columns) for number in range(days)]

    def verdict(dt: date, rows: int, columns: dict[str, Any]) -> Verdict:
        filled = {name: [value] * rows for name, value in columns.items()}
        profile = profile_comments([landed(rows, dt=dt, **filled)], day=dt)
        return Verdict(
            suite="comments",
            day=dt,
            rows=rows,
            accepted=rows,
            results=(),
            quarantined={},
            statistics=profile.statistics,
        )

    return run


@pytest.fixture(scope="session")
def scores() -> Callable[..., pa.RecordBatch]:
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
            "flagged": p > 0.5,
            "threshold": [0.5] * rows,
        }
        return pa.RecordBatch.from_pydict(columns, schema=SCORES)

    return build
