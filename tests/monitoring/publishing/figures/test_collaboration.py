from datetime import date

import numpy as np
import pandas as pd
import pytest

from modwatch.data.lake.schemas import MEASUREMENTS
from modwatch.monitoring.publishing.figures.strategies import collaboration
from modwatch.monitoring.publishing.keys import checked

DAY = date(2026, 1, 5)


def test_every_strategy_is_a_curve_over_the_fractions(measure, facts, curves, words):
    table = measure(DAY)
    figure = collaboration(table, facts, title="2026-01-05, model 3")
    drawn = curves(figure, 0)
    assert list(drawn) == ["uncertainty", "toxicity"]
    rows = table[(table["metric"] == "oc_auroc") & (table["strategy"] == "toxicity")]
    np.testing.assert_array_equal(drawn["toxicity"][:, 1], rows["value"])
    np.testing.assert_allclose(drawn["toxicity"][:, 0], rows["alpha"], rtol=0.06)
    assert figure.axes[0].get_xscale() == "log"
    assert "2026-01-05, model 3" in words(figure)


def test_what_is_insufficient_is_absent_and_noted(measure, facts, curves, words):
    figure = collaboration(measure(DAY), facts, title="")
    drawn = curves(figure, 1)
    assert len(drawn["uncertainty"]) == 8
    assert len(drawn["toxicity"]) == 7
    assert "1 of 16 points omitted" in words(figure)


def test_a_point_on_two_labels_is_absent(measure, facts, curves, words):
    table = measure(DAY)
    table.loc[table["alpha"] == 0.001, "n"] = 2
    figure = collaboration(table, facts, title="")
    assert len(curves(figure, 0)["uncertainty"]) == 7
    assert "2 of 16 points omitted" in words(figure)


def test_a_third_strategy_is_drawn_only_where_deployed(measure, facts, curves):
    table = measure(DAY)
    hybrid = table[table["strategy"] == "toxicity"].assign(strategy="hybrid")
    both = pd.concat([table, hybrid])
    assert list(curves(collaboration(both, facts, title=""), 0)) == ["uncertainty", "toxicity"]


def test_the_deployed_fraction_is_always_labelled(measure, facts):
    table = measure(DAY)
    near = table[table["alpha"] == 0.02].assign(alpha=0.021)
    figure = collaboration(pd.concat([table, near]), facts, title="")
    labels = {
        label.get_text(): tick
        for tick, label in zip(
            figure.axes[0].get_xticks(), figure.axes[0].get_xticklabels(), strict=True
        )
    }
    assert labels["2"] == 0.02
    assert "2.1" not in labels


def test_a_figure_tells_what_it_rests_on(measure, facts, words):
    text = words(collaboration(measure(DAY), facts, title=""))
    for part in ("n = 38", "effective n = 22", "95 % intervals"):
        assert part in text


@pytest.mark.filterwarnings("error")
def test_a_day_without_estimates_says_so(facts, words, draw):
    nothing = checked(pd.DataFrame(columns=MEASUREMENTS.names))
    figure = collaboration(nothing, facts, title="")
    assert words(figure).count("not enough data") == 5 + 1  # five panels and the legend's note
    assert draw(figure)


def test_the_same_data_make_the_same_figure(measure, facts, curves):
    one, two = (collaboration(measure(DAY), facts, title="") for _ in range(2))
    for panel in range(5):
        for name, curve in curves(one, panel).items():
            np.testing.assert_array_equal(curve, curves(two, panel)[name])
