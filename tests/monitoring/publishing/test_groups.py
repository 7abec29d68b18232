"""The charts and the line of groups of comments."""

import datetime

import pandas as pd
import pytest

from modwatch.monitoring.publishing.description import describe_groups
from modwatch.monitoring.publishing.keys import MAX_KEYS
from modwatch.monitoring.publishing.timeline import group_points

MONDAY, TUESDAY = datetime.date(2026, 1, 5), datetime.date(2026, 1, 6)


def row(group, metric="mean_uncertainty", *, value=0.1, gap=0.02, p_holm=0.5, **changes):
    scope = "window" if metric in ("accuracy", "calibration_error") else "day"
    given = {
        "dt": MONDAY, "scope": scope, "attribute": "platform", "group": group, "metric": metric,
        "value": value, "low": value - 0.01, "high": value + 0.01, "difference": gap,
        "difference_low": gap - 0.01, "difference_high": gap + 0.01, "p_value": p_holm,
        "p_holm": p_holm, "n": 500, "comments": 500, "status": "ok", "reason": "", "digest": "",
    }  # fmt: skip
    return {**given, **changes}


def test_each_group_has_uncertainty_its_difference_and_accuracy():
    table = pd.DataFrame([row("a"), row("a", "accuracy", value=0.9), row("a", "flagged_share")])
    assert group_points(table) == {
        MONDAY: {
            "uncertainty/platform_a": 0.1,
            "uncertainty_difference/platform_a": 0.02,
            "within_95/uncertainty_difference_platform_a_low": pytest.approx(0.01),
            "within_95/uncertainty_difference_platform_a_high": pytest.approx(0.03),
            "window_accuracy/platform_a": 0.9,
            "within_95/window_accuracy_platform_a_low": pytest.approx(0.89),
            "within_95/window_accuracy_platform_a_high": pytest.approx(0.91),
        }
    }


def test_the_largest_groups_of_all_days_have_keys():
    many = [
        row(f"g{number}", dt=day, comments=100 + number, metric=metric)
        for number in range(30)
        for day in (MONDAY, TUESDAY)
        for metric in ("mean_uncertainty", "accuracy")
    ]
    points = group_points(pd.DataFrame(many))
    keys = {key for row in points.values() for key in row}
    assert len(keys) == 7 * 7 <= MAX_KEYS - 9
    assert "uncertainty/platform_g29" in keys
    assert "uncertainty/platform_g0" not in keys


def test_names_that_differ_in_what_mlflow_refuses_have_keys_of_their_own():
    table = pd.DataFrame([row(name, "mean_uncertainty") for name in ("a b", "a/b", "a_b")])
    keys = [key for key in group_points(table)[MONDAY] if key.startswith("uncertainty/")]
    assert len(keys) == 3
    assert "uncertainty/platform_a_b" in keys


def test_the_gap_in_coverage_of_each_attribute_has_a_chart():
    table = pd.DataFrame(
        [
            row(None, "set_coverage_gap", value=0.1, gap=float("nan"), scope="window"),
            row(None, "set_coverage", value=0.9, attribute=None, scope="window"),
        ]
    )
    assert group_points(table) == {
        MONDAY: {
            "set_coverage_gap/platform": 0.1,
            "within_95/set_coverage_gap_platform_low": pytest.approx(0.09),
            "within_95/set_coverage_gap_platform_high": pytest.approx(0.11),
        }
    }


def test_what_is_insufficient_has_no_point_and_names_become_keys():
    table = pd.DataFrame([row("a/b c#", value=0.2), row("z", status="insufficient")])
    assert set(group_points(table)[MONDAY]) >= {"uncertainty/platform_a_b_c_.9994"}
    assert not [key for key in group_points(table)[MONDAY] if "_z" in key]
    assert group_points(table.iloc[:0]) == {}


def test_the_line_names_the_largest_significant_differences():
    rows = [
        row(name, gap=gap, p_holm=0.001)
        for name, gap in zip("abcd", (0.01, -0.04, 0.03, 0.02), strict=True)
    ]
    line = describe_groups(pd.DataFrame([*rows, row("e")]))
    assert line.startswith("5 groups of comments")
    assert "platform b -0.040 (-0.050 to -0.030), platform c" in line
    assert "1 more" in line
    assert "platform e" not in line
    assert "accuracy" not in line
    both = describe_groups(pd.DataFrame([*rows, row("e", "accuracy")]))
    assert "accuracy (window) none" in both
