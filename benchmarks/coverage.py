"""How often the 95 % intervals of live estimates hold the truth, beside the unweighted estimate.

    python benchmarks/coverage.py [repetitions a cell, default 100]

Each repetition simulates a window of a week, 2,000 comments a day, α = 0.1, a tenth of it the
random slice, and labels a part of what was routed. Cells: prevalence 1, 5, 20 %; calibrated and
over-confident model; 60 and 100 % of the labels in. The truth is the window's own.
"""

import sys
from itertools import product

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit

from modwatch.metrics.classification import accuracy
from modwatch.metrics.estimate import measure_days
from modwatch.metrics.sample import LabelledDay, Sample, fully_labelled
from modwatch.routing.design import design
from modwatch.routing.policy import RoutingPolicy

DAYS, SIZE = 7, 2000
POLICY = RoutingPolicy(review_fraction=0.1)
ASKED = {"alphas": (0.05, 0.1, 0.2), "strategies": ("uncertainty", "toxicity")}
KEYS = ["metric", "strategy", "alpha"]


def comments(rng, prevalence, sharpness):
    """Return scores and labels of a day; sharpness 1 is calibrated."""
    latent = rng.normal(0, 2, SIZE)
    shift = brentq(lambda base: expit(base + latent).mean() - prevalence, -20, 5)
    label = (rng.random(SIZE) < expit(shift + latent)).astype(int)
    return expit(sharpness * (shift + latent)), label


def reviewed(rng, prob, label, completion):
    """Return the day as it is known after review."""
    routing = design(prob, rng.integers(0, 2**64, SIZE, dtype=np.uint64), POLICY)
    stratum, labelled = np.full(SIZE, -1), np.zeros(SIZE, bool)
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


def repetition(rng, prevalence, sharpness, completion, seed):
    """Return the estimates of a window, its truth, and the naive accuracy."""
    truth = [comments(rng, prevalence, sharpness) for _ in range(DAYS)]
    days = [reviewed(rng, *day, completion) for day in truth]
    table = measure_days(days, seed=seed, **ASKED)
    known = measure_days([fully_labelled(*day) for day in truth], **ASKED)
    table["truth"] = known["value"]
    sample = Sample(days)
    naive = accuracy(sample.label, sample.prob)
    table["naive_error"] = np.where(
        table["metric"] == "accuracy", naive - known["value"][0], np.nan
    )
    return table


def main(repetitions):
    rng = np.random.default_rng(1)
    runs = []
    cells = list(product((0.01, 0.05, 0.2), (1.0, 2.5), (0.6, 1.0)))
    for number, cell in enumerate(cells):
        print(f"cell {number + 1} of {len(cells)}", file=sys.stderr)
        windows = (repetition(rng, *cell, seed) for seed in range(repetitions))
        runs.extend(window.assign(cell=str(cell)) for window in windows)
    frame = pd.concat(runs)
    frame["ok"] = frame["status"] == "ok"
    frame = frame[frame["truth"].notna()]
    values = frame[["value", "low", "high", "truth"]].astype(float)
    held = (values["low"] <= values["truth"] + 1e-9) & (values["truth"] <= values["high"] + 1e-9)
    frame["held"] = held.astype(float).where(frame["ok"])
    frame["width"] = values["high"] - values["low"]
    frame["error"] = values["value"] - values["truth"]
    cell = frame.groupby([*KEYS, "cell"], dropna=False)["held"].mean().groupby(KEYS, dropna=False)
    summary = frame.groupby(KEYS, dropna=False).agg(
        sufficient=("ok", "mean"),
        coverage=("held", "mean"),
        width=("width", "median"),
        bias=("error", "mean"),
        error=("error", "std"),
        naive_bias=("naive_error", "mean"),
    )
    summary["worst_cell"], summary["best_cell"] = cell.min(), cell.max()
    print(summary.astype(float).round(3).to_string())


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
