import io
from datetime import date

import numpy as np
import pytest

from modwatch.tracking.timeline_figure import timeline_figure

ROWS = {
    date(2026, 1, 31): {"model/auroc": 0.8, "day/comments": 10.0},
    date(2026, 2, 2): {
        "model/auroc": 0.9,
        "sampling_interval/auroc_low": 0.7,
        "sampling_interval/auroc_high": 1.0,
    },
}


def test_a_panel_a_metric_and_none_for_the_ends_of_intervals():
    figure = timeline_figure(ROWS)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[:2] == ["Comments (day)", "AUROC (model)"]
    assert not any(titles[2:])


def test_a_missing_day_is_a_gap():
    days, values = timeline_figure(ROWS).axes[1].lines[0].get_data()
    assert len(days) == 3
    np.testing.assert_array_equal(values, [0.8, np.nan, 0.9])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("days", [1, 2])
def test_it_can_be_drawn(days):
    buffer = io.BytesIO()
    timeline_figure(dict(list(ROWS.items())[:days])).savefig(buffer, format="png", dpi=20)
    assert buffer.tell()
