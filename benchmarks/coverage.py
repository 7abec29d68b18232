"""Coverage of the 95 % intervals of live estimates where moderators err.

    python benchmarks/coverage.py [--repetitions 200] [--comments 5000] [--processes 2] [--cells …]
                                  [--csv FILE]

Each repetition simulates a window of two weeks, α = 0.1, a tenth of it the random slice, in which
people label a part of the routed comments, and confirm some. Cells: prevalence 1, 5, 20 %; error
rates FPR/FNR 0/0, 0.5/5, 2/10, 2/20 %; calibrated and over-confident model; 80 and 100 % of the
labels received. The true values are the window's own. Beside ours, on the same labels:

    first        every first label taken as true: what people answered, as if they never erred
    infallible   the same estimates if no label were wrong: what the design alone can do

Errors are independent unless the cell says otherwise: on hard comments, where a second person
repeats an error as on Civil Comments (`hard`) or half of the time (`harder`, as is then stated); of
one person of five who always says that a comment is not toxic (`lazy`); or copied by every second
further label (`copied`, stated likewise). There the coverage of the intervals for independent
errors is printed, too. Cells with a misleading score follow, at 5 % and 2/20 %: the score
does not depend on the label, is inverted, or says too much or too little (a step to 60 %; a peak in
the middle).

Floors hold for the mean over the cells, with shared errors for each, and none where labels are
missing by label and nothing is followed up; exit status 1 if one is missed. Beside them, per
metric, how many single cells are outside by more than two standard errors of their windows: `below`
and `above` in coverage, `biased` in bias.
"""

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import rankdata

from modwatch import statistics as metrics
from modwatch.routing import RoutingPolicy, design_routing
from modwatch.routing.confirmation_design import confirmation_probabilities
from modwatch.routing.design import strata_of
from modwatch.routing.follow_ups import draw_follow_ups, follow_up_parts
from modwatch.statistics import LabelledDay, measure_days
from modwatch.statistics.collaboration.collaborative import METRICS
from modwatch.statistics.label_truth import SHARED, ErrorEvidence
from modwatch.statistics.live.labelled_day import Confirmations

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
from simulated_errors import labels_of

DAYS = 14
THRESHOLD = 0.5
POLICY = RoutingPolicy(review_fraction=0.1)
FRACTION = {"review_fraction": POLICY.review_fraction}
ASKED = {"review_fractions": [POLICY.review_fraction], "strategies": [POLICY.strategy]}
#: Expected confirmations over reviewed comments.
SHARE = POLICY.confirmation_share

CELL = ["prevalence", "errors", "kind", "score", "completion"]
ERRORS = ((0.0, 0.0), (0.005, 0.05), (0.02, 0.1), (0.02, 0.2))
ALONE = ("independent",)
CELLS = list(product((0.01, 0.05, 0.2), ERRORS, ALONE, (1.0, 2.5), (0.8, 1.0)))
KINDS = ("hard", "harder", "lazy", "copied")
CELLS += list(product((0.01, 0.05, 0.2), (ERRORS[1], ERRORS[3]), KINDS, (1.0,), (1.0,)))
#: What is stated about shared errors where it is not the default.
STATED = {"harder": (0.5, 0.5), "copied": (0.5, 0.5)}
MISLEADING = ("constant", "inverted", "step", "peak")
CELLS += list(product((0.05,), ERRORS[3:], ALONE, MISLEADING, (1.0,)))
#: What stands after the share of follow-ups in the name of such a completion.
FOLLOWED = " followed up"
#: Completion of toxic comments, of others, and the share of follow-ups among what is missing.
BY_LABEL = ((0.7, 0.95, 0.0), (0.7, 0.95, 0.2))
CELLS += list(product((0.01, 0.05, 0.2), (ERRORS[0], ERRORS[2]), ALONE, (1.0,), BY_LABEL))

#: Lowest and highest coverage of a metric over all cells; largest bias in standard errors.
FLOORS = {
    **dict.fromkeys(
        ("accuracy", "prevalence", "oc_accuracy", "review_efficiency"), (0.93, 0.98, 0.25)
    ),
    **dict.fromkeys(("oc_auroc", "oc_auprc", "recall_flagged"), (0.92, 1.0, 0.25)),
}
#: Metrics whose width is judged.
PRICED = (*FLOORS, "precision_flagged")
#: Lowest coverage where the score misleads, or how far it may be below that of infallible people.
MISLED, MISLED_BELOW = 0.9, 0.05
#: Most confirmations over routed comments; widest interval relative to infallible people's without
#: errors, and with 2/20 %; windows with a figure at 5 % and above; coverage with shared errors.
MOST_LABELS, WIDTH_WITHOUT, WIDTH_WITH, FIGURES, WITH_SHARED = 0.15, 1.15, 1.6, 0.95, 0.93
#: Columns of the cells in which errors are shared.
APART = ["independent", "wider_than_independent"]


