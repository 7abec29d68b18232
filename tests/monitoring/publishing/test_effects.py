from datetime import date

import numpy as np
import pandas as pd
import pytest

from modwatch.data.lake.schemas import DRIFT
from modwatch.monitoring.publishing.effects import NOTED, drift_effects, drift_status

DAY = date(2026, 1, 5)


def row(metric="psi", feature="prob", reference="trailing", value=0.0, low=np.nan, high=np.nan):
    known = {"metric": metric, "feature": feature, "reference": reference, "value": value}
    return known | {"low": low, "high": high, "dt": DAY, "status": "ok"}


def severity(**known):
    return drift_effects(pd.DataFrame([row(**known)]))["severity"].item()


@pytest.mark.parametrize(("metric", "feature"), [("psi", "prob"), ("missing_share_change", "x")])
def test_what_is_noted_has_severity_one(metric, feature):
    for sign in (1, -1):
        value = sign * NOTED[metric]
        assert severity(metric=metric, feature=feature, value=value) == pytest.approx(1)


@pytest.mark.parametrize("ratio", [1.5, 1 / 1.5])
def test_more_and_less_volume_weigh_alike(ratio):
    found = severity(metric="volume_ratio", feature="comments", value=ratio)
    assert found == pytest.approx(1)


def test_no_comment_at_all_is_the_worst_volume():
    assert severity(metric="volume_ratio", feature="comments", value=0.0) > 100


def test_what_says_the_same_as_another_is_left_out():
    rows = [row("wasserstein"), row("jensen_shannon", "prob"), row("queue_waiting", "queue")]
    assert drift_effects(pd.DataFrame(rows)).empty


def test_insufficient_has_no_severity():
    table = pd.DataFrame([row(value=9.0) | {"status": "insufficient"}])
    assert drift_effects(table)["severity"].isna().all()
    assert drift_status(table) == ("unknown", "")


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


def test_no_drift_at_all_is_unknown():
    assert drift_status(DRIFT.empty_table().to_pandas()) == ("unknown", "")
