#!/usr/bin/env bash
# Sigmoid calibration depends on the unit of the sample weights.
#
# Versions   scikit-learn 1.9.1, scipy 1.17.1, numpy 2.4.6.
# Expected   multiplying all weights by one number changes nothing: only their ratios count, as for
#            isotonic and temperature calibration by the same class, and as for most estimators.
# Seen       With inverse probabilities of selection that were normalised to sum to one, method="sigmoid",
#            the default, gives a clear case 0.51 where weights of mean one give 0.99, and a harmless text
#            0.46 instead of 0.02. Platt's targets (positives + 1) / (positives + 2) and
#            1 / (negatives + 2) are computed from sums of weights: if those sums are below one, the
#            targets lie near one half. Nothing warns, and the ranking (AUC) is as good as before.
# Hurt       whoever calibrates on a sample drawn with unequal probabilities, as labels of moderators
#            are: any threshold on the chance then sends everything or nothing to people.
# Instead    scale weights to mean one before fit, or use isotonic or temperature.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q scikit-learn==1.9.1 scipy==1.17.1 numpy==2.4.6
"$folder/venv/bin/python" -W error - <<'PYTHON'
import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.naive_bayes import GaussianNB

generator = np.random.default_rng(0)
toxic = generator.random(4000) < 0.3
score = generator.normal(3.0 * toxic, 1.0)[:, None]
weight = 1 / np.where(score[:, 0] > 1.5, 0.8, 0.2)  # by the chance of being labelled
asked = [[-1.0], [1.5], [4.0]]
found, base = {}, {}
for unit, weights in (("mean one", weight / weight.mean()), ("sum one", weight / weight.sum())):
    base[unit] = GaussianNB().fit(score, toxic, sample_weight=weights).predict_proba(asked)[:, 1]
    for method in ("sigmoid", "isotonic", "temperature"):
        calibrated = CalibratedClassifierCV(GaussianNB(), method=method).fit(score, toxic, sample_weight=weights)
        found[method, unit] = calibrated.predict_proba(asked)[:, 1]
        print(f"{method}, weights of {unit}:", found[method, unit].round(4).tolist())
moved = {m: np.abs(found[m, "mean one"] - found[m, "sum one"]).max() for m, _ in found}
base_moved = np.abs(base["mean one"] - base["sum one"]).max()
print("moved by:", {m: float(by.round(6)) for m, by in moved.items()}, "without calibration:", base_moved.round(6))
stated = moved["sigmoid"] > 0.4 and max(moved["isotonic"], moved["temperature"], base_moved) < 1e-4
raise SystemExit(not stated)
PYTHON
echo "as stated"
