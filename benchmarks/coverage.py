"""Coverage of the 95 % intervals of live estimates, beside the unweighted estimate.

    python benchmarks/coverage.py [repetitions a cell, default 100] [comments a day, default 5000]

Each repetition simulates a window of two weeks, α = 0.1, a tenth of it the random slice, and
labels a part of the routed comments. Cells: prevalence 1, 5, 20 %; calibrated and over-confident
model; 60, 80 and 100 % of the labels received. The true values are the window's own. The naive
estimate treats the labelled comments as a simple random sample, with the textbook interval.
"""

import sys
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import product

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import rankdata

from modwatch import metrics
from modwatch.metrics import LabelledDay, measure_days
from modwatch.metrics.collaborative import METRICS
from modwatch.metrics.estimation.sample import Sample
from modwatch.metrics.intervals import mid_p
from modwatch.routing import RoutingPolicy, design_routing

DAYS = 14
POLICY = RoutingPolicy(review_fraction=0.1)
FRACTION = {"review_fraction": POLICY.review_fraction}
ASKED = {"review_fractions": [POLICY.review_fraction], "strategies": [POLICY.strategy]}
CELLS = list(product((0.01, 0.05, 0.2), (1.0, 2.5), (0.6, 0.8, 1.0)))
CELL = ["prevalence", "sharpness", "completion"]
#: Lowest and highest coverage allowed over all cells, and largest bias in standard errors.
FLOORS = {
    "accuracy": (0.93, 0.98, 0.2),
    "oc_accuracy": (0.93, 0.98, 0.2),
    "review_efficiency": (0.93, 0.98, 0.2),
    "oc_auroc": (0.92, 1.0, 0.2),
}


def comments(rng, size, prevalence, sharpness):
    """Return scores and labels of a day; sharpness 1 is calibrated."""
    latent = rng.normal(0, 2, size)
    shift = brentq(lambda base: expit(base + latent).mean() - prevalence, -20, 5)
    label = (rng.random(size) < expit(shift + latent)).astype(int)
    return expit(sharpness * (shift + latent)), label


def reviewed(rng, prob, label, completion):
    """Return the day after review."""
    routing = design_routing(prob, rng.integers(0, 2**64, prob.size, dtype=np.uint64), POLICY)
    stratum, labelled = np.full(prob.size, -1), np.zeros(prob.size, bool)
    stratum[routing.row] = routing.stratum
    labelled[routing.row] = rng.random(routing.row.size) < completion
    return LabelledDay(
        prob=prob,
        stratum=stratum,
        label=np.where(labelled, label, 0),
        labelled=labelled,
        population=routing.strata["population"].to_numpy(),
        sample=routing.strata["sample"].to_numpy(),
    )


def exact(days):
    """Return the true value of each metric of days of equal size, each with its own capacity."""
    prob, label = (np.concatenate(part) for part in zip(*days, strict=True))
    ranks = [rankdata(-metrics.review_scores(day[0], POLICY.strategy)) for day in days]
    at = label, prob, -np.concatenate(ranks)
    return {name: getattr(metrics, name)(*at, **FRACTION) for name in METRICS} | {
        "accuracy": metrics.accuracy(label, prob),
        "prevalence": metrics.prevalence(label),
        "precision_flagged": metrics.precision(label, prob),
        "recall_flagged": metrics.recall(label, prob),
        "auroc": metrics.auroc(label, prob),
        "auprc": metrics.auprc(label, prob),
        "brier": metrics.brier_score(label, prob),
        "ece": metrics.expected_calibration_error(label, prob),
        "calibration_auroc": metrics.calibration_auroc(label, prob),
        "calibration_auprc": metrics.calibration_auprc(label, prob),
    }


def naive(sample):
    """Return value, low and high of each metric from the labelled comments alone."""
    label, prob = sample.label, sample.prob
    score = metrics.review_scores(prob, POLICY.strategy)
    at = label, prob, score
    looked = round(POLICY.review_fraction * label.size)
    shares = {
        "accuracy": (metrics.accuracy(label, prob), label.size),
        "oc_accuracy": (metrics.oc_accuracy(*at, **FRACTION), label.size),
        "review_efficiency": (metrics.review_efficiency(*at, **FRACTION), looked),
    }
    found = {name: (share, *mid_p(share * n, n)) for name, (share, n) in shares.items()}
    area, positives = metrics.oc_auroc(*at, **FRACTION), label.sum()
    if area is not None:
        found["oc_auroc"] = (area, *hanley_mcneil(area, positives, label.size - positives))
    return found