def comments(rng, size, prevalence, score):
    """Return scores and labels of a day; `score` is a name, or its sharpness: 1 is calibrated."""
    latent = rng.normal(0, 2, size)
    shift = brentq(lambda base: expit(base + latent).mean() - prevalence, -20, 5)
    if score in MISLEADING:
        often = {
            "constant": np.ones(size),
            "inverted": expit(-2 * latent),
            "step": np.where(latent > np.quantile(latent, 1 - prevalence / 0.6), 1, 0.003),
            "peak": np.exp(-(((latent - 0.6) / 0.6) ** 2)),
        }[score]
        label = (rng.random(size) < often * prevalence / often.mean()).astype(int)
        return expit(shift + latent), label
    label = (rng.random(size) < expit(shift + latent)).astype(int)
    return expit(score * (shift + latent)), label


class Team:
    """People who label what is routed day by day, and confirm what they are asked to."""

    def __init__(self, rng, errors, kind, completion):
        self.rng, self.errors, self.kind = rng, errors, kind
        #: Of toxic comments, of others, and the share of follow-ups among what is missing.
        self.completion = completion if isinstance(completion, tuple) else (completion,) * 2 + (0,)
        self.routed = self.confirmed = self.followed = 0
        #: Stratum (n,) of every comment of the last day, and probability (n,) that the first label
        #: of it is confirmed, 0 where it is not routed.
        self.strata = self.asked = None
        self.toxic, self.labels = np.zeros(2), np.zeros(2)

    def review(self, prob, label):
        """Return the day after review."""
        keys = self.rng.integers(0, 2**64, prob.size, dtype=np.uint64)
        routing = design_routing(prob, keys, POLICY, threshold=THRESHOLD)
        row, stratum = routing.row, routing.stratum
        result = self.given(row, label[row])
        probability = confirmation_probabilities(
            prob[row], stratum, threshold=THRESHOLD, share=SHARE, toxic_labels=self.recent
        )
        missing, given = self.answered(stratum, label[row], prob[row] > THRESHOLD)
        asked = probability[np.arange(row.size), result[:, 0]]
        self.asked = np.zeros(prob.size)
        self.asked[row] = asked
        second = given & (self.rng.random(row.size) < asked)
        third = second & (result[:, 0] != result[:, 1])
        self.routed += row.size
        self.followed += int((missing & given).sum())
        self.confirmed += int(second.sum() + third.sum())
        for part, here in enumerate((stratum == 0, stratum != 0)):
            self.toxic[part] += result[given & here, 0].sum()
            self.labels[part] += (given & here).sum()
        strata, labels, labelled = (
            np.full(prob.size, -1), np.zeros(prob.size, int), np.zeros(prob.size, bool)
        )  # fmt: skip
        self.strata = strata_of(
            metrics.review_scores(prob, POLICY.strategy, threshold=THRESHOLD),
            routing.strata, np.isin(np.arange(prob.size), row[stratum == 0]),
            flagged=prob > THRESHOLD,
        )  # fmt: skip
        strata[row], labels[row], labelled[row] = stratum, np.where(given, result[:, 0], 0), given
        unanswered = np.full(prob.size, -1)
        unanswered[row] = np.where(missing, follow_up_parts(stratum, prob[row] > THRESHOLD), -1)
        return LabelledDay(
            prob=prob,
            stratum=strata,
            missing=unanswered if self.completion[2] else None,
            label=labels,
            labelled=labelled,
            population=routing.strata["population"].to_numpy(),
            sample=routing.strata["sample"].to_numpy(),
            confirmations=Confirmations(
                row=np.concatenate([row[second], row[third]]),
                label=np.concatenate([result[second, 1], result[third, 2]]),
            ),
        )

    def given(self, row, label):  # noqa: ARG002 - for others, whose errors depend on the comment
        """Return the labels (r, 3) of the routed comments."""
        return labels_of(self.rng, label, self.errors, self.kind)

    def answered(self, stratum, label, flagged):
        """Return which comments (n,) have no label before follow-ups, and which have one after."""
        toxic, other, share = self.completion
        given = self.rng.random(label.size) < np.where(label == 1, toxic, other)
        missing = ~given
        if share:
            row = np.flatnonzero(missing)
            keys = self.rng.integers(0, 2**64, row.size, dtype=np.uint64)
            part = follow_up_parts(stratum[row], flagged[row])
            given[row], _ = draw_follow_ups(part, keys, share=share)
        return missing, given

    @property
    def recent(self):
        """Share of toxic labels so far, of the top and of the slice."""
        return tuple((self.toxic + 1) / (self.labels + 10)) if self.routed else (None, None)


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


