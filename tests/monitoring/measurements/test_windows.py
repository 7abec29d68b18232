"""Which days are measured together, on a real lake."""

import datetime

import pyarrow as pa
import pytest
from estimates import put_estimates

from modwatch.data.lake.delta import Lake
from modwatch.data.lake.schemas import TABLES
from modwatch.monitoring.measurements.windows import (
    Window,
    seconds_per_decision,
    windows,
)

DAYS = [datetime.date(2026, 1, 5) + datetime.timedelta(days=n) for n in range(4)]


def write(lake: Lake, table: str, day: datetime.date, rows: list[dict[str, object]]) -> None:
    schema = TABLES[table]
    blank = {
        "int": 0,
        "str": "",
        "dou": 0.0,
        "dat": day,
        "tim": datetime.datetime.now(datetime.UTC),
    }
    full = [
        {field.name: row.get(field.name, blank.get(str(field.type)[:3])) for field in schema}
        for row in rows
    ]
    lake.replace(table, day, [pa.RecordBatch.from_pylist(full, schema=schema)])


def measured(
    lake: Lake,
    day: datetime.date,
    *,
    model: str = "1",
    top: int = 4,
    rest: int = 4,
    digest: str = "d",
    seconds: float | None = None,
) -> None:
    """Write a measured day: four comments of the top and four of the slice, some labelled."""
    routed = [{"comment_id": f"{n}", "stratum": n // 4} for n in range(8)]
    labelled = [*range(top), *range(4, 4 + rest)]
    write(lake, "routing_design", day, [{"model_version": model}])
    write(lake, "routed", day, routed)
    write(lake, "labels", day, [{"comment_id": f"{n}", "seconds": seconds} for n in labelled])
    put_estimates(lake, day, {"digest": digest})


def window(lake: Lake, span: list[datetime.date] = DAYS) -> Window:
    [found] = windows(lake, [span])
    return found


def test_days_of_one_model_with_labels_are_together(lake):
    for day in DAYS:
        measured(lake, day)
    assert window(lake).days == tuple(DAYS)
    assert window(lake).last == DAYS[-1]


@pytest.mark.parametrize(("top", "rest", "ripe"), [(2, 2, True), (4, 1, False), (1, 4, False)])
def test_a_day_counts_once_half_of_either_part_is_labelled(lake, top, rest, ripe):
    measured(lake, DAYS[0], top=top, rest=rest)
    measured(lake, DAYS[3])
    assert (DAYS[0] in window(lake).days) is ripe
    write(lake, "labels", DAYS[0], [{"comment_id": f"old {n}"} for n in range(8)])
    assert DAYS[0] not in window(lake).days  # labels of what is routed no more


def test_a_last_day_without_labels_leaves_the_others(lake):
    for day in DAYS[:3]:
        measured(lake, day)
    measured(lake, DAYS[3], top=0, rest=0)
    assert window(lake).days == tuple(DAYS[:3])


def test_another_model_is_another_window(lake):
    for day, model in zip(DAYS, "1122", strict=True):
        measured(lake, day, model=model)
    assert window(lake).days == tuple(DAYS[2:])


def test_no_day_at_all_is_no_window(lake):
    assert window(lake) == Window(last=DAYS[-1], days=(), digest=None)
    measured(lake, DAYS[0])
    assert window(lake).digest is None  # the last day was not routed


def test_a_window_is_known_from_its_days_and_their_measurements(lake):
    for day in DAYS:
        measured(lake, day)
    whole, shorter = windows(lake, [DAYS, DAYS[1:]])
    assert whole.digest != shorter.digest
    assert whole == window(lake)
    measured(lake, DAYS[0], digest="another")
    assert window(lake).digest != whole.digest
    assert window(lake, DAYS[1:]).digest == shorter.digest


def test_the_median_decision_is_that_of_all_days(lake):
    for day, seconds in zip(DAYS, (1.0, 1.0, 7.0, None), strict=True):
        measured(lake, day, seconds=seconds)
    assert seconds_per_decision(lake, DAYS) == 1.0
    assert seconds_per_decision(lake, DAYS[2:]) == 7.0
    assert seconds_per_decision(lake, DAYS[3:]) is None
    assert seconds_per_decision(lake, []) is None
