"""Changes of level: closed forms, faults and recoveries, bad input, rate of false alarms."""

import itertools
from collections.abc import Sequence
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import lfilter
from scipy.stats import beta

from modwatch.common.errors import MetricInputError
from modwatch.statistics.drift.change_points import (
    ALARM,
    MINIMUM_BEFORE,
    ChangePoint,
    Fall,
    _Series,
    follow_falls,
)
from modwatch.statistics.drift.daily_levels import Direction


def series(*parts: tuple[float, int], margin: float = 0.04):
    """Return value, low and high of days at one level after another."""
    value = np.repeat([level for level, _ in parts], [days for _, days in parts]).astype(float)
    return value, np.maximum(value - margin, 0), np.minimum(value + margin, 1)


def change_point(value, low, high, *, n=None, direction: Direction = "fall") -> ChangePoint | None:
    """Return the most likely change in `direction`, detected or not."""
    days = _Series.from_days(value, low, high, n)
    return days.change_point((0,), days.seen.size - 1, direction) if days.seen[-1] else None


def active(columns, **options) -> str:
    return "".join(".x"[fall is not None] for fall in follow_falls(*columns, **options))


def test_a_fall_has_its_day_levels_and_size():
    found = change_point(*series((0.9, 10), (0.7, 4)))
    assert found is not None
    assert (found.day, found.day_low, found.day_high) == (10, 10, 10)
    assert (found.before.value, found.after.value) == pytest.approx((0.9, 0.7))
    change, bottom, top = found.before.change_to(found.after)
    assert change == pytest.approx(-0.2)
    assert bottom < change < top < 0


def test_a_rise_is_the_fall_of_the_complement():
    value, low, high = series((0.9, 10), (0.7, 4))
    fall, rise = (
        change_point(value, low, high),
        change_point(1 - value, 1 - high, 1 - low, direction="rise"),
    )
    assert fall is not None
    assert rise is not None
    assert rise.evidence == pytest.approx(fall.evidence)
    assert rise.day == fall.day
    none = change_point(1 - value, 1 - high, 1 - low)
    assert none is not None
    assert none.evidence < 14  # a ratio of 1 a day


def test_a_gap_widens_the_interval_of_the_day_and_changes_nothing_else():
    columns = [np.insert(column, [10] * 3, np.nan) for column in series((0.9, 10), (0.7, 4))]
    found, whole = change_point(*columns), change_point(*series((0.9, 10), (0.7, 4)))
    assert isinstance(found, ChangePoint)
    assert isinstance(whole, ChangePoint)
    assert (found.day, found.day_low, found.day_high) == (13, 10, 13)
    assert ALARM < found.evidence < whole.evidence  # the days after it may be other weekdays
    assert len(follow_falls(*columns)) == 17


@pytest.mark.parametrize(
    "columns",
    [
        series(),
        series((0.9, 1)),
        series((0.9, MINIMUM_BEFORE)),
        series((1.0, 20)),
        series((0.0, 20)),
        series((0.9, 20), margin=0),
        [np.full(20, np.nan)] * 3,
    ],
    ids=["empty", "one", "too few", "ones", "zeros", "width 0", "nothing"],
)
def test_without_a_change_none_is_detected(columns):
    found = change_point(*columns)
    assert found is None or found.evidence < len(columns[0])
    assert "x" not in active(columns)


def test_values_of_1_and_intervals_of_width_0_can_fall():
    for columns in (series((1.0, 10), (0.8, 1)), series((1.0, 10), (0.8, 1), margin=0)):
        found = change_point(*columns)
        assert found is not None
        assert found.day == 10
        assert ALARM < found.evidence < np.inf
        assert found.before.value == pytest.approx(1)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (([0.9], [0.8], [0.95, 1]), "same length"),
        (([0.9], [0.92], [0.95]), "between low and high"),
        (([1.1], [0.8], [1.2]), r"value should lie in \[0, 1\]"),
        (([0.9], [-0.1], [1]), r"low should lie in \[0, 1\]"),
        (([0.9], [0.8], [np.inf]), r"high should lie in \[0, 1\]"),
        (([[0.9]], [0.8], [0.95]), "1d array"),
        (("text", [0.8], [0.95]), "numeric"),
        ((0.9, 0.8, 0.95), "1d array"),
    ],
)
def test_bad_input_is_named(columns, message):
    for function in (change_point, follow_falls):
        with pytest.raises(MetricInputError, match=message):
            function(*columns)


