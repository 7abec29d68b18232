import io
from datetime import date, timedelta

import numpy as np
import pytest

from modwatch.monitoring.publishing.figures.timeline import timeline_figure
from modwatch.monitoring.publishing.keys import INTERVAL_GROUP, KEYS

ROWS = {
    date(2026, 1, 31): {"model/accuracy": 0.8, "single_day/accuracy": 0.7, "day/comments": 10.0},
    date(2026, 2, 2): {
        "model/accuracy": 0.9,
        "within_95/model_accuracy_low": 0.7,
        "within_95/model_accuracy_high": 1.0,
    },
}


def titles(figure):
    return [title for axes in figure.axes if (title := axes.get_title(loc="left"))]


def drawn(figure):
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=20)
    return buffer.tell()


def test_the_window_stands_first_and_the_days_estimate_in_its_panel():
    figure = timeline_figure(ROWS)
    assert titles(figure) == ["Accuracy (model)", "Comments (day)"]
    of_the_day, of_the_window = (line.get_ydata() for line in figure.axes[0].lines)
    np.testing.assert_array_equal(of_the_day, [0.7, np.nan, np.nan])
    np.testing.assert_array_equal(of_the_window, [0.8, np.nan, 0.9])  # a missing day is a gap


def test_a_day_without_a_window_has_a_panel_of_its_own():
    assert titles(timeline_figure({date(2026, 1, 5): {"single_day/accuracy": 0.7}})) == [
        "Accuracy (single day)"
    ]


def test_every_key_is_in_some_panel():
    figure = timeline_figure({date(2026, 1, 5): dict.fromkeys(KEYS, 0.5)})
    lines = sum(len(axes.lines) for axes in figure.axes)
    assert lines == sum(not key.startswith(INTERVAL_GROUP) for key in KEYS)
    assert drawn(figure)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("days", [1, 2, 60])
def test_it_can_be_drawn(days):
    values = list(ROWS.values())
    first = date(2026, 1, 31)
    assert drawn(timeline_figure({first + timedelta(n): values[n % 2] for n in range(days)}))


def test_signed_drift_shows_where_nothing_would_be():
    rows = {date(2026, 1, 5): {"drift/score_mean_shift": -0.02}}
    low, high = timeline_figure(rows).axes[0].get_ylim()
    assert low < -0.02
    assert high == 0
