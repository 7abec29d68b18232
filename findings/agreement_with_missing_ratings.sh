#!/usr/bin/env bash
# A missing rating is counted as a label that annotators agree or disagree upon.
#
# Versions   statsmodels 0.15.0, krippendorff 0.9.0, pandas 3.1.1, numpy 2.4.6, scipy 1.17.1.
# Expected   aggregate_raters of a table of comments by annotators, with NaN where someone did not rate,
#            counts the ratings, and fleiss_kappa refuses comments with different numbers of them,
#            which it does not support; or NaN is an error.
# Seen       NaN becomes a category of its own, as only the second result, the list of labels, shows. Each
#            row then sums to the number of annotators, so that the check for equal numbers passes. Where
#            each comment has three of six annotators who are right in 95 % of the cases, kappa is 0.0
#            instead of 0.8. Where annotators guess and half of the comments were not rated yet, kappa
#            rises from 0.0 to 0.14, as all "agree" there.
# Hurt       whoever pivots labels of a crowd, where nobody rates everything, and publishes Fleiss' kappa
#            or drops a guideline for it: the figure tells how the work was shared out.
# Instead    count per label without NaN, comments with equal numbers of ratings only; or use
#            Krippendorff's alpha, which allows for missing ratings.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q statsmodels==0.15.0 krippendorff==0.9.0 pandas==3.1.1 numpy==2.4.6 scipy==1.17.1
"$folder/venv/bin/python" - <<'PYTHON'
import krippendorff
import numpy as np
from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa


def ratings(right, unrated=0, comments=600, annotators=6, each=3):
    """Return a table with `each` ratings, 0 or 1, in a row and NaN elsewhere."""
    generator = np.random.default_rng(0)
    truth = generator.integers(0, 2, (comments, 1))
    table = np.where(generator.random((comments, annotators)) < right, truth, 1 - truth).astype(float)
    for number, row in enumerate(table):
        row[generator.permutation(annotators)[each if number >= unrated else 0 :]] = np.nan
    return table


def kappas(name, table):
    counts, labels = aggregate_raters(table)
    own = np.stack([(table == 0).sum(1), (table == 1).sum(1)], axis=1)
    seen, counted = fleiss_kappa(counts), fleiss_kappa(own[own.sum(1) > 0])
    alpha = krippendorff.alpha(table.T, level_of_measurement="nominal")
    print(f"{name}: kappa {seen:.3f}, without NaN {counted:.3f}, alpha {alpha:.3f}, labels {labels.tolist()}")
    return seen, counted, alpha


good = kappas("right in 95 %", ratings(0.95))
guessed = kappas("guessed, half unrated", ratings(0.5, unrated=300))
low = good[0] < 0.1 and min(good[1:]) > 0.75
high = guessed[0] > 0.1 and max(guessed[1:]) < 0.05
raise SystemExit(not (low and high))
PYTHON
echo "as stated"
