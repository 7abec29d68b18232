import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.statistics.collaboration.what_if import COLUMNS, OUTCOMES, what_if_table
from modwatch.statistics.live.labelled_day import fully_labelled
from modwatch.statistics.live.measure import measure_days

ALPHAS = (0.1, 0.5, 1.0)
STRATEGIES = ("uncertainty", "toxicity", "hybrid")


def estimates(strategies=STRATEGIES, alphas=ALPHAS):
    rng = np.random.default_rng(3)
    prob = rng.random(200)
    day = fully_labelled((rng.random(200) < prob).astype(int), prob)
    return measure_days([day], review_fractions=alphas, strategies=strategies)


def choices(table=None, **changes):
    given_by = {
        "comments_per_day": 200.0,
        "seconds_per_decision": 18.0,
        "strategy": "toxicity",
        "review_fraction": 0.5,
    }
    return what_if_table(estimates() if table is None else table, **(given_by | changes))


def test_every_strategy_and_fraction_is_a_row_and_one_is_deployed():
    table = choices()
    assert list(table.columns) == list(COLUMNS)
    assert set(zip(table["strategy"], table["alpha"], strict=True)) == {
        (strategy, alpha) for strategy in STRATEGIES for alpha in ALPHAS
    }
    deployed = table[table["deployed"]]
    assert deployed[["strategy", "alpha"]].to_numpy().tolist() == [["toxicity", 0.5]]


def test_to_review_everything_takes_everybodys_time_and_leaves_no_error():
    whole = choices().query("alpha == 1")
    assert whole["comments_per_day"].tolist() == [200.0] * 3
    assert whole["hours_per_day"].tolist() == [1.0] * 3  # 200 × 18 s
    assert whole["oc_accuracy"].tolist() == whole["review_effectiveness"].tolist() == [1.0] * 3


def test_outcomes_and_intervals_are_the_estimates():
    source = estimates()
    table = choices(source)
    for row in table.to_dict("records"):
        at = (source["strategy"] == row["strategy"]) & (source["alpha"] == row["alpha"])
        for outcome in OUTCOMES:
            [same] = source[at & (source["metric"] == outcome)].to_dict("records")
            got = [row[outcome], row[f"{outcome}_low"], row[f"{outcome}_high"]]
            assert got == [same["value"], same["low"], same["high"]]
    assert set(table["status"]) == {"ok"}


def test_without_times_the_hours_are_insufficient_and_the_rest_stands():
    table = choices(seconds_per_decision=None)
    assert table["hours_per_day"].isna().all()
    assert table["oc_accuracy"].notna().all()
    assert set(table["status"]) == {"insufficient"}
    assert table["reason"].str.contains("hours_per_day: no decision says how long it took").all()


def test_an_insufficient_outcome_has_no_number_and_its_reason():
    source = estimates()
    absent = source["metric"] == "review_efficiency"
    source.loc[absent, ["status", "reason"]] = ["insufficient", "no label in the top"]
    table = choices(source)  # the value is still there, and must not be shown
    assert table["review_efficiency"].isna().all()
    assert set(table["reason"]) == {"review_efficiency: no label in the top"}


def test_nothing_to_choose_from_is_an_empty_table():
    table = choices(estimates().iloc[:0])
    assert list(table.columns) == list(COLUMNS)
    assert table.empty


@given(comments=st.floats(0, 1e7), seconds=st.floats(0, 1e4))
def test_hours_grow_with_comments_seconds_and_fraction(comments, seconds):
    table = choices(_ESTIMATES, comments_per_day=comments, seconds_per_decision=seconds)
    expected = table["alpha"] * comments * seconds / 3600
    pd.testing.assert_series_equal(table["hours_per_day"], expected, check_names=False)


_ESTIMATES = estimates(("uncertainty",))


@pytest.mark.parametrize("fraction", [0.3, 0.5000001])
def test_a_deployed_fraction_that_was_not_measured_marks_nothing(fraction):
    assert not choices(review_fraction=fraction)["deployed"].any()