def repetition(seed, size, cell):
    """Return one row per metric: true value, our estimate, and the two alternatives."""
    rng = np.random.default_rng(seed)
    prevalence, errors, kind, score, completion = cell
    truth = [comments(rng, size, prevalence, score) for _ in range(DAYS)]
    team = Team(rng, errors, kind, completion)
    days = [team.review(*day) for day in truth]
    known = ErrorEvidence.sharing(*STATED.get(kind, SHARED))
    table = measure_days(days, seed=seed, known=known, **ASKED).set_index("metric")
    table["truth"] = pd.Series(exact(truth), dtype=float)
    plain = [replace(day, confirmations=None) for day in days]
    right = [replace(day, label=label) for day, (_, label) in zip(plain, truth, strict=True)]
    for name, others in (("first", plain), ("infallible", right)):
        found = measure_days(others, seed=seed, **ASKED).set_index("metric")
        table = table.join(found[["value", "low", "high"]].add_prefix(f"{name}_"))
    if kind != ALONE[0]:
        found = measure_days(days, seed=seed, known=known.independent, **ASKED).set_index("metric")
        table = table.join(found[["low", "high"]].add_prefix("independent_"))
    rates = f"{100 * errors[0]:g}/{100 * errors[1]:g}"
    if isinstance(completion, tuple):
        completion = "{:g}/{:g}, {:g}{}".format(*completion, FOLLOWED)
    cell = (prevalence, rates, kind, str(score), str(completion))
    added = (team.confirmed + team.followed) / team.routed
    return table.assign(labels=added, **dict(zip(CELL, cell, strict=True)))


def held(frame, prefix=""):
    """Return whether the interval holds the true value, missing where there is no interval."""
    low, high = frame[f"{prefix}low"], frame[f"{prefix}high"]
    inside = (low <= frame["truth"] + 1e-9) & (frame["truth"] <= high + 1e-9)
    return inside.astype(float).where(low.notna() & ((high - low > 1e-12) | (prefix == "")))


def summary(frame, by):
    """Return coverage, bias in standard errors, width over infallible people's, and labels."""
    table = frame.groupby(by).agg(
        figures=("ok", "mean"),
        windows=("held", "count"),
        coverage=("held", "mean"),
        first=("first_held", "mean"),
        infallible=("infallible_held", "mean"),
        independent=("independent_held", "mean"),
        wider_than_independent=("dearer", "median"),
        bias_se=("error", lambda error: error.mean() / error.std()),
        width=("width", "median"),
        reference=("infallible_width", "median"),
        labels=("labels", "mean"),
    )
    table["wider"] = table.pop("width") / table.pop("reference")
    return table


def report(frame):
    """Print the summary by metric and by cell; return the floors missed."""
    frame = frame[frame["truth"].notna()].reset_index()
    ends = [*(f"{p}{e}" for p in ("", "first_", "infallible_") for e in ("low", "high"))]
    ends += ["independent_low", "independent_high", "value", "truth"]
    frame = frame.reindex(columns=[*frame.columns, *(end for end in ends if end not in frame)])
    frame = frame.astype(dict.fromkeys(ends, float))
    frame["ok"], frame["held"] = frame["status"] == "ok", held(frame)
    frame["first_held"], frame["infallible_held"] = (
        held(frame, "first_"),
        held(frame, "infallible_"),
    )
    frame["independent_held"] = held(frame, "independent_")
    frame["error"] = frame["value"] - frame["truth"]
    frame["width"] = frame["high"] - frame["low"]
    frame["dearer"] = frame["width"] / (frame["independent_high"] - frame["independent_low"])
    frame["infallible_width"] = frame["infallible_high"] - frame["infallible_low"]
    misled = frame[frame["score"].isin(MISLEADING)]
    unfollowed = frame[frame["completion"].str.endswith(f", 0{FOLLOWED}")]
    frame = frame.drop(misled.index.union(unfollowed.index))
    alone, alike = frame[frame["kind"] == ALONE[0]], frame[frame["kind"] != ALONE[0]]
    cells = summary(alone, ["metric", *CELL])
    if len(alone):
        print(summary(alone, ["metric", "errors"]).drop(columns=APART).round(3).to_string())
        print(cells.loc[list(PRICED)].drop(columns=APART).round(3).to_string())
        print(outside(cells).to_string())
    shared = summary(alike, ["metric", "kind", "prevalence", "errors"]) if len(alike) else None
    if shared is not None:
        print(shared.loc[list(PRICED)].round(3).to_string())
    floors = [*missed(alone, cells)] if len(alone) else []
    if shared is not None:
        floors += shared_missed(shared)
    if len(unfollowed):
        lost = summary(unfollowed, ["metric", *CELL]).drop(columns=APART)
        print(lost.loc[list(PRICED)].round(3).to_string())
    if len(misled):
        whole = summary(misled, ["metric", "score"]).drop(columns=APART)
        print(whole.loc[list(FLOORS)].round(3).to_string())
        floors += misled_missed(whole)
    return floors


