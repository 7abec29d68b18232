"""Prediction sets against those of MAPIE, and their coverage.

    pip install mapie
    python benchmarks/conformal.py [--repetitions 200]

Each repetition draws 500 calibration and 2,000 new comments whose labels follow the probabilities,
sharpened so that the model is over-confident. MAPIE's split conformal classifier (score `lac`)
takes the same probabilities. Printed: the share of equal sets, and the coverage of both.
"""

import argparse

import numpy as np
from mapie.classification import SplitConformalClassifier
from sklearn.base import BaseEstimator, ClassifierMixin

from modwatch.statistics import conformal_prediction


class Known(ClassifierMixin, BaseEstimator):
    """A classifier whose input is its probability."""

    def fit(self, _features, labels):
        self.classes_ = np.unique(labels)
        return self

    def predict_proba(self, features):
        return np.column_stack([1 - features[:, 0], features[:, 0]])

    def predict(self, features):
        return (features[:, 0] > 0.5).astype(int)


def drawn(rng, size):
    true = rng.beta(0.4, 1.2, size)
    odds = (true / (1 - true)) ** 2
    return np.clip(odds / (1 + odds), 1e-6, 1 - 1e-6), (rng.random(size) < true).astype(int)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=200)
    repetitions = parser.parse_args().repetitions
    for coverage in (0.8, 0.9, 0.95):
        equal, ours, theirs = [], [], []
        for seed in range(repetitions):
            rng = np.random.default_rng(seed)
            (prob, label), (new, truth) = drawn(rng, 500), drawn(rng, 2_000)
            mine = conformal_prediction(label, prob, new, coverage=coverage).contains
            known = Known().fit(prob[:, None], label)
            other = SplitConformalClassifier(
                known, confidence_level=coverage, conformity_score="lac", prefit=True
            ).conformalize(prob[:, None], label)
            sets = other.predict_set(new[:, None])[1][:, :, 0]
            rows = np.arange(truth.size)
            equal.append((mine == sets).all(axis=1).mean())
            ours.append(mine[rows, truth].mean())
            theirs.append(sets[rows, truth].mean())
        print(
            f"coverage {coverage:.2f}: equal sets {np.mean(equal):.5f}, "
            f"ours {np.mean(ours):.4f}, MAPIE {np.mean(theirs):.4f}"
        )


if __name__ == "__main__":
    main()
