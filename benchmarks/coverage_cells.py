"""Coverage and width of the reported intervals beside those of the design alone, cell by cell.

    python benchmarks/coverage_cells.py [--repetitions 60] [--processes 2] [--cells …] [--csv FILE]

A window of two weeks of 3,000 comments follows 46 days of the same stream, whose labels are its
history; people and review are those of `benchmarks/coverage.py`. Cells: prevalence 0.5, 2, 10 %;
errors FPR/FNR 0/0, 0.5/5, 2/20 %, independent, on hard comments as on Civil Comments, of one person
of five who always says that a comment is not toxic, copied by every second further label; labels
missing by label, with and without follow-ups; scores calibrated, under- and over-confident,
constant, a step, inverted, a peak; a concept that is stable, jumps (30 % higher odds from the
eighth day on), drifts as far within 30 days, or has a new platform of 15 % of the comments with
threefold odds. `single` cells measure one day, the jump being on it. The last cells are those of
`benchmarks/populations.py`, in which people miss what the model misses, or a campaign comes.

Floors: coverage at least 94 %, of populations 90 %, but for two standard errors; the median width
of a cell's figures over that of the design alone at most 0.75, of populations and where the concept
moves 1.2. Exit status 1 if one is missed.
"""

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent))
import populations
from coverage import ALONE, ASKED, BY_LABEL, DAYS, STATED, Team, comments, exact, noise

from modwatch.monitoring.measurements.tables import HISTORY
from modwatch.statistics import measure_days
from modwatch.statistics.label_truth import SHARED, ErrorEvidence
from modwatch.statistics.live.sample import Sample

COMMENTS = 3000
COLUMNS = ["prevalence", "errors", "people", "labels", "score", "concept"]
TEXT = dict.fromkeys(COLUMNS, str)
SHOWN = {0.5: "under-confident", 1.0: "calibrated", 2.5: "over-confident"}
METRICS = {
    "accuracy": "accuracy",
    "precision_flagged": "precision",
    "recall_flagged": "recall",
    "prevalence": "prevalence",
    "oc_accuracy": "OC-Acc",
    "review_efficiency": "RE",
    "oc_auroc": "OC-AUROC",
    "oc_auprc": "OC-AUPRC",
}
FEW, MANY = (0.005, 0.05), (0.02, 0.2)
#: Of figures, and of those of populations: least coverage, largest width over the design's.
LEAST, LEAST_OF_POPULATIONS, WIDEST, WIDEST_MOVED = 0.94, 0.9, 0.75, 1.2
PREVALENCES = (0.005, 0.02, 0.1)


def cells():
    """Return the cells: prevalence, error rates, people, completion, score, concept."""
    found = []
    for prevalence in PREVALENCES:
        at = {"prevalence": prevalence}
        found.append(cell(**at, errors=(0.0, 0.0)))
        found += [cell(**at, errors=rates) for rates in (FEW, MANY)]
        kinds = ("hard", "lazy", "copied")
        found += [cell(**at, errors=rates, people=kind) for rates in (FEW, MANY) for kind in kinds]
        found += [cell(**at, errors=MANY, labels=labels) for labels in BY_LABEL]
        found += [cell(**at, concept=concept) for concept in ("jump", "drift", "new platform")]
        found += [cell(**at, concept=f"single, {concept}") for concept in ("stable", "jump")]
    for prevalence in PREVALENCES[1:]:
        for score in (0.5, 2.5, "constant", "step", "inverted", "peak"):
            found.append(cell(prevalence=prevalence, score=score))
    found += [
        cell(prevalence=0.02, errors=MANY, people="hard", concept=concept)
        for concept in ("jump", "drift", "new platform")
    ]
    return found + [
        cell(prevalence=prevalence, errors=None, people=kind, score="its own")
        for kind in populations.KINDS
        for prevalence in PREVALENCES
    ]


def cell(
    *, prevalence, errors=FEW, people=ALONE[0], labels=1.0, score=1.0, concept="stable"
):  # fmt: skip
    """Return a cell; what is left out is as usual."""
    return prevalence, errors, people, labels, score, concept


def stream(rng, day, prevalence, score, concept):
    """Return scores and labels of a day, counted from the first of the window."""
    prob, label = comments(rng, COMMENTS, prevalence, score)
    jump = 7 if not concept.startswith("single") else DAYS - 1
    odds = np.full(COMMENTS, 1.0)
    if concept.endswith("jump"):
        odds[:] = 1.3 if day >= jump else 1.0
    elif concept == "drift":
        odds[:] = 1 + 0.3 * np.clip((day + 16) / 30, 0, 1)
    elif concept == "new platform":
        odds[rng.random(COMMENTS) < 0.15 * (day >= 0)] = 3.0
    chance = (odds - 1) * prob / (1 - prob + odds * prob)
    return prob, np.where((label == 0) & (rng.random(COMMENTS) < chance), 1, label)


class Crowd(Team):
    """People who label the comments of a population."""

    def __init__(self, rng, population):
        super().__init__(rng, None, None, 1.0)
        self.population, self.rates = population, None

    def given(self, row, label):
        """Return the labels (r, 3) of the routed comments."""
        copying = self.population.copying
        return populations.labels(self.rng, label, self.rates[row], copying=copying)

    def next(self, day):
        """Return scores and labels of a day, and the day after review."""
        prob, label, self.rates = self.population.day(self.rng, day, COMMENTS)
        return (prob, label), self.review(prob, label)


