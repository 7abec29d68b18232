"""The metric values that alert rules watch, from tables as the pipeline writes them."""

import datetime
import math
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from estimates import put_estimates

from modwatch.data.lake.schemas import TABLES
from modwatch.data.validation.result import RuleResult, ValidationResult
from modwatch.installation.resources import Resources, open_resources
from modwatch.monitoring.incidents.incidents import MetricValue
from modwatch.monitoring.incidents.metrics import metric_values
from modwatch.settings import Settings

MONDAY = datetime.date(2026, 1, 5)
TUESDAY = MONDAY + datetime.timedelta(days=1)


@pytest.fixture
def resources(tmp_path):
    with open_resources(Settings(home=tmp_path)) as opened:
        yield opened


def put(
    resources: Resources, table: str, *rows: dict[str, Any], day: datetime.date = MONDAY
) -> None:
    """Keep rows of a table; what they leave out is null, 0 or empty."""
    blank = {pa.string(): "", pa.int64(): 0, pa.int32(): 0, pa.float64(): 0.0, pa.date32(): day}
    schema = TABLES[table]
    needed = {field.name: blank[field.type] for field in schema if not field.nullable}
    full = [{**needed, **{k: v for k, v in row.items() if k in schema.names}} for row in rows]
    resources.lake.replace(table, day, [pa.RecordBatch.from_pylist(full, schema=schema)])


def estimate(metric: str, value: float | None = 0.9, **fields: Any) -> dict[str, Any]:
    ends = {"low": value and value - 0.1, "high": value and value + 0.05}
    status = "insufficient" if value is None else "ok"
    return {"metric": metric, "value": value, **ends, "n": 40, "status": status, **fields}


def test_estimates_are_those_of_the_strategy_and_fraction_of_their_day(resources):
    for day, strategy, alpha in ((MONDAY, "uncertainty", 0.1), (TUESDAY, "toxicity", 0.3)):
        put(resources, "routing_design", {"strategy": strategy, "review_fraction": alpha}, day=day)
        put_estimates(
            resources.lake,
            day,
            estimate("accuracy"),
            estimate("oc_accuracy", 0.91, strategy="uncertainty", alpha=0.1),
            estimate("oc_accuracy", 0.92, strategy="uncertainty", alpha=0.3),
            estimate("oc_accuracy", 0.93, strategy="toxicity", alpha=0.1),
            estimate("oc_accuracy", 0.94, strategy="toxicity", alpha=0.1 + 0.2),  # no 0.3 exactly
        )
    found = [
        (value.day, value.metric, value.value)
        for value in metric_values(resources.lake, resources.checks, MONDAY, TUESDAY)
    ]
    assert sorted(found) == [
        (MONDAY, "accuracy", 0.9),
        (MONDAY, "oc_accuracy", 0.91),
        (TUESDAY, "accuracy", 0.9),
        (TUESDAY, "oc_accuracy", 0.94),
    ]


def test_the_window_has_names_of_its_own(resources):
    put_estimates(resources.lake, MONDAY, estimate("accuracy", None), window=True)
    known = {"day": MONDAY, "metric": "window_accuracy", "value": None, "n": 40}
    assert metric_values(resources.lake, resources.checks, MONDAY, MONDAY) == [
        MetricValue(**known, effective_n=0.0, status="insufficient")
    ]


def test_drift_keeps_feature_and_reference(resources):
    put(resources, "drift", estimate("psi", 0.3, feature="prob", reference="fixed"))
    [found] = metric_values(resources.lake, resources.checks, MONDAY, MONDAY)
    assert (found.subject, found.value, found.n) == ("prob,fixed", 0.3, 40)
    assert (found.low, found.high) == pytest.approx((0.2, 0.35))


