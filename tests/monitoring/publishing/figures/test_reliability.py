import numpy as np
import pandas as pd

from modwatch.monitoring.publishing.figures.scores import reliability


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


def test_intervals_are_drawn_where_there_are_any(pictures, curves):
    assert "observed, 95 % intervals" in curves(reliability(pictures["reliability"], title=""), 0)


def test_a_bin_without_an_estimate_is_absent(pictures, curves):
    bins = pictures["reliability"].copy()
    bins.loc[4, ["positive_rate", "low", "high"]] = np.nan
    [drawn] = curves(reliability(bins, title=""), 0).values()
    assert len(drawn) == 4


def test_nothing_at_all_is_said(words, draw):
    empty = pd.DataFrame({"mean_prob": [], "positive_rate": [], "count": []})
    figure = reliability(empty, title="")
    assert "not enough data" in words(figure)
    assert draw(figure)
