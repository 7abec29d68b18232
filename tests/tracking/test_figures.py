import io
from datetime import date

import numpy as np
import pandas as pd
import pytest

from modwatch.records import MEASUREMENTS
from modwatch.tracking.facts import DayPictures, ScoreHistogram
from modwatch.tracking.figures import collaboration, day_figures, reliability, score_histogram
from modwatch.tracking.keys import checked
from modwatch.tracking.style import BLUE, strategy_style

DAY = date(2026, 1, 5)


def curves(figure, panel):
    """Return (N, 2) of every curve of a panel, by its label."""
    axes = figure.axes[panel]
    return {bars.get_label(): np.column_stack(bars.lines[0].get_data()) for bars in axes.containers}


def words(figure):
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    return "\n".join([figure.get_suptitle(), *titles, *texts])


def png(figure):
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=20)
    return buffer.getvalue()


def test_every_strategy_is_a_curve_over_the_fractions(measure, facts):
    table = measure(DAY)
    figure = collaboration(table, facts, title="2026-01-05, model 3")
    drawn = curves(figure, 0)
    assert list(drawn) == ["uncertainty", "toxicity"]
    rows = table[(table["metric"] == "oc_auroc") & (table["strategy"] == "toxicity")]
    np.testing.assert_array_equal(drawn["toxicity"][:, 1], rows["value"])
    np.testing.assert_allclose(drawn["toxicity"][:, 0], rows["alpha"], rtol=0.05)
    assert figure.axes[0].get_xscale() == "log"
    assert "2026-01-05, model 3" in words(figure)


def test_what_is_insufficient_is_absent_and_noted(measure, facts):
    figure = collaboration(measure(DAY), facts, title="")
    drawn = curves(figure, 1)
    assert len(drawn["uncertainty"]) == 8
    assert len(drawn["toxicity"]) == 7
    assert "1 of 16 points: not enough data" in words(figure)


def test_a_figure_tells_what_it_rests_on(measure, facts):
    text = words(collaboration(measure(DAY), facts, title=""))
    for part in ("n = 38", "effective n = 22", "95 % intervals", "2,000 comments"):
        assert part in text


@pytest.mark.filterwarnings("error")
def test_a_day_without_estimates_says_so(facts):
    nothing = checked(pd.DataFrame(columns=MEASUREMENTS.names))
    figure = collaboration(nothing, facts, title="")
    assert words(figure).count("not enough data") == 5 + 1  # five panels and the legend's note
    assert png(figure)


def test_strategies_keep_their_colours():
    styles = [strategy_style(name) for name in ("uncertainty", "toxicity", "hybrid", "of my own")]
    assert [len(set(part)) for part in zip(*styles, strict=True)] == [4, 4, 4]
    assert styles[0][0] == BLUE


def test_reliability_shows_filled_bins_with_their_counts():
    bins = pd.DataFrame(
        {
            "mean_prob": pd.array([0.1, None, 0.8], dtype="Float64"),
            "positive_rate": pd.array([0.2, None, 0.7], dtype="Float64"),
            "count": [30, 0, 4],
        }
    )
    figure = reliability(bins, title="2026-01-05, model 3")
    np.testing.assert_allclose(curves(figure, 0)["observed"], [[0.1, 0.2], [0.8, 0.7]])
    assert [bar.get_height() for bar in figure.axes[1].patches] == [30, 4]
    assert "34 labelled comments" in words(figure)
    assert png(figure)


def test_reliability_draws_intervals_where_there_are_any(pictures):
    assert "observed, 95 % intervals" in curves(reliability(pictures.reliability, title=""), 0)


def test_reliability_of_nothing_is_an_empty_frame():
    empty = pd.DataFrame({"mean_prob": [], "positive_rate": [], "count": []})
    assert png(reliability(empty, title=""))


def test_the_histogram_counts_every_comment():
    prob = np.array([0.0, 0.5, 1.0, 1.0], np.float32)
    scores = ScoreHistogram.of(prob, threshold=0.5, bins=4)
    figure = score_histogram(scores, title="2026-01-05, model 3")
    [steps] = figure.axes[0].patches
    np.testing.assert_array_equal(steps.get_data().values, [1, 0, 1, 2])
    assert "4 comments" in words(figure)
    assert png(figure)


def test_figures_without_data_are_left_out(measure, facts, pictures):
    assert list(day_figures(DAY, measure(DAY), facts, DayPictures())) == ["collaboration"]
    named = day_figures(DAY, measure(DAY), facts, pictures)
    assert list(named) == ["collaboration", "reliability", "scores"]


def test_the_same_data_make_the_same_figure(measure, facts):
    one, two = (collaboration(measure(DAY), facts, title="") for _ in range(2))
    for panel in range(5):
        for name, curve in curves(one, panel).items():
            np.testing.assert_array_equal(curve, curves(two, panel)[name])
