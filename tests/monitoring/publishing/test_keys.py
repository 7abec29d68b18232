import dataclasses
from datetime import date

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.common.errors import MetricInputError
from modwatch.data.lake.schemas import ESTIMATES
from modwatch.monitoring.publishing.content import DayTables
from modwatch.monitoring.publishing.keys import (
    COUNTED,
    KEYS,
    MAX_KEYS,
    check_key_count,
    key_figures,
)

DAY = date(2026, 1, 5)


def metrics_of(measurements, facts):
    return all_metrics(DayTables(estimates=measurements), facts)


def all_metrics(tables, facts):
    return {key: figure.value for key, figure in key_figures(tables, facts).items()}


def intervals_of(tables, facts):
    figures = key_figures(tables, facts)
    return {key: figure.interval for key, figure in figures.items() if figure.interval}


def test_only_the_deployed_strategy_and_fraction_become_keys(measure, facts):
    table = measure(DAY)
    metrics = metrics_of(table, facts)
    at = (table["strategy"] == "uncertainty") & (table["alpha"] == 0.02)
    row = table[at & (table["metric"] == "oc_accuracy")].iloc[0]
    assert metrics["single_day/oc_accuracy"] == row["value"]
    ends = intervals_of(DayTables(estimates=table), facts)
    assert ends["single_day/oc_accuracy"] == (row["low"], row["high"])
    assert metrics["single_day/accuracy"] == 0.95
    assert metrics["review/completion"] == 38 / 40


def test_areas_are_keys_of_the_window_only(full_tables, facts):
    tables = full_tables(DAY)
    metrics = all_metrics(tables, facts)
    assert [key for key in metrics if "auroc" in key] == [
        *("collaboration_window/oc_auroc", "model_window/auroc"),
        "model_window/calibration_auroc",
    ]
    at = (tables.window["strategy"] == "uncertainty") & (tables.window["alpha"] == 0.02)
    row = tables.window[at & (tables.window["metric"] == "oc_auroc")].iloc[0]
    assert metrics["collaboration_window/oc_auroc"] == row["value"]
    assert intervals_of(tables, facts)["collaboration_window/oc_auroc"] == (row["low"], row["high"])


def test_drift_and_queue_of_the_day_itself_are_keys(full_tables, facts):
    metrics = all_metrics(full_tables(DAY), facts)
    assert metrics["drift/score_psi"] == metrics["drift/score_psi_fixed"] == 0.25
    assert metrics["drift/volume_ratio"] == 1.1
    assert metrics["model/cbpe_accuracy"] == 0.94
    assert metrics["review/undecided"] == 0
    ends = intervals_of(full_tables(DAY), facts)
    assert ends["drift/score_psi"] == (0.9 * 0.25, 1.1 * 0.25)
    assert "review/age_oldest_hours" not in metrics  # nothing waits today


def test_errors_of_the_moderators_are_keys_of_the_window(full_tables, measure, facts):
    metrics = all_metrics(full_tables(DAY), facts)
    assert metrics["review/annotator_false_positive_rate"] == 0.021 + 0.01
    assert metrics["review/annotator_false_negative_rate"] == 0.184 + 0.01
    assert metrics["review/overturned"] == 0.128 + 0.01
    low, high = intervals_of(full_tables(DAY), facts)["review/overturned"]
    assert low < metrics["review/overturned"] < high
    alone = metrics_of(measure(DAY), facts)
    assert not [key for key in alone if "annotator" in key or "overturned" in key]


def test_every_key_is_on_the_list_and_the_list_is_short(full_tables, facts):
    one, other = (all_metrics(full_tables(DAY, shift), facts) for shift in (0.0, 0.01))
    assert one.keys() == other.keys()
    assert set(one) <= set(KEYS)
    assert len(KEYS) == len(set(KEYS)) <= MAX_KEYS


def test_every_key_is_counted_or_has_an_interval(full_tables, facts):
    """So that nothing is charted as a bare line that an interval belongs to."""
    tables = full_tables(DAY)
    ends, metrics = intervals_of(tables, facts), all_metrics(tables, facts)
    assert set(metrics) <= {*COUNTED, *ends}
    assert not ends.keys() & set(COUNTED)
    assert set(COUNTED) < set(KEYS)


def test_what_is_no_number_or_insufficient_makes_no_key(measure, facts):
    for column, value in (("value", np.nan), ("value", np.inf), ("status", "insufficient")):
        table = measure(DAY)
        table.loc[table["metric"] == "accuracy", column] = value
        assert "single_day/accuracy" not in metrics_of(table, facts)


def test_an_estimate_without_interval_has_a_value_only(measure, facts):
    table = measure(DAY)
    table.loc[table["metric"] == "accuracy", ["low", "high"]] = np.nan
    metrics = metrics_of(table, facts)
    assert "single_day/accuracy" in metrics
    assert "single_day/accuracy" not in intervals_of(DayTables(estimates=table), facts)


def test_an_empty_day_has_counts_and_no_shares(facts):
    nothing = ESTIMATES.empty_table().to_pandas()
    empty = dataclasses.replace(facts, comments=0, flagged=0, routed=0, labelled=0)
    assert metrics_of(nothing, empty) == {
        "day/alerts": 0.0,
        "day/comments": 0.0,
        "day/quarantined": 12.0,
        "review/routed": 0.0,
        "review/labelled": 0.0,
    }


def test_a_metric_of_no_key_makes_none_and_the_order_does_not_matter(measure, facts):
    table = measure(DAY)
    assert metrics_of(table.sample(frac=1, random_state=3), facts) == metrics_of(table, facts)
    row = table[table["metric"] == "accuracy"]
    many = pd.concat([table, *(row.assign(metric=f"m{i}") for i in range(MAX_KEYS))])
    assert metrics_of(many, facts) == metrics_of(table, facts)


@given(st.integers(0, 2 * MAX_KEYS))
def test_the_limit_is_sixty_distinct_keys(count):
    keys = [str(number) for number in range(count)]
    if count > MAX_KEYS:
        with pytest.raises(MetricInputError):
            check_key_count(keys + keys)
    else:
        check_key_count(keys + keys)
