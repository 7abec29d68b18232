import datetime as dt

import numpy as np
import pytest

from modwatch.ingest.community.volume import HOURLY, WEEKLY, day_size, times_of_day


def test_a_week_holds_seven_mean_days():
    assert sum(WEEKLY) == pytest.approx(7)
    assert len(HOURLY) == 24


def test_weekdays_differ_by_their_factor():
    saturdays = [
        day_size(2000, dt.date(2024, 3, 2), np.random.default_rng(seed)) for seed in range(300)
    ]
    assert np.mean(saturdays) == pytest.approx(2000 * WEEKLY[5], rel=0.005)
    assert day_size(0, dt.date(2024, 3, 2), np.random.default_rng(0)) == 0


def test_times_follow_the_hours_and_stay_inside_the_day():
    times = times_of_day((np.arange(100_000) + 0.5) / 100_000)
    assert (np.diff(times) >= 0).all()
    hours = np.bincount(times // 3_600_000_000, minlength=24)
    assert hours / 100_000 == pytest.approx(np.array(HOURLY) / sum(HOURLY), abs=1e-4)
    assert times_of_day(np.array([np.nextafter(1, 0)]))[0] < 24 * 3_600_000_000