def missed(frame, cells):
    """Yield the floors missed over all cells."""
    whole = summary(frame, "metric")
    for name, (low, high, bias) in FLOORS.items():
        coverage = whole.loc[name, "coverage"]
        given = cells.loc[name]
        mean_bias = given.loc[given["figures"] >= 0.5, "bias_se"].mean()
        if not low <= coverage <= high or abs(mean_bias) > bias:
            yield f"{name}: coverage {coverage:.3f}, bias {mean_bias:.2f}"
        often = given[given.index.get_level_values("prevalence") >= 0.05]["figures"]
        if len(often) and often.mean() < FIGURES:
            yield f"{name}: figures in {often.mean():.3f} of the windows"
    yield from price_missed(cells)


def price_missed(cells):
    """Yield the metrics whose interval is too wide, and the labels if they are too many."""
    errors = cells.index.get_level_values("errors")
    for name, (rates, most) in product(PRICED, (("0/0", WIDTH_WITHOUT), ("2/20", WIDTH_WITH))):
        wider = cells[errors == rates]
        wider = wider.loc[name, "wider"].median() if name in wider.index else 0
        if wider > most:
            yield f"{name}: {wider:.2f} times as wide at {rates}"
    labels = cells["labels"].max()
    if labels > MOST_LABELS:
        yield f"labels: {labels:.3f} in one cell"


def outside(cells):
    """Return how many cells of each metric are outside its floors by more than their noise."""
    counts = {}
    for name, (low, high, bias) in FLOORS.items():
        given = cells.loc[name]
        coverage, windows = given["coverage"], given["windows"].clip(lower=1)
        biased = given["bias_se"].abs() > bias + 2 / np.sqrt(windows)
        counts[name] = {
            "cells": len(given),
            "below": (coverage < low - noise(low, windows)).sum(),
            "above": (coverage > high + noise(high, windows)).sum(),
            "biased": (biased & (given["figures"] >= 0.5)).sum(),
        }
    return pd.DataFrame.from_dict(counts, orient="index")


def noise(share, windows):
    """Return two standard errors of a share of the windows."""
    return 2 * np.sqrt(share * (1 - share) / windows)


def shared_missed(shared):
    """Yield the cells where the interval holds the true value less often than promised."""
    for name in FLOORS:
        for at, cell in shared.loc[name].iterrows():
            if cell["coverage"] < WITH_SHARED - noise(WITH_SHARED, max(cell["windows"], 1)):
                yield f"{name}: coverage {cell['coverage']:.3f} at {at}"


def misled_missed(table):
    """Yield the metrics whose coverage is too low where the score misleads."""
    for name, score in table.index:
        coverage, infallible = table.loc[(name, score), ["coverage", "infallible"]]
        if name in FLOORS and coverage < min(MISLED, infallible - MISLED_BELOW):
            yield f"{name}, score {score}: coverage {coverage:.3f}"


def main():
    """Run the cells; exit 1 when a floor is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--comments", type=int, default=5000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--cells", type=int, nargs="*", help="numbers of cells; default: all")
    parser.add_argument("--csv", type=Path, help="one row per metric and window")
    options = parser.parse_args()
    start = time.perf_counter()
    cells = list(enumerate(CELLS))
    cells = [cells[i] for i in options.cells] if options.cells else cells
    tasks = [(10_000 * i + seed, cell) for i, cell in cells for seed in range(options.repetitions)]
    seeds, chosen = zip(*tasks, strict=True)
    with ProcessPoolExecutor(options.processes) as pool:
        runs = pool.map(repetition, seeds, [options.comments] * len(tasks), chosen, chunksize=10)
        frame = pd.concat(runs)
    if options.csv:
        frame.to_csv(options.csv)
    floors = list(report(frame))
    print(
        f"{len(tasks):,} windows of {DAYS} days of {options.comments:,} comments,"
        f" {time.perf_counter() - start:.0f} s; floors missed: {'; '.join(floors) or 'none'}"
    )
    return bool(floors)


if __name__ == "__main__":
    sys.exit(main())
