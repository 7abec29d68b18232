"""Strategies, models and groups compared, as ops see it."""

from datetime import date

import numpy as np
import pandas as pd
import pytest

from modwatch.data.lake.schemas import ESTIMATES
from modwatch.monitoring.publishing.comparisons import (
    collaboration,
    differences,
    group_differences,
    what_if,
)
from modwatch.monitoring.publishing.description import describe_challenger

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


def test_what_is_insufficient_or_on_two_labels_is_absent_and_noted(measure, facts, curves, words):
    table = measure(DAY)
    figure = collaboration(table, facts, title="")
    drawn = curves(figure, 1)
    assert (len(drawn["uncertainty"]), len(drawn["toxicity"])) == (8, 7)
    text = words(figure)
    for part in ("1 of 16 points omitted", "n = 38", "effective n = 22", "95 % intervals"):
        assert part in text
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


@pytest.mark.filterwarnings("error")
def test_a_day_without_estimates_says_so(facts, words, draw):
    nothing = ESTIMATES.empty_table().to_pandas()
    figure = collaboration(nothing, facts, title="")
    assert words(figure).count("not enough data") == 5 + 1  # five panels and the legend's note
    assert draw(figure)


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


def test_no_outcome_is_stated_and_one_is_drawn(table, words, curves, draw):
    figure = what_if(table.assign(review_efficiency=None), title="")
    assert words(figure).count("not enough data") == 1
    assert draw(figure)
    nothing = what_if(table.assign(review_efficiency=None, oc_accuracy=None), title="")
    assert words(nothing).count("not enough data") == 2
    assert draw(nothing)
    unknown = table.copy()
    unknown.loc[table["deployed"], ["oc_accuracy", "oc_accuracy_low", "oc_accuracy_high"]] = None
    figure = what_if(unknown, title="")
    assert not curves(figure, 0), "the deployed setting has its line only"
    assert draw(figure)


def rows(**changes):
    def row(metric, value, low, high, *, both=True, status="ok"):
        models = {"champion": 0.8, "challenger": 0.8 + value} if both else {}
        ends = {"value": value, "low": low, "high": high} if status == "ok" else {}
        return {"metric": metric, "status": status, **models, **ends}

    table = pd.DataFrame(
        [
            row("same_decision", 0.972, 0.972, 0.972, both=False),
            row("same_reviewed", 0.81, 0.81, 0.81, both=False),
            row("accuracy", 0.01, 0.004, 0.02),
            row("oc_auroc", -0.02, -0.03, -0.01),
            row("auroc", 0.001, -0.01, 0.02),
            row("review_efficiency", 0, 0, 0, status="insufficient"),
        ]
    )
    return table.assign(**{"challenger_version": "7", "days": 3, **changes})


def test_the_line_of_a_challenger():
    assert describe_challenger(rows()) == (
        "Challenger 7 in shadow (3 days): 97.2% of the decisions and 81.0% of the reviewed "
        "comments are the same; challenger less champion: Accuracy +0.010 (+0.004 to +0.020), "
        "OC-AUROC -0.020 (-0.030 to -0.010)."
    )


def test_a_challenger_of_one_day_without_estimates():
    table = rows(days=1)
    text = describe_challenger(table[table["metric"].str.startswith("same")])
    assert "(1 day)" in text
    assert text.endswith("challenger less champion: not enough data.")


def test_the_figure_draws_what_has_an_interval(draw, words):
    figure = differences(rows(), title="Challenger 7")
    [axes] = figure.axes
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == ["Accuracy", "OC-AUROC", "AUROC"]
    ends = [line.get_xdata() for line in axes.lines if len(line.get_xdata()) == 2]
    assert list(ends[0]) == pytest.approx([0.004, 0.02])
    assert draw(figure)
    empty = differences(rows().iloc[:2], title="Challenger 7")
    assert "not enough data" in words(empty)
    assert draw(empty)


def row(group, metric="mean_uncertainty", *, gap=0.02, p_holm=0.5):
    return {
        "scope": "day" if metric == "mean_uncertainty" else "window", "attribute": "platform",
        "group": group, "metric": metric, "difference": gap, "difference_low": gap - 0.01,
        "difference_high": gap + 0.01, "p_holm": p_holm, "comments": 500,
    }  # fmt: skip


def test_the_figure_has_a_row_a_group_and_draws(words, draw):
    table = pd.DataFrame(
        [row("a", p_holm=0.01), row("b"), row("a", "accuracy", gap=-0.1, p_holm=0.01)]
    )
    figure = group_differences(table, title="2026-01-05")
    assert "2026-01-05" in words(figure)
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == [
        "platform a (500)", "platform b (500)",
    ]  # fmt: skip
    assert "not enough labels" in words(figure)
    days = group_differences(table[table["scope"] == "day"], title="2026-01-05")
    assert len(days.axes) == 2
    assert draw(figure)
