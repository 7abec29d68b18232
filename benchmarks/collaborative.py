"""The collaboration curve against the plain loop over α with scikit-learn on relabelled copies.

    python benchmarks/collaborative.py [comments]

Both compute 8 α × 2 strategies × 5 metrics on the same comments in the same run; they must agree
to 1e-9. Then growth with n, and the peak of memory in arrays of n float64; at last that peak where
half of all comments are toxic, since positives cost more than negatives.
"""

import math
import sys
import time
import tracemalloc

import numpy as np
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    precision_score,
    recall_score,
    roc_auc_score,
    roc_curve,
)

from modwatch.statistics import REVIEW_FRACTIONS, collaboration_curve, review_scores
from modwatch.statistics.collaboration.collaborative import METRICS

STRATEGIES = ("uncertainty", "toxicity")


def comments(size, seed=0, shift=-5):
    """Return labels and probabilities of an over-confident model; about 3 % are positive."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(shift, 2, size)
    label = (rng.random(size) < 1 / (1 + np.exp(-latent))).astype(int)
    return label, 1 / (1 + np.exp(-1.5 * latent))


def davis_goadrich(label, score):
    """Return the interpolated area from scikit-learn's curve; at the same thresholds."""
    fpr, tpr, _ = roc_curve(label, score, drop_intermediate=False)
    tp, fp = tpr * label.sum(), fpr * (1 - label).sum()
    gain, rise = np.diff(tp), np.diff(tp + fp)
    some = gain > 0
    gain, rise, tp, fp = gain[some], rise[some], tp[:-1][some], fp[:-1][some]
    slope = rise / gain - 1
    offset = fp - slope * tp
    total = np.where(tp + fp > 0, tp + fp, 1.0)
    log = np.where(tp + fp > 0, np.log1p(rise / total), 0.0)
    return float((gain / (1 + slope) - offset / (1 + slope) ** 2 * log).sum() / label.sum())


def plain_loop(label, prob, precision_area):
    """Return the table (16, 5): for each strategy and α, relabel a copy and call scikit-learn."""
    decision = (prob > 0.5).astype(int)
    wrong = decision != label
    table = []
    for strategy in STRATEGIES:
        order = np.argsort(-review_scores(prob, strategy))
        for alpha in REVIEW_FRACTIONS:
            reviewed = np.zeros(label.size, bool)
            reviewed[order[: math.floor(alpha * label.size + 1e-9)]] = True
            score = np.where(reviewed, np.where(label == 1, 2.0, -1.0), prob)
            table.append(
                [
                    accuracy_score(label, np.where(reviewed, label, decision)),
                    roc_auc_score(label, score),
                    precision_area(label, score),
                    precision_score(wrong, reviewed),
                    recall_score(wrong, reviewed),
                ]
            )
    return np.array(table)


def timed(function, *args, **kwargs):
    """Return the result and the seconds it took."""
    start = time.perf_counter()
    result = function(*args, **kwargs)
    return result, time.perf_counter() - start


def best(function, *args, repeats=3, **kwargs):
    """Return the result and the shortest of some times."""
    runs = [timed(function, *args, **kwargs) for _ in range(repeats)]
    return runs[-1][0], min(seconds for _, seconds in runs)


def compare(size):
    """Print the ratio to the plain loop, for both ways to integrate precision."""
    label, prob = comments(size)
    for name, area in (("step", average_precision_score), ("davis-goadrich", davis_goadrich)):
        ours, seconds = best(collaboration_curve, label, prob, interpolation=name)
        plain, plain_seconds = timed(plain_loop, label, prob, area)
        difference = np.abs(ours[list(METRICS)].to_numpy(float) - plain).max()
        print(
            f"{size:>10,} comments, {name:<14}: {seconds:6.2f} s,"
            f" plain loop {plain_seconds:6.2f} s, ratio {plain_seconds / seconds:5.1f},"
            f" largest difference {difference:.1e}"
        )
        if difference > 1e-9:
            sys.exit("the two do not agree to 1e-9")


def growth(sizes):
    """Print seconds and peak memory against n."""
    for size in sizes:
        label, prob = comments(size)
        _, seconds = best(collaboration_curve, label, prob, repeats=1 if size > 10**6 else 3)
        per = seconds / (size * math.log2(size))
        print(
            f"{size:>10,} comments: {seconds:7.3f} s, {per * 1e9:6.2f} ns per n·log2 n,"
            f" peak {peak(label, prob):5.1f} arrays of n"
        )
    print(f"{size:>10,} comments, half of them toxic: peak {peak(*comments(size, shift=0)):5.1f}")


def peak(label, prob):
    """Return the peak of memory in arrays of n float64, without the columns passed in."""
    tracemalloc.start()
    collaboration_curve(label, prob)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / (8 * label.size)


if __name__ == "__main__":
    largest = int(sys.argv[1]) if len(sys.argv) > 1 else 10**6
    compare(min(largest, 10**6))
    growth([size for size in (10**4, 10**5, 10**6, 10**7) if size <= largest])