def hanley_mcneil(area, positives, negatives):
    """Return the interval of Hanley and McNeil (1982)."""
    one, two = area / (2 - area), 2 * area**2 / (1 + area)
    spread = area * (1 - area) + (positives - 1) * (one - area**2)
    spread += (negatives - 1) * (two - area**2)
    half = 1.96 * np.sqrt(max(spread, 0) / (positives * negatives))
    return area - half, area + half


def repetition(seed, size, cell):
    """Return one row per metric: true value, estimate, naive estimate."""
    rng = np.random.default_rng(seed)
    prevalence, sharpness, completion = cell
    truth = [comments(rng, size, prevalence, sharpness) for _ in range(DAYS)]
    days = [reviewed(rng, *day, completion) for day in truth]
    table = measure_days(days, seed=seed, **ASKED).set_index("metric")
    table["truth"] = pd.Series(exact(truth), dtype=float)
    plain = pd.DataFrame(naive(Sample(days)), index=["naive", "naive_low", "naive_high"]).T
    return table.join(plain).assign(**dict(zip(CELL, cell, strict=True)))


def hits(frame, low, value, high):
    """Return whether the interval covers the true value, if estimated, and the error."""
    inside = (frame[low] <= frame["truth"] + 1e-9) & (frame["truth"] <= frame[high] + 1e-9)
    known = frame[low].notna() & (frame[high] - frame[low] > 1e-12)  # else all was seen
    return inside.astype(float).where(known), frame[value] - frame["truth"]


def summary(frame, by):
    """Return coverage, bias in standard errors and width of ours and the naive estimate."""
    groups = frame.groupby(by)
    table = groups.agg(
        sufficient=("ok", "mean"),
        coverage=("held", "mean"),
        width=("width", "median"),
        error=("error", "std"),
        bias=("error", "mean"),
        naive_coverage=("naive_held", "mean"),
        naive_bias=("naive_error", "mean"),
    )
    table.insert(5, "bias_se", table["bias"] / table["error"])
    return table


def report(frame):
    """Print the summary over all cells, and of the cells for the metrics that have floors."""
    numbers = ["value", "low", "high", "truth", "naive", "naive_low", "naive_high"]
    frame = frame[frame["truth"].notna()].astype(dict.fromkeys(numbers, float)).reset_index()
    frame["ok"] = frame["status"] == "ok"
    frame["width"] = frame["high"] - frame["low"]
    frame["held"], frame["error"] = hits(frame, "low", "value", "high")
    frame["naive_held"], frame["naive_error"] = hits(frame, "naive_low", "naive", "naive_high")
    whole = summary(frame, "metric")
    cells = summary(frame, ["metric", *CELL])
    by_metric = cells.groupby("metric")
    whole["lowest_cell"] = by_metric["coverage"].min()
    whole["highest_cell"] = by_metric["coverage"].max()
    whole["bias_se"] = by_metric["bias_se"].mean()
    whole["worst_bias_se"] = by_metric["bias_se"].agg(lambda ratios: ratios.abs().max())
    print(whole.round(3).to_string())
    print(cells.loc[list(FLOORS)].round(3).to_string())
    return [
        f"{name}: coverage {whole.loc[name, 'coverage']:.3f}, bias {whole.loc[name, 'bias_se']:.2f}"
        for name, (low, high, bias) in FLOORS.items()
        if not low <= whole.loc[name, "coverage"] <= high or abs(whole.loc[name, "bias_se"]) > bias
    ]


def main(repetitions, size):
    """Run all cells; exit 1 when a floor is missed."""
    start = time.perf_counter()
    tasks = [(seed, cell) for cell in CELLS for seed in range(repetitions)]
    with ProcessPoolExecutor(2) as pool:
        runs = pool.map(
            repetition,
            [10_000 * CELLS.index(cell) + seed for seed, cell in tasks],
            [size] * len(tasks),
            [cell for _, cell in tasks],
            chunksize=10,
        )
        frame = pd.concat(runs)
    missed = report(frame)
    print(
        f"{len(tasks):,} windows of {DAYS} days of {size:,} comments,"
        f" {time.perf_counter() - start:.0f} s; floors missed: {', '.join(missed) or 'none'}"
    )
    return bool(missed)


if __name__ == "__main__":
    arguments = [int(argument) for argument in sys.argv[1:]]
    sys.exit(main(*arguments, *(100, 5000)[len(arguments) :]))