@pytest.mark.parametrize(
    ("share", "change", "excess"),
    [
        (1.0, 0.913, (0.913, 0.813)),  # all comments are flagged, and 8.7 % are usual
        (0.45, 0.31, (0.31, 0.21)),
        (0.45, 0.29, (0.0, 0.0)),  # 16 % are usual: not three times as many
        (0.05, -0.04, (0.0, 0.0)),
        (None, None, (None, None)),
    ],
)
def test_what_is_flagged_beyond_three_times_the_reference(resources, share, change, excess):
    put(
        resources,
        "drift",
        estimate("flagged_share_change", change, feature="flagged", reference="trailing"),
        estimate("flagged_share_change", change, feature="flagged", reference="fixed"),
        estimate("flagged_share", share, feature="flagged"),
    )
    values = metric_values(resources.lake, resources.checks, MONDAY, MONDAY)
    [found] = [value for value in values if value.metric == "flagged_share_excess"]
    assert found.subject == "flagged,fixed"
    assert (found.value, found.low) == (pytest.approx(excess[0]), pytest.approx(excess[1]))
    assert (found.status == "insufficient") == (share is None)


def test_dependent_confirmations_are_watched_by_kind(resources):
    row = {"tested": 5, "n": 300, "found": 1}
    put(resources, "assumption_checks", *({"check": name, **row} for name in ("people", "misses")))
    [found] = metric_values(resources.lake, resources.checks, MONDAY, MONDAY)
    assert (found.metric, found.subject) == ("dependent_confirmations", "people")
    assert (found.value, found.n) == (1.0, 300)


def test_a_number_that_is_none_is_none(resources):
    numbers = {"value": math.nan, "low": -math.inf}
    put_estimates(resources.lake, MONDAY, {**estimate("accuracy"), **numbers})
    [found] = metric_values(resources.lake, resources.checks, MONDAY, MONDAY)
    assert (found.value, found.low) == (None, None)


def test_other_days_are_left_out(resources):
    assert metric_values(resources.lake, resources.checks, MONDAY, TUESDAY) == []
    put(resources, "drift", estimate("psi", feature="prob"))
    resources.checks.save(verdict("passed"))
    assert metric_values(resources.lake, resources.checks, TUESDAY, TUESDAY) == []


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        (["passed", "passed"], {"checks_warned": 0}),
        (["warned", "passed"], {"checks_warned": 1}),
        (["passed", "warned"], {"checks_warned": 1}),
        (["rejected"], {}),  # one incident, not two
    ],
)
def test_validation_results_are_metric_values(resources, statuses, expected):
    for suite, status in zip(("comments", "scores"), statuses, strict=False):
        resources.checks.save(verdict(status, suite))
    found = {
        value.metric: value.value
        for value in metric_values(resources.lake, resources.checks, MONDAY, MONDAY)
    }
    assert found == {"checks_rejected": int("rejected" in statuses), **expected}


def test_each_rule_that_warns_is_a_series(resources):
    """Those are left out that other alerts watch; a rule that is gone has passed."""
    names = (
        "quarantined_many",
        "script_shift",
        "volume_shift",
        "missing_share_platform",
        "flagged_shift",
    )
    warned = [replace(verdict("warned").results[0], name=name) for name in names]
    resources.checks.save(replace(verdict("warned", "comments"), results=tuple(warned)))
    other = replace(verdict("warned", "comments"), day=TUESDAY)
    resources.checks.save(replace(other, results=(replace(warned[0], name="own_rule"),)))
    found = [
        (value.feature, value.day, value.value)
        for value in metric_values(resources.lake, resources.checks, MONDAY, TUESDAY)
        if value.metric == "checks_warned"
    ]
    assert found == [
        ("quarantined_many", MONDAY, 1.0),
        ("own_rule", TUESDAY, 1.0),
        ("quarantined_many", TUESDAY, 0.0),
    ]


def verdict(status: str, suite: str = "scores") -> ValidationResult:
    failed = RuleResult(
        name="low_volume", level="day", value=0.0, passed=status == "passed",
        severity="critical" if status == "rejected" else "warning",
        **dict.fromkeys(("observed", "allowed", "expectation", "remedy"), ""),
    )  # fmt: skip
    return ValidationResult(
        suite=suite, day=MONDAY, rows=10, valid=10, results=(failed,), quarantined={}
    )  # type: ignore[arg-type]
