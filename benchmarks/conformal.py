"""Prediction sets against those of MAPIE, and their coverage, of all comments and by label.

    pip install mapie
    python benchmarks/conformal.py [--repetitions 200] [--comments 2000] [--processes 2]

Each repetition draws 500 calibration and 2,000 new comments whose labels follow the probabilities,
sharpened so that the model is over-confident. MAPIE's split conformal classifier (score `lac`)
takes the same probabilities; by label it takes the calibration comments with that label. Printed:
the share of equal sets, and the coverage of both.

Then the sets of live windows, as `coverage.py` simulates them: two weeks, α = 0.1, people who err
in FPR/FNR of the labels, a tenth of which is confirmed. Sets at 90 % of all comments, calibrated on
both labels together and on each label: which share of toxic and of harmless comments has its label
in its set, the share of sets that are not one label, and how often the 95 % interval of the
published figure holds that of all comments.
"""

import argparse
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
from coverage import DAYS, ERRORS, THRESHOLD, Team, comments
from sklearn.base import BaseEstimator, ClassifierMixin

from modwatch.statistics import conformal_prediction
from modwatch.statistics.live.conformal import crossed_sets
from modwatch.statistics.live.estimator import Estimator
from modwatch.statistics.live.sample import Sample

CELLS = list(product((0.01, 0.05, 0.2), (ERRORS[0], ERRORS[1], ERRORS[3])))


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


def mapie(prob, label, new, coverage, having):
    """Return MAPIE's sets, calibrated on the comments in `having`."""
    from mapie.classification import SplitConformalClassifier  # also imported without MAPIE

    known = Known().fit(prob[:, None], label)
    other = SplitConformalClassifier(
        known, confidence_level=coverage, conformity_score="lac", prefit=True
    )
    with warnings.catch_warnings():  # MAPIE warns of calibration comments of one label
        warnings.simplefilter("ignore", UserWarning)
        other = other.conformalize(prob[having, None], label[having])
    return other.predict_set(new[:, None])[1][:, :, 0]


def against_mapie(repetitions):
    for coverage, by_label in product((0.8, 0.9, 0.95), (False, True)):
        equal, ours, theirs = [], [], []
        for seed in range(repetitions):
            rng = np.random.default_rng(seed)
            (prob, label), (new, truth) = drawn(rng, 500), drawn(rng, 2_000)
            mine = conformal_prediction(label, prob, new, coverage=coverage, by_label=by_label)
            parts = [label == one for one in (0, 1)] if by_label else 2 * [label >= 0]
            sets = [mapie(prob, label, new, coverage, part)[:, k] for k, part in enumerate(parts)]
            sets, rows = np.column_stack(sets), np.arange(truth.size)
            equal.append((mine.contains == sets).all(axis=1).mean())
            for found, of in ((ours, mine.contains), (theirs, sets)):
                hit = of[rows, truth]
                found.append([hit.mean(), hit[truth == 1].mean(), hit[truth == 0].mean()])
        shown = ("/".join(f"{share:.4f}" for share in np.mean(f, axis=0)) for f in (ours, theirs))
        print(
            f"coverage {coverage:.2f}, {'by label' if by_label else 'together'}: "
            f"equal sets {np.mean(equal):.5f}; all/toxic/harmless "
            f"ours {next(shown)}, MAPIE {next(shown)}"
        )


def sets_of_all(sample, toxic, prob, top, *, by_label=True, group=None, new_group=None):
    """Return the sets (N, 2) of all comments, each with the weight of a labelled one like it."""
    order = np.flatnonzero(~sample.top)[np.argsort(sample.prob[~sample.top])]
    near = order[np.clip(np.searchsorted(sample.prob[order], prob), 0, order.size - 1)]
    return conformal_prediction(
        np.repeat([0, 1], toxic.size),
        np.tile(sample.prob, 2),
        prob,
        by_label=by_label,
        sample_weight=np.concatenate([sample.weight * (1 - toxic), sample.weight * toxic]),
        new_weight=np.where(top, 1.0, sample.weight[near]),
        groups=None if group is None else np.tile(group, 2),
        new_groups=new_group,
    ).contains


def window(seed, size, cell):
    """Return rows of coverage by kind of sets and label, with the published interval."""
    rng, (prevalence, errors) = np.random.default_rng(seed), cell
    truth = [comments(rng, size, prevalence, 1.0) for _ in range(DAYS)]
    team = Team(rng, errors, "independent", 1.0)
    days = [team.review(*day) for day in truth]
    sample = Sample(days)
    labels = sample.true_labels(seed=seed)
    estimator = Estimator(sample, threshold=THRESHOLD, seed=seed, labels=labels)
    published = crossed_sets(sample, labels.mean)
    found = {
        "harmless": estimator.set_coverage_of(0, published, metric="harmless"),
        "toxic": estimator.set_coverage_of(1, published, metric="toxic"),
        "all": estimator.set_coverage(published, metric="all"),
        "unsure": estimator.unsure_share(published),
    }
    prob, label = (np.concatenate(part) for part in zip(*truth, strict=True))
    top = np.concatenate([day.stratum == 0 for day in days])
    rows = []
    for by_label in (False, True):
        sets = sets_of_all(sample, labels.mean, prob, top, by_label=by_label)
        hit = sets[np.arange(label.size), label]
        shares = {
            "harmless": hit[label == 0].mean(),
            "toxic": hit[label == 1].mean(),
            "all": hit.mean(),
            "unsure": (sets.sum(axis=1) != 1).mean(),
        }
        for name, share in shares.items():
            row = {"sets": "by label" if by_label else "together", "of": name, "share": share}
            estimate = found[name]
            if by_label and estimate.value is not None:
                row |= {
                    "published": estimate.value,
                    "held": estimate.low - 1e-9 <= share <= estimate.high + 1e-9,
                    "width": estimate.high - estimate.low,
                    "n": estimate.n,
                    "effective_n": estimate.effective_n,
                }
            rows.append(row)
    rates = f"{100 * errors[0]:g}/{100 * errors[1]:g}"
    return pd.DataFrame(rows).assign(prevalence=prevalence, errors=rates)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--comments", type=int, default=2_000)
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    against_mapie(asked.repetitions)
    with ProcessPoolExecutor(asked.processes) as pool:
        frames = [
            frame
            for cell in CELLS
            for frame in pool.map(
                partial(window, size=asked.comments, cell=cell), range(asked.repetitions)
            )
        ]
    frame = pd.concat(frames).astype({"held": float})
    by = ["sets", "prevalence", "errors", "of"]
    print(f"{asked.repetitions} windows of {DAYS} days of {asked.comments} comments a cell")
    print(frame.groupby(by).mean().round(3).to_string(na_rep=""))


if __name__ == "__main__":
    main()
