from datetime import date

import numpy as np
import pytest

from modwatch.monitoring.publishing.figures.trailing_days import queue_health

DAY = date(2026, 1, 5)


def test_completion_and_waiting_are_bars_and_ages_are_lines(drift_of, words):
    figure = queue_health(drift_of(DAY, 4), title="2026-01-05")
    completion, waiting, ages = figure.axes
    assert [bar.get_height() for bar in completion.patches] == [95.0] * 4
    assert [bar.get_height() for bar in waiting.patches] == [0, 2, 0, 0]
    np.testing.assert_array_equal(ages.lines[0].get_ydata(), [np.nan, 30.5, np.nan, np.nan])
    assert "4 days to 2026-01-05" in words(figure)


def test_what_is_not_known_is_said(drift_of, words):
    drift = drift_of(DAY, 4)
    text = words(queue_health(drift.assign(status="insufficient"), title=""))
    assert text.count("unknown") == 3


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("days", [1, 14, 40])
def test_any_number_of_days_can_be_drawn(drift_of, draw, days):
    assert draw(queue_health(drift_of(DAY, days), title=""))
