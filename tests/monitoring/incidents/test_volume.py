"""Weekends in the first three weeks: no false alarm, and an alert when a platform is lost."""

import datetime
from collections.abc import Iterator
from statistics import median

import numpy as np
import pytest

from modwatch.monitoring.incidents.incidents import MetricValue, incidents
from modwatch.monitoring.incidents.metrics import with_usual_volumes
from modwatch.monitoring.incidents.rules import load_rules
from modwatch.statistics.drift.seasons import Calendar

MONDAY = datetime.date(2026, 1, 5)
VOLUME = [rule for rule in load_rules() if rule.cause == "volume"]
(LOW,) = (rule for rule in load_rules() if rule.name == "volume_low")
#: Of 0.01 alarms a run allowed, 70 runs with none have a chance of a half: a fault has more.
RUNS = 70


def day(number: int) -> datetime.date:
    return MONDAY + datetime.timedelta(days=number)


def ratios(volumes: list[int], start: int = 0) -> Iterator[MetricValue]:
    """Yield each day over the same weekdays if there are three, or over the days before."""
    for number, volume in enumerate(volumes):
        same = [volumes[place] for place in range(number - 35, number, 7) if place >= 0]
        past = same if len(same) >= 3 else volumes[max(0, number - 14) : number]
        known = len(past) >= 3 and median(past) > 0
        yield MetricValue(
            day=day(start + number),
            metric="volume_ratio",
            feature="comments",
            value=volume / median(past) if known else None,
            n=volume,
            status="ok" if known else "insufficient",
        )


def opened(volumes: list[int], start: int = 0) -> list[int]:
    """Return the positions of the days on which the rule opens an incident."""
    found = incidents(LOW, with_usual_volumes([*ratios(volumes, start)]))
    return [(incident.opened - day(start)).days for incident in found]


def drawn(rng: np.random.Generator, weekend: float, start: int, days: int = 42) -> list[int]:
    """Return volumes of 1,000 a weekday, with a log-normal spread of 15 %."""
    mean = [1000 * (weekend if (start + number) % 7 >= 5 else 1.0) for number in range(days)]
    return [int(volume) for volume in mean * np.exp(rng.normal(0, 0.15, days))]


@pytest.mark.simulation
@pytest.mark.parametrize("weekend", [0.3, 0.5, 1.0])
def test_weekends_are_no_alarm_whatever_day_it_starts(weekend):
    rng = np.random.default_rng(round(100 * weekend))
    alarms = [len(opened(drawn(rng, weekend, run % 7), run % 7)) for run in range(RUNS)]
    assert np.mean(alarms) <= 0.01


@pytest.mark.simulation
@pytest.mark.parametrize("weekend", [0.3, 1.0])
@pytest.mark.parametrize("lost", [4, 5, 12, 15, 24])
def test_a_lost_platform_is_reported_on_the_next_working_day(weekend, lost):
    """It had four fifths of the volume, and is lost on any day of the first weeks."""
    rng = np.random.default_rng([round(100 * weekend), lost])
    late = 0
    for _ in range(20):
        volumes = drawn(rng, weekend, 0, lost + 4)
        volumes[lost:] = [volume // 5 for volume in volumes[lost:]]
        alarms = [number for number in opened(volumes) if number >= lost]
        working = next(number for number in range(lost, lost + 3) if number % 7 < 5)
        late += not alarms or alarms[0] > working
    assert late <= 1


@pytest.mark.parametrize("weekend", [0.3, 1.0])
def test_an_empty_weekend_is_reported_at_once(weekend):
    rng = np.random.default_rng(2)
    for lost in (5, 6, 12, 13, 19):
        volumes = drawn(rng, weekend, 0, lost + 1)
        volumes[-1] = 0
        assert opened(volumes)[-1:] == [lost]
        volumes[-1] = 50
        assert opened(volumes)[-1:] == [lost]


def test_a_closed_friday_is_no_alarm_from_the_first_one_on():
    volumes = [300 if number % 7 in (4, 5) else 1000 for number in range(35)]
    values = [*ratios(volumes)]
    assert incidents(LOW, with_usual_volumes(values))
    fridays = Calendar(weekdays={4: 0.3, 5: 0.3})
    assert incidents(LOW, with_usual_volumes(values, calendar=fridays)) == []
    volumes[11] = 50
    (found,) = incidents(LOW, with_usual_volumes([*ratios(volumes)], calendar=fridays))
    assert found.opened == day(11)


HOLIDAYS = (day(88), day(354))
CALENDAR = Calendar(days=dict.fromkeys(HOLIDAYS, ("holiday", 0.3)))


def year(seed: int, *, holiday: float, calendar: Calendar) -> list[datetime.date]:
    """Return when incidents of the volume open in a year with weekends and two holidays."""
    rng, volumes, values = np.random.default_rng(seed), dict[datetime.date, int](), []
    for today in map(day, range(365)):
        mean = 1000 * (0.4 if today.weekday() >= 5 else 1.0)
        mean *= holiday if today == HOLIDAYS[1] else 0.3 if today == HOLIDAYS[0] else 1.0
        volumes[today] = int(mean * np.exp(rng.normal(0, 0.15)))
        known = [past for past in volumes if past < today and past not in calendar.days]
        weeks = [past for past in known[-35:] if (today - past).days in range(7, 36, 7)]
        past = [volumes[one] for one in (weeks if len(weeks) >= 3 else known[-14:])]
        if len(past) >= 3:
            ratio, n = volumes[today] / median(past), volumes[today]
            values.append(MetricValue(day=today, metric="volume_ratio", value=ratio, n=n))
    judged = with_usual_volumes(values, calendar=calendar)
    return [found.opened for rule in VOLUME for found in incidents(rule, judged)]


@pytest.mark.simulation
def test_a_year_with_two_holidays_has_no_alarm_with_a_calendar_and_a_fault_on_one_has():
    without = [year(seed, holiday=0.3, calendar=Calendar()) for seed in range(3)]
    assert all(set(HOLIDAYS) <= {*found} for found in without)
    named = [year(seed, holiday=0.3, calendar=CALENDAR) for seed in range(3)]
    assert max(map(len, named)) <= 4
    assert np.mean([len(found) for found in named]) <= 0.5
    faulty = [year(seed, holiday=0.02, calendar=CALENDAR) for seed in range(3)]
    assert all(HOLIDAYS[1] in found and HOLIDAYS[0] not in found for found in faulty)


def test_other_days_and_metrics_are_as_they_were():
    values = [*ratios([1000] * 4 + [200, 200, 200] + [1000] * 14)]
    found = with_usual_volumes(values)
    assert [value.status for value in found[:5]] == [value.status for value in values[:5]]
    psi = MetricValue(day=day(5), metric="psi", value=0.3, n=300)
    assert with_usual_volumes([psi]) == [psi]
