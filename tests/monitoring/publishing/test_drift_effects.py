from datetime import date

import numpy as np
import pandas as pd
import pytest

from modwatch.data.lake.schemas import DRIFT
from modwatch.monitoring.publishing.drift_effects import NOTED, drift_effects

DAY = date(2026, 1, 5)


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


def test_what_is_no_comparison_is_left_out():
    rows = [row("flagged_share", "flagged"), row("queue_waiting", "queue")]
    assert drift_effects(pd.DataFrame(rows)).empty


def test_insufficient_has_no_severity():
    table = pd.DataFrame([row(value=9.0) | {"status": "insufficient"}])
    assert drift_effects(table)["severity"].isna().all()
    assert drift_effects(DRIFT.empty_table().to_pandas()).empty