def test_a_fall_lasts_as_long_as_the_level_is_low():
    """Also when most days are bad ones."""
    columns = series((0.95, 10), (0.75, 200))
    assert active(columns) == "." * 10 + "x" * 200
    last = follow_falls(*columns)[-1]
    assert last is not None
    assert last.first.day == 10
    assert last.first.before.value == pytest.approx(0.95)
    assert last.change[0] == pytest.approx(-0.2)


def test_a_fall_ends_when_the_level_is_back_and_not_halfway():
    columns = series((0.95, 10), (0.65, 10), (0.85, 20), (0.95, 20), margin=0.03)
    shown = active(columns)
    assert shown.startswith("." * 10 + "x" * 30)
    assert shown.endswith("." * 10)
    falls = follow_falls(*columns)
    halfway = falls[39]
    assert halfway is not None
    assert (halfway.first.day, halfway.level_since) == (10, 20)
    assert halfway.change[0] == pytest.approx(-0.1)
    lucky = series((0.95, 10), (0.65, 10), (0.95, 1), (0.65, 5), margin=0.03)
    assert active(lucky) == "." * 10 + "x" * 16


def assert_same(found: Sequence[Fall | None], expected: Sequence[Fall | None]) -> None:
    """Falls are the same, apart from the last digits."""
    for one, other in zip(found, expected, strict=True):
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            assert (one.first.day, one.level_since) == (other.first.day, other.level_since)
            assert (one.first.day_low, one.first.day_high) == (
                other.first.day_low,
                other.first.day_high,
            )
            assert astuple(one.now) == pytest.approx(astuple(other.now))
            assert one.first.evidence == pytest.approx(other.first.evidence, rel=1e-4)


#: Shares and margins of days; None is a day without an estimate.
DAYS = st.lists(st.none() | st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=25)


def columns_of(days: Sequence[tuple[float, float] | None]) -> np.ndarray:
    """Return value, low and high, (3, n)."""
    rows = [
        (np.nan,) * 3 if day is None else (day[0], max(day[0] - day[1], 0), min(sum(day), 1))
        for day in days
    ]
    return np.array(rows).T


@given(days=DAYS, stop=st.integers(1, 25))
def test_no_day_depends_on_later_ones(days, stop):
    columns = columns_of(days)
    assert_same(follow_falls(*columns[:, :stop]), follow_falls(*columns)[:stop])


@given(days=DAYS, before=st.integers(1, 9))
def test_days_without_an_estimate_at_the_start_only_shift_the_days(days, before):
    columns = columns_of(days)
    later = np.concatenate([np.full((3, before), np.nan), columns], axis=1)
    assert active(later) == "." * before + active(columns)


@given(share=st.floats(0, 1), margin=st.floats(0, 1), days=st.integers(1, 60))
def test_a_constant_series_never_falls(share, margin, days):
    assert "x" not in active(columns_of([(share, margin)] * days))


@given(values=st.lists(st.floats(0, 1), min_size=1, max_size=25))
def test_days_of_which_nothing_is_known_never_fall(values):
    assert "x" not in active((values, np.zeros(len(values)), np.ones(len(values))))


def test_a_season_of_weekdays_is_no_fall():
    """Nor does it hide one: the level is that of a week."""
    rng = np.random.default_rng(6)
    week = np.array([0.0, 0, 0, 0, 0, -0.1, -0.1])
    path = 0.95 + np.tile(week, 8)
    assert "x" not in active(draw(rng, path, 200))
    fallen = follow_falls(*draw(rng, path - 0.1 * (np.arange(56) >= 40), 200))
    assert fallen[39] is None
    assert fallen[44] is not None
    last = fallen[-1]
    assert last is not None
    assert last.now.low < 0.95 - 0.1 - 0.2 / 7 < last.now.high


def test_late_labels_move_the_day_and_do_not_withdraw_what_was_reported():
    value, low, high = series((0.95, 12), (0.7, 3))
    value[11], low[11], high[11] = 0.72, 0.68, 0.76
    moved = follow_falls(value, low, high)[-1]
    assert moved is not None
    assert moved.first.day == 11
    weak = series((0.95, 12), (0.9, 2))
    assert active(weak).endswith("..")
    assert active(weak, reported=12).endswith("x")
    assert active(weak, reported=3) == active(weak)


def test_a_second_step_keeps_the_day_of_a_first_that_was_certain():
    found = follow_falls(*series((0.95, 12), (0.8, 10), (0.6, 4), margin=0.03))[-1]
    assert found is not None
    assert (found.first.day, found.level_since) == (12, 22)


