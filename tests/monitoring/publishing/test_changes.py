from datetime import date

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.data.lake.schemas import DRIFT
from modwatch.monitoring.publishing.changes import (
    NOTED,
    Change,
    drift_effects,
    drift_status,
)
from modwatch.monitoring.publishing.changes import changes as changes_of
from modwatch.monitoring.publishing.content import DayTables
from modwatch.monitoring.publishing.days import Day
from modwatch.monitoring.publishing.keys import deployed_estimates

DAY = date(2026, 1, 5)
FACTS = Day(
    day=DAY,
    comments=2000,
    quarantined=0,
    flagged=3,
    routed=100,
    labelled=100,
    model_version="1",
    strategy="uncertainty",
    review_fraction=0.05,
    checks="passed",
)


def changes(now, before, *, among):
    tables = DayTables(estimates=now, own=now, own_before=before)
    estimates = deployed_estimates(tables, FACTS)
    return changes_of(estimates.own, estimates.own_before, among=among)


def table(metric="accuracy", value=0.9, half=0.02, n=100, status="ok", strategy=None, alpha=None):
    row = {"metric": metric, "value": value, "low": value - half, "high": value + half}
    return pd.DataFrame([row | {"n": n, "status": status, "strategy": strategy, "alpha": alpha}])


def test_intervals_that_lie_far_apart_are_a_change():
    count, changed = changes(table(value=0.7), table(value=0.9), among=16)
    assert (count, changed) == (1, [Change(metric="accuracy", before=0.9, now=0.7)])


def test_what_is_equal_or_insufficient_or_new_is_none():
    same = changes(table(), table(), among=1)
    absent = changes(table(value=0.1, status="insufficient"), table(), among=1)
    new = changes(table(), table().iloc[:0], among=1)
    assert same == (1, [])
    assert absent == new == (0, [])


def test_the_more_is_asked_the_larger_a_change_must_be():
    one, other = table(value=0.90), table(value=0.935)
    assert changes(one, other, among=1)[1]
    assert not changes(one, other, among=16)[1]


def test_other_settings_are_not_compared():
    elsewhere = {"metric": "oc_accuracy", "strategy": "toxicity", "alpha": 0.05}
    assert changes(table(value=0.1, **elsewhere), table(**elsewhere), among=1) == (0, [])


def test_a_day_seen_whole_may_still_differ_by_chance():
    """All three flagged comments were right, then five of nine: known exactly, and no news."""
    before = table("precision_flagged", 1.0, half=0.0, n=3)
    now = table("precision_flagged", 5 / 9, half=0.0, n=9)
    assert changes(now, before, among=1) == (1, [])
    before, now = before.assign(n=300), now.assign(n=900)
    assert changes(now, before, among=16)[1]


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 0.2))
def test_neither_side_is_preferred(one, other, half):
    there = changes(table(value=one, half=half), table(value=other, half=half), among=4)
    back = changes(table(value=other, half=half), table(value=one, half=half), among=4)
    assert len(there[1]) == len(back[1])


def row(metric="psi", feature="prob", reference="trailing", value=0.0, low=np.nan, high=np.nan):
    known = {"metric": metric, "feature": feature, "reference": reference, "value": value}
    return known | {"low": low, "high": high, "dt": DAY, "status": "ok"}


def severity(**known):
    return drift_effects(pd.DataFrame([row(**known)]))["severity"].item()


def test_what_is_noted_has_severity_one_and_volumes_weigh_alike():
    for sign in (1, -1):
        for metric, feature in (("psi", "prob"), ("missing_share_change", "x")):
            value = sign * NOTED[metric]
            assert severity(metric=metric, feature=feature, value=value) == pytest.approx(1)
        volume = severity(metric="volume_ratio", feature="comments", value=1.5**sign)
        assert volume == pytest.approx(1)
    assert severity(metric="volume_ratio", feature="comments", value=0.0) > 100, "the worst"


def test_what_says_the_same_as_another_is_left_out():
    rows = [row("wasserstein"), row("jensen_shannon", "prob"), row("queue_waiting", "queue")]
    assert drift_effects(pd.DataFrame(rows)).empty


def test_insufficient_has_no_severity():
    table = pd.DataFrame([row(value=9.0) | {"status": "insufficient"}])
    assert drift_effects(table)["severity"].isna().all()
    assert drift_status(table) == ("unknown", "")
    assert drift_status(DRIFT.empty_table().to_pandas()) == ("unknown", "")


def test_the_worst_of_the_last_day_is_the_status(drift_of):
    table = drift_of(DAY, 4)
    assert drift_status(table) == ("shift", "scores, fixed reference")
    assert drift_status(table[table["dt"] < DAY]) == ("none", "")


def test_what_may_be_noise_is_not_called_drift():
    assert drift_status(pd.DataFrame([row(value=0.3, low=0.0, high=0.6)])) == ("none", "")
    assert drift_status(pd.DataFrame([row(value=0.3, low=0.15, high=0.6)]))[0] == "noted"
    signed = row("flagged_share_change", "flagged", value=-0.1, low=-0.12, high=-0.05)
    assert drift_status(pd.DataFrame([signed]))[0] == "shift"
    around = row("flagged_share_change", "flagged", value=-0.1, low=-0.3, high=0.05)
    assert drift_status(pd.DataFrame([around]))[0] == "none"