def repetition(seed, place):
    """Return one row per metric of a window."""
    prevalence, errors, people, labels, score, concept = place
    rng = np.random.default_rng(seed)
    first = DAYS - 1 if concept.startswith("single") else 0
    if errors is None:
        crowd = Crowd(rng, populations.Population(people, prevalence))
        truth, days = zip(*(crowd.next(day) for day in range(first - HISTORY, DAYS)), strict=True)
    else:
        team = Team(rng, errors, people, labels)
        truth = [
            stream(rng, day, prevalence, score, concept) for day in range(first - HISTORY, DAYS)
        ]  # fmt: skip
        days = [team.review(*day) for day in truth]
    known = ErrorEvidence.sharing(*STATED.get(people, SHARED))
    history = Sample(days[:HISTORY]).given
    table = measure_days(days[HISTORY:], known=known, history=history, seed=seed, **ASKED)
    table["truth"] = table["metric"].map(exact(truth[HISTORY:]))
    shown = "{:g}/{:g}".format(*(100 * rate for rate in errors)) if errors else "its own"
    received = "all" if labels == 1.0 else "70/95 %" + ", follow-ups" * (labels == BY_LABEL[1])
    names = [f"{100 * prevalence:g} %", shown, people, received, SHOWN.get(score, score), concept]
    return table[table["metric"].isin(METRICS)].assign(**dict(zip(COLUMNS, names, strict=True)))


def summary(frame):
    """Return coverage of either interval and the ratio of their widths, by cell and metric."""
    numbers = ["value", "low", "high", "sampled_low", "sampled_high", "truth"]
    frame = frame.astype(dict.fromkeys(numbers, float))
    for name, prefix in (("held", ""), ("design", "sampled_")):
        low, high = frame[f"{prefix}low"], frame[f"{prefix}high"]
        inside = (low <= frame["truth"] + 1e-9) & (frame["truth"] <= high + 1e-9)
        frame[name] = inside.astype(float).where(low.notna() & frame["truth"].notna())
        frame[f"{name}_width"] = high - low
    table = frame.groupby([*COLUMNS, "metric"], sort=False).agg(
        windows=("held", "count"),
        coverage=("held", "mean"),
        design=("design", "mean"),
        width=("held_width", "median"),
        design_width=("design_width", "median"),
    )
    table["ratio"] = table["width"] / table.pop("design_width")
    return table.drop(columns="width")


def missed(table):
    """Return masks: coverage (cell × metric) and median width (cell) beyond their floors."""
    least = np.where(
        table.index.get_level_values("errors") == "its own", LEAST_OF_POPULATIONS, LEAST
    )
    few = table["coverage"] < least - noise(least, table["windows"].clip(lower=1))
    width = table["ratio"].groupby(COLUMNS, sort=False).median()
    at = {name: width.index.get_level_values(name) for name in ("errors", "concept")}
    moved = (at["errors"] == "its own") | ~at["concept"].isin(["stable", "single, stable"])
    return few, width > np.where(moved, WIDEST_MOVED, WIDEST)


def markdown(table):
    """Return the table for the documentation: a row a cell, what misses its coverage first."""
    few, _ = missed(table)
    text = table["coverage"].map("{:.0%}".format) + table["ratio"].map(" ({:.2f})".format)
    found = table.assign(text=text.where(~few, "**" + text + "**"), few=few).reset_index()
    shown = found.pivot_table("text", COLUMNS, "metric", aggfunc="first")[[*METRICS]]
    order = found.groupby(COLUMNS, sort=False)["few"].sum()
    order = order.sort_values(ascending=False, kind="stable").index
    rows = [" | ".join([*COLUMNS, *METRICS.values()]), " | ".join(["---"] * (6 + len(METRICS)))]
    rows += [" | ".join([*map(str, name), *shown.loc[name]]) for name in order]
    return "\n".join(f"| {row} |" for row in rows)


def main():
    """Run the cells; exit 1 when a floor is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=60)
    parser.add_argument("--first", type=int, default=0, help="number of the first repetition")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--cells", type=int, nargs="*", help="numbers of cells; default: all")
    parser.add_argument("--csv", type=Path, help="one row per metric and window")
    parser.add_argument("--join", type=Path, nargs="*", default=[], help="files of --csv to add")
    options = parser.parse_args()
    chosen = [*enumerate(cells())]
    chosen = [chosen[number] for number in options.cells] if options.cells else chosen
    numbers = range(options.first, options.first + options.repetitions)
    tasks = [(1000 * i + k, place) for k in numbers for i, place in chosen]
    with ProcessPoolExecutor(options.processes) as pool:
        found = pool.map(repetition, *zip(*tasks, strict=True), chunksize=4)
        frame = pd.concat(
            [*found, *(pd.read_csv(path, dtype=TEXT) for path in options.join)], ignore_index=True
        )
    if options.csv:
        frame.to_csv(options.csv, index=False)
    table = summary(frame)
    print(markdown(table))
    few, wide = missed(table)
    print(f"{len(tasks):,} windows; below in coverage: {few.sum()}, too wide: {wide.sum()}")
    return bool(few.any() or wide.any())


if __name__ == "__main__":
    sys.exit(main())
