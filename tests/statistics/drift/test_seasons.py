"""Seasons of the volume: the same days a year before."""

import datetime
from datetime import date, timedelta
from statistics import median

import numpy as np
import pytest

from modwatch.monitoring.incidents.incidents import MetricValue, incidents
from modwatch.monitoring.incidents.metrics import with_usual_volumes
from modwatch.monitoring.incidents.rules import load_rules
from modwatch.statistics.drift.seasons import Volume, season, year_before

CHRISTMAS = date(2025, 12, 25)
THURSDAY_BEFORE = date(2024, 12, 26)


def volume(ratio: float | None) -> Volume:
    return Volume(rows=round(1000 * (ratio or 0)), ratio=ratio)


@pytest.mark.parametrize(
    ("ratio", "then", "explained"),
    [
        (0.25, 0.25, True),
        (0.25, 0.7, True),
        (0.2, 0.7, False),
        (0.06, 0.25, False),
        (0.25, 1.4, False),  # the other direction
        (0.05, 0.05, False),  # a failure in both years
        (0.04, 0.11, True),
        (4.0, 3.0, True),
        (4.0, 1.2, False),
        (4.0, 0.3, False),
        (30.0, 15.0, False),
        (0.25, None, False),
        (0.0, 0.2, False),
        (None, 0.2, False),
        (0.5, 0.5, False),  # no difference that would need a season
    ],
)
def test_the_same_date_or_weekday_a_year_before_explains_what_is_near(ratio, then, explained):
    for day in (date(2024, 12, 25), THURSDAY_BEFORE):
        assert bool(season(CHRISTMAS, volume(ratio), {day: volume(then)})) is explained


def test_days_next_to_those_explain_nothing():
    near = {
        CHRISTMAS - timedelta(days=days): volume(0.25)
        for days in range(1, 800)
        if CHRISTMAS - timedelta(days=days) not in year_before(CHRISTMAS)
    }
    assert season(CHRISTMAS, volume(0.25), near) == ""


@pytest.mark.parametrize(
    ("day", "same_date"),
    [
        (date(2024, 2, 29), date(2023, 2, 28)),
        (date(2025, 2, 28), date(2024, 2, 28)),
        (date(2025, 3, 1), date(2024, 3, 1)),
        (date(2025, 1, 31), date(2024, 1, 31)),
    ],
)
def test_every_day_has_the_same_date_and_weekday(day, same_date):
    date_before, weekday_before = year_before(day)
    assert date_before == same_date
    assert weekday_before.weekday() == day.weekday()
    assert abs((weekday_before - date_before).days) <= 2


def ratios(volumes: dict[date, int]) -> list[MetricValue]:
    """Return each day over the same weekdays of the five weeks before."""
    found = []
    for day, rows in volumes.items():
        weeks = (day - datetime.timedelta(weeks=week) for week in range(1, 6))
        seen = [volumes[item] for item in weeks if item in volumes]
        if len(seen) >= 3:
            value = rows / median(seen)
            found.append(MetricValue(day=day, metric="volume_ratio", value=value, n=rows))
    return found


@pytest.mark.simulation
@pytest.mark.parametrize("days_lost", [(), (date(2025, 12, 27),)])
def test_in_the_second_year_holidays_are_no_alarm_and_a_lost_platform_is(days_lost):
    """Two years of days that vary by 15 %; the turn of the year has a quarter of the volume."""
    (low,) = (rule for rule in load_rules() if rule.name == "volume_low")
    message = []
    for seed in range(10):
        rng, volumes = np.random.default_rng(seed), {}
        for day in (date(2024, 2, 1) + timedelta(days=number) for number in range(705)):
            holidays = (day.month, day.day) >= (12, 24) and (day.month, day.day) <= (12, 28)
            mean = 1000 * (0.25 if holidays else 1.0) * (0.2 if day in days_lost else 1.0)
            volumes[day] = int(mean * np.exp(rng.normal(0, 0.15)))
        values = ratios(volumes)
        second = [item for item in values if item.day.year == 2025 and item.day.month == 12]
        earlier = {
            item.day: Volume(rows=item.n, ratio=item.value)
            for item in values
            if item.day.year == 2024
        }
        first = incidents(low, with_usual_volumes(values[:360]))
        assert any(incident.since.month == 12 for incident in first)
        message.append(
            {incident.since for incident in incidents(low, with_usual_volumes(second, earlier))}
        )
    exact = sum(item == set(days_lost) for item in message)
    assert exact >= 9, message
