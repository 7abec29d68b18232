"""Daily estimates to the size of the fall in force: days, gaps, bad input, accepted levels."""

import datetime
from collections.abc import Sequence

import pytest

from modwatch.monitoring.incidents.incidents import MetricValue
from modwatch.monitoring.incidents.level_changes import level_changes

FIRST = datetime.date(2026, 3, 1)


def day(number: int) -> datetime.date:
    return FIRST + datetime.timedelta(days=number)


def daily(levels: Sequence[float | None], metric: str = "accuracy") -> list[MetricValue]:
    """Return an estimate a day; None is an insufficient one."""
    return [
        MetricValue(
            day=day(number),
            metric=metric,
            value=level,
            low=level and level - 0.03,
            high=level and min(level + 0.03, 1.0),
            n=200,
            status="insufficient" if level is None else "ok",
        )
        for number, level in enumerate(levels)
    ]


def sizes(values: Sequence[MetricValue]) -> list[float]:
    return [round(value.value or 0.0, 2) for value in values]


def test_a_fall_has_size_levels_and_day():
    values = daily([0.96] * 10 + [0.7] * 3)
    found = level_changes(values)
    assert level_changes(values[::-1]) == found  # in any order
    assert sizes(found) == [0.0] * 10 + [-0.26] * 3
    last = found[-1]
    assert (last.metric, last.n, last.status) == ("accuracy_change", 200, "ok")
    assert last.change is not None
    assert (last.change.day_low, last.change.day, last.change.day_high) == (day(10),) * 3
    assert last.change.before.value == pytest.approx(0.96)
    assert last.change.after.value == pytest.approx(0.7)
    assert last.low is not None
    assert last.high is not None
    assert last.low < -0.26 < last.high < 0


def test_other_metrics_have_no_level():
    assert level_changes(daily([0.9] * 20, metric="ece")) == []
    both = [*daily([0.9] * 2), *daily([0.9] * 2, metric="oc_accuracy")]
    assert {value.metric for value in level_changes(both)} == {
        "accuracy_change",
        "oc_accuracy_change",
    }


def test_a_month_without_days_keeps_the_fall_and_the_gap_widens_its_day():
    values = daily([0.96] * 10 + [None] * 30 + [0.7] * 3)
    without = [value for value in values if value.value is not None]
    found = level_changes(values)
    assert found == level_changes(without)  # insufficient or absent: the same
    assert [value.day for value in found] == [value.day for value in without]
    assert found[-1].change is not None
    assert (found[-1].change.day_low, found[-1].change.day) == (day(10), day(40))


def test_an_estimate_without_interval_says_nothing():
    for low, high in ((None, None), (0.9, None), (None, 0.99)):
        bare = MetricValue(day=day(10), metric="accuracy", value=0.1, low=low, high=high, n=200)
        assert level_changes([*daily([0.96] * 10), bare]) == level_changes(daily([0.96] * 10))


def test_an_interval_beyond_0_or_1_is_cut_and_one_next_to_its_value_is_widened():
    odd = [
        MetricValue(day=day(number), metric="accuracy", value=value, low=low, high=high, n=9)
        for number, (value, low, high) in enumerate([(1.0, 1.01, 1.2), (0.0, -0.3, -0.1)])
    ]
    assert sizes(level_changes(odd)) == [0.0, 0.0]


def test_an_accepted_level_is_the_reference_from_the_day_of_its_acceptance():
    values = daily([0.96] * 10 + [0.8] * 20 + [0.6] * 3)
    found = level_changes(values, accepted=[(day(15), day(10))])
    assert sizes(found) == [0.0] * 10 + [-0.16] * 5 + [0.0] * 15 + [-0.2] * 3
    assert [value.day for value in found] == [value.day for value in values]


def test_a_level_may_be_accepted_again():
    values = daily([0.96] * 10 + [0.8] * 10 + [0.6] * 10)
    found = level_changes(values, accepted=[(day(25), day(20)), (day(12), day(10))])
    assert sizes(found) == [0.0] * 10 + [-0.16] * 2 + [0.0] * 8 + [-0.2] * 5 + [0.0] * 5
