import dataclasses
from datetime import date

import pandas as pd

from modwatch.data.lake.schemas import MEASUREMENTS
from modwatch.monitoring.publishing.facts import DayTables
from modwatch.monitoring.publishing.figures import day_figures
from modwatch.monitoring.publishing.keys import checked

DAY = date(2026, 1, 5)


def test_a_day_with_everything_has_every_figure(full_tables, facts, pictures):
    assert list(day_figures(DAY, dataclasses.replace(full_tables(DAY), **pictures), facts)) == [
        *("collaboration", "collaboration_window", "reliability", "scores"),
        *("drift", "queue", "what_if"),
    ]


def test_figures_without_data_are_left_out(measure, facts):
    tables = DayTables(measurements=measure(DAY))
    assert list(day_figures(DAY, tables, facts)) == ["collaboration"]


def test_a_day_without_estimates_can_be_drawn(full_tables, facts, draw):
    tables = full_tables(DAY)
    none = checked(pd.DataFrame(columns=MEASUREMENTS.names))
    unknown = tables.window.assign(status="insufficient")
    bare = DayTables(
        measurements=none, window=unknown, drift=tables.drift.assign(status="insufficient")
    )
    figures = day_figures(DAY, bare, facts)
    assert list(figures) == ["collaboration", "collaboration_window", "drift", "queue"]
    assert all(draw(figure) for figure in figures.values())


def test_a_window_says_how_many_days_it_has(full_tables, facts, words):
    figure = day_figures(DAY, full_tables(DAY), facts)["collaboration_window"]
    assert "12 of the 14 days to 2026-01-05, model 3" in words(figure)
