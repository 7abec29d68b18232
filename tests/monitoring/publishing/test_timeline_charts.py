"""The charts of drift and of groups of comments, and the line of groups."""

import datetime

import pandas as pd
import pytest

from modwatch.monitoring.publishing.days import KeyFigure
from modwatch.monitoring.publishing.description import describe_groups
from modwatch.monitoring.publishing.timeline_charts import drift_charts, group_charts

MONDAY, TUESDAY = datetime.date(2026, 1, 5), datetime.date(2026, 1, 6)


NAMES = ("value", "low", "high")


def known(figure: KeyFigure) -> dict[str, float]:
    return {name: number for name, number in vars(figure).items() if number is not None}


def row(group, metric="mean_uncertainty", *, value=0.1, gap=0.02, p_holm=0.5, **changes):
    scope = "window" if metric in ("accuracy", "calibration_error") else "day"
    given = {
        "dt": MONDAY, "scope": scope, "attribute": "platform", "group": group, "metric": metric,
        "value": value, "low": value - 0.01, "high": value + 0.01, "difference": gap,
        "difference_low": gap - 0.01, "difference_high": gap + 0.01, "p_value": p_holm,
        "p_holm": p_holm, "n": 500, "comments": 500, "status": "ok", "reason": "", "digest": "",
    }  # fmt: skip
    return {**given, **changes}


def near(value, *ends):
    """Return a figure that is equal but for rounding."""
    return {
        name: pytest.approx(number) for name, number in zip(NAMES, (value, *ends), strict=False)
    }


def test_each_group_has_uncertainty_its_difference_and_accuracy():
    table = pd.DataFrame([row("a"), row("a", "accuracy", value=0.9), row("a", "flagged_share")])
    assert {
        title: {day: known(figure) for day, figure in figures.items()}
        for title, figures in group_charts(table).items()
    } == {
        "platform a: mean uncertainty": {MONDAY: near(0.1)},
        "platform a: mean uncertainty less all others": {MONDAY: near(0.02, 0.01, 0.03)},
        "platform a: accuracy, window": {MONDAY: near(0.9, 0.89, 0.91)},
    }


def test_the_largest_groups_of_all_days_are_shown():
    many = [
        row(f"g{number}", dt=day, comments=100 + number, metric=metric)
        for number in range(30)
        for day in (MONDAY, TUESDAY)
        for metric in ("mean_uncertainty", "accuracy")
    ]
    found = group_charts(pd.DataFrame(many))
    assert len(found) == 7 * 3
    assert [*found["platform g29: mean uncertainty"]] == [MONDAY, TUESDAY]
    assert "platform g0: mean uncertainty" not in found


def test_the_gap_in_coverage_of_each_attribute_has_a_chart():
    table = pd.DataFrame(
        [
            row(None, "set_coverage_gap", value=0.1, gap=float("nan"), scope="window"),
            row(None, "set_coverage", value=0.9, attribute=None, scope="window"),
        ]
    )
    [(title, figures)] = group_charts(table).items()
    assert title == "platform: gap in the coverage of prediction sets"
    assert known(figures[MONDAY]) == near(0.1, 0.09, 0.11)


def test_what_is_insufficient_has_no_figure():
    table = pd.DataFrame([row("a", value=0.2), row("z", status="insufficient")])
    assert {title[:10] for title in group_charts(table)} == {"platform a"}
    assert group_charts(table.iloc[:0]) == {}


def test_features_that_once_differed_have_a_chart_with_all_their_days():
    known = {"reference": "trailing", "status": "ok"}
    mix = {"metric": "jensen_shannon", "feature": "platform", **known}
    table = pd.DataFrame(
        [
            {"dt": MONDAY, **mix, "value": 0.0, "low": 0.0, "high": 0.01},
            {"dt": TUESDAY, **mix, "value": 0.3, "low": 0.2, "high": 0.4},
            {"dt": TUESDAY, **mix, "feature": "length", "value": 0.1, "low": 0.0, "high": 0.2},
            {"dt": TUESDAY, **mix, "feature": "language", "value": 0.3, "low": 0.2, "high": 0.4},
            {"dt": TUESDAY, **mix, "metric": "queue_waiting", "value": 1.0, "low": 1, "high": 1},
        ]
    )
    assert drift_charts(table) == {
        "platform mix, Jensen–Shannon (trailing days)": {
            MONDAY: KeyFigure(value=0.0, low=0.0, high=0.01),
            TUESDAY: KeyFigure(value=0.3, low=0.2, high=0.4),
        }
    }, "language is a figure of the day"
    assert drift_charts(table.iloc[:0]) == {}


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
