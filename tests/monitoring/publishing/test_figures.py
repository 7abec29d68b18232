"""The charts of a day and of the days."""

import dataclasses
from datetime import date

import numpy as np
import pandas as pd

from modwatch.data.lake.schemas import ESTIMATES
from modwatch.monitoring.publishing.content import DayTables, ScoreHistogram
from modwatch.monitoring.publishing.figures import (
    day_figures,
    reliability,
    score_histogram,
)

DAY = date(2026, 1, 5)


def test_a_day_with_everything_has_every_figure(full_tables, facts, pictures):
    assert list(day_figures(dataclasses.replace(full_tables(DAY), **pictures), facts)) == [
        *("collaboration", "collaboration_window", "reliability", "scores"),
        "what_if",
    ]


def test_figures_without_data_are_left_out(measure, facts):
    tables = DayTables(estimates=measure(DAY))
    assert list(day_figures(tables, facts)) == ["collaboration"]


def test_a_day_without_estimates_can_be_drawn(full_tables, facts, draw):
    tables = full_tables(DAY)
    none = ESTIMATES.empty_table().to_pandas()
    unknown = tables.window.assign(status="insufficient")
    bare = DayTables(
        estimates=none, window=unknown, drift=tables.drift.assign(status="insufficient")
    )
    figures = day_figures(bare, facts)
    assert list(figures) == ["collaboration", "collaboration_window"]
    assert all(draw(figure) for figure in figures.values())


def test_a_window_says_how_many_days_it_has(full_tables, facts, words):
    figure = day_figures(full_tables(DAY), facts)["collaboration_window"]
    assert "12 of the 14 days to 2026-01-05, model 3" in words(figure)


def test_filled_bins_are_shown_with_their_counts(curves, words, draw):
    bins = pd.DataFrame(
        {
            "mean_prob": pd.array([0.1, None, 0.8], dtype="Float64"),
            "positive_rate": pd.array([0.2, None, 0.7], dtype="Float64"),
            "count": [30, 0, 4],
            "low": [0.1, np.nan, 0.5],
            "high": [0.3, np.nan, 0.9],
        }
    )
    figure = reliability(bins, title="2026-01-05, model 3")
    np.testing.assert_allclose(
        curves(figure, 0)["observed, 95 % intervals"], [[0.1, 0.2], [0.8, 0.7]]
    )
    assert [bar.get_height() for bar in figure.axes[1].patches] == [30, 4]
    assert "34 labelled comments" in words(figure)
    assert draw(figure)


def test_a_bin_without_an_estimate_is_absent(pictures, curves):
    bins = pictures["reliability"].copy()
    bins.loc[4, ["positive_rate", "low", "high"]] = np.nan
    [drawn] = curves(reliability(bins, title=""), 0).values()
    assert len(drawn) == 4


def test_nothing_at_all_is_stated(words, draw):
    empty = pd.DataFrame({"mean_prob": [], "positive_rate": [], "count": []})
    figure = reliability(empty, title="")
    assert "not enough data" in words(figure)
    assert draw(figure)


PROB = np.array([0.0, 0.5, 1.0, 1.0], np.float32)


def histogram(prob=PROB, **changes):
    counts, edges = np.histogram(prob, bins=4, range=(0.0, 1.0))
    return ScoreHistogram(**({"edges": edges, "counts": counts, "threshold": 0.5} | changes))


def test_the_day_and_a_reference_of_any_size_share_one_scale():
    day = histogram()
    figure = score_histogram(histogram(references={"trailing": 1000 * day.counts}), title="")
    steps = [patch.get_data().values for patch in figure.axes[0].patches]
    np.testing.assert_array_equal(steps[0], [0.25, 0, 0.25, 0.5])
    np.testing.assert_array_equal(steps[0], steps[1])


def test_the_legend_counts_every_comment():
    figure = score_histogram(histogram(references={"fixed": np.full(4, 300)}), title="")
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert labels == ["this day (4 comments)", "fixed reference (1,200)"]


def test_a_single_comment_of_either_side_can_be_seen():
    figure = score_histogram(histogram(references={"fixed": np.array([9999, 0, 0, 1])}), title="")
    low, high = figure.axes[0].get_ylim()
    assert 0 < low < 1 / 10_000
    assert high > 0.9999


def test_constant_scores_and_thresholds_at_the_ends_can_be_drawn(draw):
    for prob, threshold in ((np.full(9, 0.3), 0.999), (np.zeros(1), 0.0), (np.ones(3), 1.0)):
        assert draw(score_histogram(histogram(prob, threshold=threshold), title=""))
