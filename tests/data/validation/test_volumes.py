"""The volumes that the season of a day needs, from the lake."""

from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from modwatch.data.lake.delta import Lake
from modwatch.data.lake.schemas import DRIFT
from modwatch.data.validation.volumes import seasonal_volumes
from modwatch.monitoring.measurements.drift import drift_rows
from modwatch.statistics.drift.day_comparison import day_metrics
from modwatch.statistics.drift.profile import Profile
from modwatch.statistics.drift.seasons import Volume

DAY = date(2026, 3, 2)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(root=str(tmp_path))


def put(lake: Lake, day: date, rows: int, usual: int = 100) -> None:
    before = [Profile(comments=usual)] * 3
    lake.replace("drift", day, [drift_rows(day, day_metrics(Profile(comments=rows), before))])


def test_five_weeks_and_the_week_a_year_before_are_read(lake: Lake) -> None:
    kept = [DAY - timedelta(days=35), DAY, date(2025, 3, 2), date(2025, 3, 3)]
    for number, day in enumerate(kept):
        put(lake, day, rows=10 * (number + 1))
    for day in (DAY - timedelta(days=36), date(2025, 3, 1), date(2025, 3, 4), date(2024, 3, 2)):
        put(lake, day, rows=99)

    expected = {day: Volume(rows=10 * (n + 1), ratio=(n + 1) / 10) for n, day in enumerate(kept)}
    assert seasonal_volumes(lake, DAY, DAY) == expected


def test_a_lake_without_drift_has_none(lake: Lake) -> None:
    assert seasonal_volumes(lake, DAY, DAY) == {}


def test_a_day_without_a_reference_has_rows_only(lake: Lake) -> None:
    lake.replace("drift", DAY, [pa.RecordBatch.from_pylist([], schema=DRIFT)])
    assert seasonal_volumes(lake, DAY, DAY) == {}
    lake.replace("drift", DAY, [drift_rows(DAY, day_metrics(Profile(comments=7), []))])
    assert seasonal_volumes(lake, DAY, DAY) == {DAY: Volume(rows=7, ratio=None)}
