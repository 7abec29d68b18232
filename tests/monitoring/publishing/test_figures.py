"""The charts of a day and of the days."""

import dataclasses
from datetime import date, timedelta

import numpy as np
import pandas as pd
import pytest
from matplotlib.patches import Rectangle

from modwatch.data.lake.schemas import ESTIMATES
from modwatch.monitoring.publishing.content import DayTables, ScoreHistogram
from modwatch.monitoring.publishing.figures import (
    day_figures,
    drift_strip,
    reliability,
    score_histogram,
)

DAY = date(2026, 1, 5)


def test_a_day_with_everything_has_every_figure(full_tables, facts, pictures):
    assert list(day_figures(dataclasses.replace(full_tables(DAY), **pictures), facts)) == [
        *("collaboration", "collaboration_window", "reliability", "scores"),
        *("drift", "what_if"),
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
    assert list(figures) == ["collaboration", "collaboration_window", "drift"]
    assert all(draw(figure) for figure in figures.values())


def test_a_window_says_how_many_days_it_has(full_tables, facts, words):
    figure = day_figures(full_tables(DAY), facts)["collaboration_window"]
    assert "12 of the 14 days to 2026-01-05, model 3" in words(figure)


def cells(figure):
    boxes = figure.axes[0].patches
    return [box for box in boxes if isinstance(box, Rectangle)]


def rows(figure):
    return [label.get_text() for label in figure.axes[0].get_yticklabels()]


def test_a_cell_for_every_effect_and_day_hatched_where_comments_are_too_few(drift_of, words):
    drift = drift_of(DAY, 4)
    figure = drift_strip(drift, title="2026-01-05")
    assert rows(figure) == [
        *("scores, fixed reference", "scores, trailing days"),
        *("uncertainty, fixed reference", "uncertainty, trailing days", "volume, trailing days"),
    ]
    assert len(cells(figure)) == 4 * 5
    assert words(figure).count("↑.25") == 2
    assert words(figure).count("×1.1") == 3
    hatched = [box for box in cells(figure) if box.get_hatch()]
    assert len(hatched) == 5  # all of the first day
    assert {round(box.get_x() + 0.47) for box in hatched} == {0}
    assert len([text for text in figure.axes[0].texts if text.get_text()]) == 15
    shades = [sum(box.get_facecolor()[:3]) for box in cells(figure) if not box.get_hatch()]
    assert min(shades) == pytest.approx(sum(cells(figure)[3].get_facecolor()[:3]))  # PSI 0.25


def test_what_was_rarely_compared_is_shown_only_if_it_was_noted(drift_of):
    drift = drift_of(DAY, 4)
    fixed = drift["reference"].eq("fixed") & drift["dt"].lt(DAY)
    assert "scores, fixed reference" in rows(drift_strip(drift[~fixed], title=""))
    small = drift.assign(value=drift["value"].where(drift["reference"].ne("fixed"), 0.01))
    shown = rows(drift_strip(small[~fixed], title=""))
    assert shown == ["scores, trailing days", "uncertainty, trailing days", "volume, trailing days"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("days", [1, 14])
def test_any_number_of_days_can_be_drawn(drift_of, draw, days):
    assert draw(drift_strip(drift_of(DAY, days), title=""))


def test_a_missing_day_is_a_gap(drift_of, draw):
    drift = drift_of(DAY, 4)
    figure = drift_strip(drift[drift["dt"] != DAY - timedelta(1)], title="")
    assert len(cells(figure)) == 3 * 5
    assert draw(figure)


def test_many_columns_with_long_names_keep_the_worst_and_stay_readable(drift_of, draw):
    names = [f"{n}_{'x' * 60}" for n in range(20)]
    more = [
        drift_of(DAY, 1)
        .iloc[[4]]
        .assign(metric="missing_share_change", feature=name, value=0.01 * n, status="ok")
        for n, name in enumerate(names)
    ]
    figure = drift_strip(pd.concat([drift_of(DAY, 1), *more]), title="")
    assert len(rows(figure)) == 14
    assert max(map(len, rows(figure))) <= 40
    assert any(row.startswith("19_") for row in rows(figure))
    assert not any(row.startswith("0_") for row in rows(figure))
    assert "smaller effects are in the table" in figure.axes[0].get_xlabel()
    assert draw(figure)


def test_nothing_to_compare_is_stated(drift_of, words):
    drift = drift_of(DAY, 2)
    only_queue = drift[drift["feature"] == "queue"]
    assert "no reference days yet" in words(drift_strip(only_queue, title=""))


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
