"""Volumes of earlier days, from the table `drift`."""

import datetime

from modwatch.data.lake.delta import Lake
from modwatch.statistics.drift.seasons import WEEKS, Volume, year_before


def seasonal_volumes(
    lake: Lake, first: datetime.date, last: datetime.date
) -> dict[datetime.date, Volume]:
    """Return the known volumes that the seasons of the days `first` … `last` need.

    These are the volumes of the five weeks before `first`, of the days up to `last`, and of the
    same weeks a year before.
    """
    recent = read_volumes(lake, first - datetime.timedelta(weeks=WEEKS), last)
    return recent | read_volumes(lake, min(year_before(first)), max(year_before(last)))


def read_volumes(
    lake: Lake, first: datetime.date, last: datetime.date
) -> dict[datetime.date, Volume]:
    """Return the known volumes of the days `first` … `last`, both included."""
    columns = ["dt", "metric", "value", "n"]
    return {
        row["dt"]: Volume(rows=row["n"], ratio=row["value"])
        for batch in lake.read_between("drift", first, last, columns=columns)
        for row in batch.to_pylist()
        if row["metric"] == "volume_ratio"
    }