def test_a_further_fall_has_a_level_of_its_own():
    columns = series((0.95, 12), (0.8, 10), (0.6, 4), margin=0.03)
    falls = follow_falls(*columns)
    assert all(fall is None or fall.further_from is None for fall in falls[:22])
    last = falls[-1]
    assert last is not None
    assert (last.further_from, last.level_since) == (12, 22)
    assert (last.first.before.value, last.now.value) == pytest.approx((0.95, 0.6))
    better = follow_falls(*series((0.95, 12), (0.8, 10), (0.6, 10), (0.8, 8), margin=0.03))[-1]
    assert better is not None
    assert better.further_from is None


def test_a_day_with_few_labels_dates_less():
    columns = series((0.9, 20), (0.82, 1), (0.74, 4), margin=0.06)
    few = np.where(np.arange(25) == 20, 2, 100)
    alike, fewer = change_point(*columns), change_point(*columns, n=few)
    assert alike is not None
    assert fewer is not None
    assert fewer.day_high - fewer.day_low >= alike.day_high - alike.day_low
    for bad in ([0] * 25, [1] * 24):
        with pytest.raises(MetricInputError, match=r"^n should"):
            change_point(*columns, n=bad)


def draw(rng: np.random.Generator, accuracy: np.ndarray, labels: int = 100):
    """Return estimates of days with that accuracy."""
    right = rng.binomial(labels, accuracy)
    low, high = (beta.ppf(q, right + 0.5, labels - right + 0.5) for q in (0.025, 0.975))
    return right / labels, np.minimum(low, right / labels), np.maximum(high, right / labels)


@pytest.mark.simulation
@pytest.mark.parametrize(("share", "days"), [(0.985, 4), (0.76, 30)])
def test_the_interval_of_a_level_holds_the_truth(share, days):
    """By chance the two levels hold it in 95 %; weights from a day's own interval did in 73 %."""
    rng = np.random.default_rng(days)
    path = np.r_[np.full(days, share), np.full(6, share - 0.5)]
    found = [change_point(*draw(rng, path)) for _ in range(100)]
    held = [run.before.low <= share <= run.before.high for run in found if run and run.day == days]
    mean = np.mean([run.before.value for run in found if run])
    assert len(held) > 92
    assert np.mean(held) > 0.89  # 95 % less three standard errors
    assert abs(mean - share) < 0.006


@pytest.mark.simulation
@pytest.mark.parametrize("before", [3, 6])
def test_a_fall_of_twenty_points_in_the_first_week_is_seen_within_a_week(before):
    """Two low days may be a weekend: no season is known yet."""
    rng = np.random.default_rng(before)
    path = np.r_[np.full(before, 0.96), np.full(10, 0.76)]
    found = [follow_falls(*draw(rng, path)) for _ in range(50)]
    days = np.array([run[before + 6].first.day if run[before + 6] else -1 for run in found])
    last = [run[-1].first for run in found if run[-1]]
    assert (np.abs(days - before) <= 1).mean() > 0.9
    assert np.mean([item.day_low <= before <= item.day_high for item in last]) > 0.9
    assert np.mean([item.before.low <= 0.96 <= item.before.high for item in last]) > 0.83
    assert abs(np.mean([item.after.value for item in last]) - 0.76) < 0.01


@pytest.mark.simulation
@pytest.mark.parametrize(("weekend", "spread", "correlation"), [(0.08, 0, 0), (0, 0.02, 0.5)])
def test_false_alarms_are_rare_with_seasons_and_wandering(weekend, spread, correlation):
    """Two levels, 60 quarters: at most one alarm in four quarters, up to chance."""
    rng = np.random.default_rng(9)
    alarms = 0
    for _, level in itertools.product(range(30), (0.9, 0.965)):
        shocks = rng.normal(0, spread * np.sqrt(1 - correlation**2), 120)
        wander = lfilter([1], [1, -correlation], shocks)[30:]
        path = level - weekend * (np.arange(90) % 7 >= 5) + wander
        alarms += ("." + active(draw(rng, np.clip(path, 0.02, 0.995)))).count(".x")
    assert alarms / 60 <= 0.25


def test_a_fall_after_the_evidence_begins_is_dated_to_its_own_day():
    """The change is on the seventh day, seen on the eighth: days too early for evidence count."""
    value = [0.966, 0.952, 0.957, 0.955, 0.972, 0.973, 0.888, 0.777]
    low = [0.931, 0.913, 0.922, 0.916, 0.941, 0.937, 0.832, 0.691]
    high = [0.978, 0.969, 0.972, 0.968, 0.973, 0.982, 0.923, 0.844]
    found = change_point(value, low, high)
    assert found is not None
    assert (found.day, found.day_low, found.day_high) == (6, 6, 7)
    assert found.before.value == pytest.approx(0.964, abs=0.002)
