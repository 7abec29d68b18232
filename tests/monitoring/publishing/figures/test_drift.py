from datetime import date, timedelta

import numpy as np
import pandas as pd
import pytest
from matplotlib.patches import Rectangle

from modwatch.monitoring.publishing.figures.trailing_days import drift_strip

DAY = date(2026, 1, 5)


def cells(figure):
    boxes = figure.axes[0].patches
    return [box for box in boxes if isinstance(box, Rectangle)]


def rows(figure):
    return [label.get_text() for label in figure.axes[0].get_yticklabels()]


def test_a_cell_for_every_effect_and_day(measure, drift_of, words):
    figure = drift_strip(drift_of(DAY, 4), measure(DAY), title="2026-01-05")
    assert rows(figure) == [
        *("scores, fixed reference", "scores, trailing days"),
        *("uncertainty, fixed reference", "uncertainty, trailing days", "volume, trailing days"),
    ]
    assert len(cells(figure)) == 4 * 5
    assert words(figure).count("↑.25") == 2
    assert words(figure).count("×1.1") == 3


def test_too_few_comments_are_hatched_and_hold_no_number(measure, drift_of):
    figure = drift_strip(drift_of(DAY, 4), measure(DAY), title="")
    hatched = [box for box in cells(figure) if box.get_hatch()]
    assert len(hatched) == 5  # all of the first day
    assert {round(box.get_x() + 0.47) for box in hatched} == {0}
    assert len([text for text in figure.axes[0].texts if text.get_text()]) == 15


def test_what_was_rarely_compared_is_shown_only_if_it_was_noted(measure, drift_of):
    drift = drift_of(DAY, 4)
    fixed = drift["reference"].eq("fixed") & drift["dt"].lt(DAY)
    assert "scores, fixed reference" in rows(drift_strip(drift[~fixed], measure(DAY), title=""))
    small = drift.assign(value=drift["value"].where(drift["reference"].ne("fixed"), 0.01))
    shown = rows(drift_strip(small[~fixed], measure(DAY), title=""))
    assert shown == ["scores, trailing days", "uncertainty, trailing days", "volume, trailing days"]


def test_worse_is_darker(measure, drift_of):
    drift = drift_of(DAY, 4)
    figure = drift_strip(drift, measure(DAY), title="")
    shades = [sum(box.get_facecolor()[:3]) for box in cells(figure) if not box.get_hatch()]
    assert min(shades) == pytest.approx(sum(cells(figure)[3].get_facecolor()[:3]))  # PSI 0.25


def test_the_assumption_of_cbpe_stands_on_the_chart(measure, drift_of, words):
    text = words(drift_strip(drift_of(DAY, 4), measure(DAY), title=""))
    assert "CBPE assumes calibrated probabilities" in text


def test_labels_are_set_beside_what_cbpe_expects(measure, drift_of, curves):
    figure = drift_strip(drift_of(DAY, 4), measure(DAY), title="")
    np.testing.assert_array_equal(figure.axes[1].lines[0].get_ydata(), [0.94] * 4)
    [seen] = curves(figure, 1).values()
    assert seen[0, 1] == 0.95


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("days", [1, 2, 14, 40])
def test_any_number_of_days_can_be_drawn(measure, drift_of, draw, days):
    assert draw(drift_strip(drift_of(DAY, days), measure(DAY), title=""))


def test_a_missing_day_is_a_gap(measure, drift_of, draw):
    drift = drift_of(DAY, 4)
    figure = drift_strip(drift[drift["dt"] != DAY - timedelta(1)], measure(DAY), title="")
    assert len(cells(figure)) == 3 * 5
    assert np.isnan(figure.axes[1].lines[0].get_ydata()[2])
    assert draw(figure)


def test_many_columns_with_long_names_keep_the_worst_and_stay_readable(measure, drift_of, draw):
    names = [f"{n}_{'x' * 60}" for n in range(20)]
    more = [
        drift_of(DAY, 1)
        .iloc[[4]]
        .assign(metric="missing_share_change", feature=name, value=0.01 * n, status="ok")
        for n, name in enumerate(names)
    ]
    figure = drift_strip(pd.concat([drift_of(DAY, 1), *more]), measure(DAY), title="")
    assert len(rows(figure)) == 14
    assert max(map(len, rows(figure))) <= 40
    assert any(row.startswith("19_") for row in rows(figure))
    assert not any(row.startswith("0_") for row in rows(figure))
    assert "smaller effects are in the table" in figure.axes[0].get_xlabel()
    assert draw(figure)


def test_nothing_to_compare_is_said(measure, drift_of, words):
    drift = drift_of(DAY, 2)
    only_queue = drift[drift["feature"] == "queue"]
    empty = measure(DAY).iloc[:0]
    text = words(drift_strip(only_queue, empty, title=""))
    assert "no reference days yet" in text
    assert "not enough data" in text
