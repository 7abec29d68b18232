#!/usr/bin/env bash
# Which label wins a tie of annotators depends on how the label is spelled.
#
# Versions   crowd-kit 1.4.2, pandas 2.3.3, numpy 2.2.6, scipy 1.15.3, scikit-learn 1.6.1.
# Expected   renaming a label renames the result and changes nothing else; a tie is broken at random
#            or by the skill of the annotators, or is left open.
# Seen       MajorityVote gives every tie to the label that comes first in the alphabet. For the same
#            votes of two annotators per comment, 9 % of the comments are toxic where the other label is
#            called "ok", and 21 % where it is called "unproblematic" (10 % are in truth). The votes are
#            pivoted, which sorts the labels, and the first column of the largest share is taken.
#            DawidSkene, which starts from the shares, finds the same comments by either name.
# Hurt       whoever has an even number of labels per comment: prevalence, gold labels and the scores of
#            annotators change when a guideline is translated or a label gets a better name, and the
#            error has one direction, so that more comments do not cure it.
# Instead    read predict_proba and treat a share of 0.5 as a tie of its own: ask a third person.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q crowd-kit==1.4.2 pandas==2.3.3 numpy==2.2.6 scipy==1.15.3 scikit-learn==1.6.1
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import numpy as np
import pandas as pd
from crowdkit.aggregation import DawidSkene, MajorityVote


def votes(other):
    """Return two votes on each of 1,000 comments, always the same ones; `other` is the harmless label."""
    generator = np.random.default_rng(0)
    rows = []
    for comment in range(1000):
        toxic = generator.random() < 0.1
        for annotator in generator.permutation(10)[:2]:
            said = toxic ^ (generator.random() < 0.07)
            rows.append((comment, annotator, "toxic" if said else other))
    return pd.DataFrame(rows, columns=["task", "worker", "label"])


names = ("ok", "unproblematic")
toxic = {}
for other in names:
    table = votes(other)
    ties = (table.groupby("task")["label"].nunique() == 2).to_numpy()
    for kind in (MajorityVote, DawidSkene):
        toxic[kind, other] = (kind().fit_predict(table) == "toxic").to_numpy()
        print(f'"{other}", {ties.mean():.1%} ties, {kind.__name__}: {toxic[kind, other].mean():.1%} toxic')
first, second = (toxic[MajorityVote, other] for other in names)
by_name = not first[ties].any() and second[ties].all() and (first == second)[~ties].all()
raise SystemExit(not (by_name and (toxic[DawidSkene, "ok"] == toxic[DawidSkene, "unproblematic"]).all()))
PYTHON
echo "as stated"
