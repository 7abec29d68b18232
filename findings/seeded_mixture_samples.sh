#!/usr/bin/env bash
# A sample that is drawn with a fixed random_state depends on the processor.
#
# Versions   numpy 2.4.6, scipy 1.17.1, scikit-learn 1.9.1 (wheels with OpenBLAS), x86-64.
# Expected   sklearn.mixture.GaussianMixture.sample and scipy.stats.multivariate_normal.rvs return
#            the same numbers for the same random_state, up to rounding: scikit-learn's glossary
#            promises reproducible results for an int.
# Seen       Where eigenvalues of a covariance are equal, as of equally correlated errors of
#            annotators, OpenBLAS's kernels for Nehalem, Haswell and SkylakeX give three samples that
#            have nothing in common, as if the seed were another. Both
#            functions colour normal numbers by a singular value decomposition, whose vectors are not
#            unique there. `Generator.multivariate_normal(method="cholesky")` agrees to rounding.
# Hurt       whoever publishes seeded simulations, bootstraps or audits that others verify on
#            another machine: the verification fails although nothing was changed.
# Instead    draw by a factor that is unique: Cholesky's, or the symmetric root V·diag(√λ)·Vᵀ.
set -euo pipefail
[ "$(uname -m)" = x86_64 ] || { echo "needs x86-64: OPENBLAS_CORETYPE chooses among its kernels"; exit 0; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1
cat >"$folder/draw.py" <<'PYTHON'
import json

import numpy as np
from scipy import stats
from sklearn.mixture import GaussianMixture

size = 12
covariance = np.full((size, size), 0.3) + 0.7 * np.eye(size)
mean = np.zeros(size)
mixture = GaussianMixture(1, random_state=0)
mixture.weights_, mixture.means_, mixture.covariances_ = np.ones(1), mean[None], covariance[None]
generator = np.random.default_rng(0)
draws = {
    "mixture": mixture.sample(1000)[0],
    "scipy": stats.multivariate_normal(mean, covariance).rvs(1000, random_state=0),
    "cholesky": generator.multivariate_normal(mean, covariance, 1000, method="cholesky"),
}
print(json.dumps({name: [found[0, 0], (found[:, 0] > 1).mean()] for name, found in draws.items()}))
PYTHON
for kernel in Nehalem Haswell; do
    OPENBLAS_NUM_THREADS=1 OPENBLAS_CORETYPE=$kernel "$folder/venv/bin/python" "$folder/draw.py" >"$folder/$kernel"
    echo "$kernel: $(cat "$folder/$kernel")"
done
"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import json
import sys
from pathlib import Path

one, other = (json.loads((Path(sys.argv[1]) / name).read_text()) for name in ("Nehalem", "Haswell"))
apart = {name: abs(one[name][0] - other[name][0]) for name in one}
sys.exit(not (apart["mixture"] > 0.01 and apart["scipy"] > 0.01 and apart["cholesky"] < 1e-9))
PYTHON
echo "as stated"
