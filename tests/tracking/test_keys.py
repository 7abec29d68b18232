import dataclasses
from datetime import date

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.errors import MetricInputError
from modwatch.records import MEASUREMENTS
from modwatch.tracking.keys import MAX_KEYS, check_key_count, checked, day_metrics, known

DAY = date(2026, 1, 5)


def test_only_the_deployed_strategy_and_fraction_become_keys(measure, facts):
    table = measure(DAY)
    metrics = day_metrics(table, facts)
    at = (table["strategy"] == "uncertainty") & (table["alpha"] == 0.02)
    row = table[at & (table["metric"] == "oc_auroc")].iloc[0]
    assert metrics["collaboration/oc_auroc"] == row["value"]
    assert metrics["sampling_interval/oc_auroc_low"] == row["low"]
    assert metrics["sampling_interval/oc_auroc_high"] == row["high"]
    assert metrics["model/accuracy"] == 0.95
    assert metrics["review/completion"] == 38 / 40


def test_keys_are_few_and_the_same_every_day(measure, facts):
    one, other = (day_metrics(measure(DAY, shift), facts) for shift in (0.0, 0.01))
    assert one.keys() == other.keys()
    assert len(one) <= MAX_KEYS


def test_the_order_of_rows_does_not_matter(measure, facts):
    table = measure(DAY)
    shuffled = table.sample(frac=1, random_state=3)
    assert day_metrics(shuffled, facts) == day_metrics(table, facts)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_no_number_makes_no_key(measure, facts, value):
    table = measure(DAY)
    table.loc[table["metric"] == "accuracy", "value"] = value
    metrics = day_metrics(table, facts)
    assert "model/accuracy" not in metrics
    assert "sampling_interval/accuracy_low" not in metrics


def test_an_insufficient_estimate_makes_no_key_whatever_its_value(measure, facts):
    table = measure(DAY)
    table.loc[table["metric"] == "accuracy", "status"] = "insufficient"
    assert "model/accuracy" not in day_metrics(table, facts)


def test_an_estimate_without_interval_has_a_value_only(measure, facts):
    table = measure(DAY)
    table.loc[table["metric"] == "accuracy", ["low", "high"]] = np.nan
    metrics = day_metrics(table, facts)
    assert "model/accuracy" in metrics
    assert not [key for key in metrics if key.startswith("sampling_interval/accuracy")]


def test_an_empty_day_has_counts_and_no_shares(facts):
    nothing = pd.DataFrame(columns=MEASUREMENTS.names)
    empty = dataclasses.replace(facts, comments=0, flagged=0, routed=0, labelled=0)
    assert day_metrics(checked(nothing), empty) == {
        "day/comments": 0.0,
        "day/quarantined": 12.0,
        "review/routed": 0.0,
        "review/labelled": 0.0,
    }


def test_nullable_and_object_columns_are_read(measure, facts):
    plain = measure(DAY)
    nullable = plain.assign(value=plain["value"].astype("Float64"))
    objects = plain.assign(value=plain["value"].astype(object).where(plain["value"].notna(), None))
    for table in (nullable, objects):
        assert day_metrics(checked(table), facts) == day_metrics(plain, facts)
        assert known(checked(table)).sum() == known(plain).sum()


def test_a_missing_column_is_named(measure):
    with pytest.raises(MetricInputError, match="'status'"):
        checked(measure(DAY).drop(columns="status"))


def test_too_many_metrics_are_refused(measure, facts):
    table = measure(DAY)
    row = table[table["metric"] == "accuracy"]
    many = pd.concat([table, *(row.assign(metric=f"m{i}") for i in range(MAX_KEYS))])
    with pytest.raises(MetricInputError, match="at most 60"):
        day_metrics(many, facts)


@given(st.integers(0, 2 * MAX_KEYS))
def test_the_limit_is_sixty_distinct_keys(count):
    keys = [str(number) for number in range(count)]
    if count > MAX_KEYS:
        with pytest.raises(MetricInputError):
            check_key_count(keys + keys)
    else:
        check_key_count(keys + keys)
