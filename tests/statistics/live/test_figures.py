"""The registry of figures: what it refuses, and that every estimate of labels is an entry of it."""

from dataclasses import replace

import numpy as np
import pytest

from modwatch.common.errors import MetricInputError
from modwatch.statistics import fully_labelled, measure_days
from modwatch.statistics.live.figures import (
    ALONE,
    FIGURES,
    PEOPLE,
    TOGETHER,
    ErrorShare,
    Figure,
    registry,
    title_of,
)

#: A count, and what recalibrates the order of reviews.
OTHERS = {"completion"}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    prob = rng.random(400)
    day = fully_labelled(rng.random(400) < prob, prob)
    return measure_days([day], review_fractions=[0.1], strategies=["uncertainty"])


def test_every_figure_of_labels_is_estimated_with_an_interval(table):
    made = set(table["metric"]) - OTHERS
    assert made == {key for key, figure in FIGURES.items() if figure.group != PEOPLE}
    known = table.set_index("metric").loc[[*made]]
    assert known[["value", "low", "high"]].notna().all(axis=None)
    for key, row in known.iterrows():
        low, high = FIGURES[key].range
        assert low <= row["low"] <= row["value"] <= row["high"] <= high
        assert (FIGURES[key].group == TOGETHER) == (row["strategy"] == "uncertainty")


def test_a_share_of_errors_is_what_it_says(table):
    value = table.set_index("metric")["value"]
    errors = 1 - value["accuracy"]
    caught = 0.1 * value["review_efficiency"]
    assert value["oc_accuracy"] == pytest.approx(1 - (errors - caught))
    assert value["review_effectiveness"] == pytest.approx(caught / errors)


def test_a_new_figure_is_one_entry(monkeypatch):
    """It is estimated, and has a title and a key, by nothing but its entry."""
    mine = Figure(
        key="error_rate",
        title="Error rate",
        group=ALONE,
        meaning="share of wrong decisions",
        better="lower",
        errors=ErrorShare("everything", "everything"),
    )
    monkeypatch.setitem(FIGURES, "error_rate", mine)
    found = measure_days([fully_labelled([1, 0], [0.9, 0.6])]).set_index("metric")["value"]
    assert found["error_rate"] == 0.5
    assert (mine.name, title_of("error_rate")) == ("model_window/error_rate", "Error rate")


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"errors": None}, "one of errors, areas and estimate"),
        ({"areas": ""}, "one of errors, areas and estimate"),
        ({"key": "error rate"}, "identifier"),
        ({"key": "x'; DROP"}, "identifier"),
    ],
)
def test_a_figure_that_is_computed_in_no_way_or_in_two_is_refused(facts, message):
    with pytest.raises(MetricInputError, match=message):
        replace(FIGURES["accuracy"], **facts)


def test_two_entries_of_one_key_are_refused():
    with pytest.raises(MetricInputError, match="two figures 'accuracy'"):
        registry([FIGURES["accuracy"], FIGURES["brier"], FIGURES["accuracy"]])
