from datetime import date

import numpy as np
import pytest

from modwatch.monitoring.publishing.figures.strategies import what_if

DAY = date(2026, 1, 5)


@pytest.fixture
def table(full_tables):
    return full_tables(DAY).what_if


def test_every_strategy_is_a_line_over_hours(table):
    figure = what_if(table, title="")
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    rows = table[table["strategy"] == "toxicity"].sort_values("alpha")
    np.testing.assert_allclose(lines["toxicity"].get_xdata(), rows["hours_per_day"].astype(float))
    np.testing.assert_allclose(lines["toxicity"].get_ydata(), rows["oc_accuracy"].astype(float))
    assert "moderator hours per day" in figure.axes[0].get_xlabel()


def test_the_deployed_setting_is_marked_with_its_interval(table, curves):
    figure = what_if(table, title="")
    [row] = table[table["deployed"]].to_dict("records")
    for panel, metric in enumerate(("oc_accuracy", "review_efficiency")):
        marked = curves(figure, panel)["deployed: uncertainty, 2 %"]
        np.testing.assert_allclose(marked, [[row["hours_per_day"], row[metric]]])


def test_without_times_comments_stand_in(table, draw):
    figure = what_if(table.assign(hours_per_day=None), title="")
    assert "comments per day" in figure.axes[0].get_xlabel()
    assert draw(figure)


def test_no_outcome_is_said_and_one_is_drawn(table, words, draw):
    figure = what_if(table.assign(review_efficiency=None), title="")
    assert words(figure).count("not enough data") == 1
    assert draw(figure)
    nothing = what_if(table.assign(review_efficiency=None, oc_accuracy=None), title="")
    assert words(nothing).count("not enough data") == 2
    assert draw(nothing)


def test_a_deployed_setting_without_an_estimate_has_its_line_only(table, curves, draw):
    table = table.copy()
    table.loc[table["deployed"], ["oc_accuracy", "oc_accuracy_low", "oc_accuracy_high"]] = None
    figure = what_if(table, title="")
    assert not curves(figure, 0)
    assert draw(figure)
