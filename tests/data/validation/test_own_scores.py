"""Validation of days whose source brings scores."""

import numpy as np
import pytest

from modwatch.data.validation.rules import Thresholds

NAN = float("nan")

#: One row each: column, value, reason of quarantine or none.
ROWS = [
    ("prob", None, "missing_probability"),
    ("prob", NAN, "missing_probability"),
    ("prob", -0.001, "probability_out_of_range"),
    ("prob", 1.001, "probability_out_of_range"),
    ("prob", float("inf"), "probability_out_of_range"),
    ("flagged", None, "missing_flag"),
    ("model_version", None, "malformed_model_version"),
    ("model_version", " ", "malformed_model_version"),
    ("model_version", "you are words", "malformed_model_version"),
    ("model_version", "x" * 101, "malformed_model_version"),
    ("problem", "unreadable_probability", "unreadable_probability"),
    ("prob", 0.0, ""),
    ("prob", 1.0, ""),
    ("flagged", True, ""),
]


def scored(landed, rows, **columns):
    """Return landed rows with scores; the columns that are given have other values."""
    plain = {"prob": [0.9] * rows, "model_version": ["v7"] * rows, "flagged": [False] * rows}
    return landed(rows, **(plain | columns))


def failed(checked):
    return {rule.name for rule in checked.result.failed_of("day")}


def test_each_bad_score_is_quarantined_with_its_reason_and_the_rest_goes_on(landed, validate):
    columns = {}
    for number, (name, value, _) in enumerate(ROWS):
        start = scored(landed, 100).column(name).to_pylist()
        columns.setdefault(name, start)[number] = value
    bounds = Thresholds(quarantined_critical=0.5)
    checked = validate(scored(landed, 100, **columns), thresholds=bounds)
    reasons = [("", *checked.invalid.reasons)[code] for code in checked.invalid.reason]
    assert reasons[: len(ROWS)] == [reason for *_, reason in ROWS]
    assert set(reasons[len(ROWS) :]) == {""}
    assert not checked.result.rejected
    assert "you are words" not in checked.result.to_json()


def test_one_score_makes_the_day_one_of_scores(landed, validate):
    """Rows without a score are then defective, whatever the setting says: there is no mixture."""
    prob = [0.5, *[None] * 99]
    columns = {"model_version": ["v7", *[None] * 99], "flagged": [True, *[None] * 99]}
    checked = validate(landed(100, prob=prob, **columns))
    assert checked.result.rejected
    assert checked.result.quarantined == {"missing_probability": 99}


def test_a_day_without_any_score_is_rejected_if_the_source_brings_them(landed, validate):
    checked = validate(landed(100), own_scores=True)
    assert "quarantined_most" in failed(checked)
    assert checked.result.quarantined == {"missing_probability": 100}
    assert not validate(landed(100)).result.quarantined


def test_several_versions_reject_the_day(landed, validate):
    versions = ["v7"] * 60 + ["v8"] * 40
    checked = validate(scored(landed, 100, model_version=versions))
    assert checked.result.rejected
    assert failed(checked) == {"several_model_versions"}
    assert "several_model_versions: 2, allowed: one version" in checked.result.error
    assert "v8" not in checked.result.to_json()


def test_versions_of_quarantined_rows_do_not_count(landed, validate):
    versions, prob = ["v7"] * 99 + ["v8"], [0.5] * 99 + [NAN]
    checked = validate(scored(landed, 100, model_version=versions, prob=prob))
    assert not checked.result.rejected
    assert checked.result.quarantined == {"missing_probability": 1}


def test_versions_count_over_all_batches(landed, validate):
    one = scored(landed, 10)
    other = landed(10, start=10, prob=[0.1] * 10, model_version=["v8"] * 10, flagged=[True] * 10)
    assert validate(one, other).result.rejected
    assert not validate(one).result.rejected


@pytest.mark.parametrize("own", [True, False])
def test_an_empty_day_passes(validate, own):
    assert not validate(own_scores=own).result.rejected


def test_a_day_that_a_model_scores_has_no_rules_on_scores(landed, validate):
    names = {rule.name for rule in validate(landed(10)).result.results}
    more = {rule.name for rule in validate(scored(landed, 10)).result.results} - names
    assert more == {
        *("missing_probability", "probability_out_of_range", "missing_flag"),
        *("malformed_model_version", "several_model_versions"),
    }
    assert np.count_nonzero(validate(scored(landed, 10)).invalid.reason) == 0
