"""Coverage of the paired differences between champion and challenger on live labels.

    python benchmarks/paired_coverage.py [--repetitions 100] [--comments 2000] [--processes 2]

Each repetition simulates a window of two weeks whose comments the champion routes (α = 0.1), as
`coverage.py` does. Two models see the latent toxicity of a comment with independent noise; in the
cells `better` the challenger sees it with half of the noise, in the cells `same` with as much. The
true differences are the window's own.
"""

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import product

import numpy as np
import pandas as pd
from coverage import DAYS, POLICY, THRESHOLD, Team, exact
from scipy.optimize import brentq
from scipy.special import expit

from modwatch.statistics.live.paired import METRICS, ModelDays, Setting, compare_days

CELLS = list(product((0.02, 0.1), ((0.0, 0.0), (0.02, 0.1)), ("same", "better")))
_NOISE = {"champion": 1.5, "same": 1.5, "better": 0.75}


def comments(rng, size, prevalence, kind):
    """Return labels and the probabilities of both models, each calibrated."""
    latent = rng.normal(0, 2.5, size)
    shift = brentq(lambda base: expit(base + latent).mean() - prevalence, -20, 5)
    label = (rng.random(size) < expit(shift + latent)).astype(int)
    seen = []
    for name in ("champion", kind):
        noise = _NOISE[name]
        reliability = 2.5**2 / (2.5**2 + noise**2)
        signal = latent + rng.normal(0, noise, size)
        spread = np.sqrt(1 + np.pi / 8 * 2.5**2 * (1 - reliability))
        seen.append(expit((shift + reliability * signal) / spread))
    return label, *seen


def repetition(seed, size, cell):
    rng = np.random.default_rng(seed)
    prevalence, errors, kind = cell
    truth = [comments(rng, size, prevalence, kind) for _ in range(DAYS)]
    team = Team(rng, errors, "independent", 1.0)
    days = ModelDays(days=[team.review(old, y) for y, old, _ in truth], threshold=THRESHOLD)
    other = days.scored_by([new for *_, new in truth], threshold=THRESHOLD)
    setting = Setting(review_fraction=POLICY.review_fraction, strategy=POLICY.strategy, seed=seed)
    table = compare_days(days, other, setting).set_index("metric")
    old, new = (exact([(day[at], day[0]) for day in truth]) for at in (1, 2))
    true = {name: new[name] - old[name] for name in METRICS}
    for name, parts in {"champion": (1, 2), "challenger": (2, 1)}.items():
        only = [(day[parts[0]] > THRESHOLD) & (day[parts[1]] <= THRESHOLD) for day in truth]
        toxic = [y[part] for (y, *_), part in zip(truth, only, strict=True)]
        true[f"flagged_by_{name}_only"] = np.concatenate(toxic).mean()
    table = table.loc[list(true)].assign(truth=pd.Series(true, dtype=float))
    rates = f"{100 * errors[0]:g}/{100 * errors[1]:g}"
    return table.assign(prevalence=prevalence, errors=rates, kind=kind)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--comments", type=int, default=2_000)
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    start = time.perf_counter()
    jobs = [(1_000 * k + n, asked.comments, cell)
            for k, cell in enumerate(CELLS) for n in range(asked.repetitions)]  # fmt: skip
    with ProcessPoolExecutor(asked.processes) as pool:
        frame = pd.concat(pool.map(repetition, *zip(*jobs, strict=True))).reset_index()
    known = frame["value"].notna()
    held = (frame["low"] <= frame["truth"] + 1e-9) & (frame["truth"] <= frame["high"] + 1e-9)
    frame = frame.assign(figures=known, coverage=held.astype(float).where(known))
    error = (frame["value"] - frame["truth"]).astype(float)
    width = (frame["high"] - frame["low"]).astype(float)
    frame = frame.assign(bias=error / width.clip(lower=1e-9) * 3.92, width=width)
    measures = ["figures", "coverage", "bias", "width"]
    print(frame.groupby(["metric", "errors", "kind"])[measures].mean().round(3).to_string())
    print(frame.groupby("metric")[measures].mean().round(3).to_string())
    print(f"{len(jobs):,} windows, {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
