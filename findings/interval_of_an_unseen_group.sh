#!/usr/bin/env bash
# A conformal interval for a group without calibration examples is the point zero.
#
# Versions   crepes 0.9.1, numpy 2.4.6, pandas 3.1.1, scikit-learn 1.9.1.
# Expected   a Mondrian regressor that meets a category it was never calibrated for gives the interval
#            from minus to plus infinity, or an error: one calibration example too few already gives
#            infinity with a warning, and ConformalClassifier gives such a group every label.
# Seen       ConformalRegressor, ConformalPredictiveSystem and WrapRegressor give [0, 0], whatever the
#            prediction, without a warning: the results start as zeros and only the known categories
#            are filled in. The interval also reads as the most certain one of the batch.
# Hurt       whoever calibrates per language, platform or queue, such as for the views or the minutes
#            of review that a report will need: the first texts of a new language get a "95 %" interval
#            that holds nothing but zero, and a rule such as "a person decides where it is wide" passes
#            over them.
# Instead    keep the calibrated categories and check each batch against them; widen others yourself.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q crepes==0.9.1 numpy==2.4.6 pandas==3.1.1 scikit-learn==1.9.1
"$folder/venv/bin/python" - <<'PYTHON'
import warnings

import numpy as np
from crepes import ConformalClassifier, ConformalPredictiveSystem, ConformalRegressor

warnings.simplefilter("error")  # a warning would be an answer, too
residuals = np.linspace(-3, 3, 400)
known = np.array(["de", "en"] * 200)
predicted = np.array([40.0, 40.0, 40.0])
asked = np.array(["de", "en", "fr"])
unseen = {}
for kind in (ConformalRegressor, ConformalPredictiveSystem):
    model = kind()
    model.fit(residuals, bins=known)
    intervals = model.predict_int(predicted, bins=asked, confidence=0.95)
    for language, interval in zip(asked, intervals.round(2).tolist()):
        print(f"{kind.__name__}, {language}: {interval}")
    assert (intervals[:2, 0] < 40).all() and (intervals[:2, 1] > 40).all()
    unseen[kind.__name__] = intervals[2].tolist()

classifier = ConformalClassifier()
classifier.fit(np.linspace(0, 1, 400), bins=known)
labels = classifier.predict_set(np.full((3, 2), 0.99), bins=asked, confidence=0.9, smoothing=False)
print("ConformalClassifier, fr:", labels[2].tolist())
raise SystemExit(any(interval != [0, 0] for interval in unseen.values()) or labels[2].tolist() != [1, 1])
PYTHON
echo "as stated"
