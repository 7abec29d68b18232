#!/usr/bin/env bash
# The default drift test stops seeing a threefold rise of a rare flag once there are enough rows.
#
# Versions   evidently 0.7.23, numpy 2.3.5, pandas 2.3.3, scipy 1.17.1, scikit-learn 1.9.1.
# Expected   where the share of removed comments rises from 2 % to 6 %, ValueDrift reports a drift, and
#            the more surely the more rows there are.
# Seen       With 900 rows a day it reports a drift (p = 0.00001). With 1,100 rows, and with 100,000, it
#            reports none. Above 1,000 rows of reference the default changes from a test to the
#            Jensen-Shannon distance with the bound 0.1. The manual says so, but not what follows: the bound
#            does not know the base rate, and a share of 2 % has to reach nearly 8 % before it counts.
# Hurt       whoever watches rare classes of a large platform by the defaults or by DataDriftPreset: the
#            shares of removals, threats or appeals may triple on green dashboards, although a pilot with
#            few rows raised the alarm and seemed to prove the monitor.
# Instead    name the test for rare flags, such as method="z" or a bound on the ratio of the shares.
set -euo pipefail
export DO_NOT_TRACK=1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q evidently==0.7.23 numpy==2.3.5 pandas==2.3.3 scipy==1.17.1 scikit-learn==1.9.1
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import numpy as np
import pandas as pd
from evidently import DataDefinition, Dataset, Report
from evidently.metrics import ValueDrift

columns = DataDefinition(categorical_columns=["removed"])


def day(rows, percent):
    removed = np.where(np.arange(rows) % 100 < percent, "yes", "no")
    return Dataset.from_pandas(pd.DataFrame({"removed": removed}), data_definition=columns)


def drifts(rows, percent, **chosen):
    report = Report([ValueDrift(column="removed", **chosen)], include_tests=True)
    found = report.run(day(rows, percent), day(rows, 2)).dict()
    status = found["tests"][0]["status"].name
    print(f"{rows:>7} rows, 2 % to {percent} %: {status}; {found['tests'][0]['description']}")
    return status == "FAIL"


small = [drifts(900, 4), drifts(900, 6)]
large = [drifts(rows, 6) for rows in (1100, 100_000)]
named = drifts(100_000, 6, method="z", threshold=0.05)
raise SystemExit(not (all(small) and not any(large) and named))
PYTHON
echo "as stated"
