"""Coverage of what an audit prints, and how many labels its design saves.

    python benchmarks/audit.py [--repetitions 2000] [--csv FILE] [--only usual|hostile]

Simulated populations (`modwatch_lab.audit_designs`), 500, 1,000 and 3,000 labels each:

- usual: 400,000 comments, prevalence of the unflagged 0.1, 0.5, 1, 2, 4 and 8 %, a sharp, a dull
  and a miscalibrated score, 0 or 20 % of the positives missed by it;
- hostile: those of `HOSTILE`, where the score misleads, ties, or the population is tiny.

The default planner does not know the prevalence. It has the labels of what the daily job routed,
1,000 of them in the random slice (planner `slice`; four slices a cell), or none (planner `none`).

Coverage is that of everything printed, in all audits: of the interval, or, where an estimate is
`insufficient`, of the bound that stands in its place. An end that is not printed cannot be wrong.

All designs see the same populations. Named baselines:

- pilot: the paper's design, 8 quantile strata, 50 pilot labels each, pooled (as many labels);
- random: a simple random sample of the unflagged, of as many comments; for recall, one of all
  comments, of as many as on both sides;
- oracle: the allocation of least variance in the default's strata, all labels being known;
- best: the same for any number of strata by this score, E[√(p(1−p))]², p being the true rate in
  each of 200 classes of the score: no design that goes by this score can need fewer labels.

Labels for the same width: (width / width of the baseline)² at the same number of labels, both with
the default interval; and by the estimators' own standard deviations, without any interval. Where
fewer than half of the audits have an estimate, there is no width to compare. With
the published data at hand (MODWATCH_DATA), the same on the real stream.
"""

import argparse
import csv
import gzip
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import chain, product
from pathlib import Path

import numpy as np
import pandas as pd

from modwatch.statistics.audit.allocation import neyman
from modwatch.statistics.audit.estimates import ENOUGH_POSITIVES, AuditEstimator
from modwatch.statistics.audit.forecast import one_of, sufficient
from modwatch.statistics.audit.sample_design import Design, ScoreCounts, SideDesign, design
from modwatch.statistics.audit.stratified import StratumCounts
from modwatch_lab.audit_designs import (
    HOSTILE,
    PILOT_BINS,
    PILOT_LABELS,
    Side,
    SimulatedPopulation,
    draw_positives,
    hostile,
    pilot_audit,
    quantile_strata,
    routed_labels,
    simulate,
)

PREVALENCES = (0.001, 0.005, 0.01, 0.02, 0.04, 0.08)
SCORES = ("sharp", "dull", "miscalibrated")
HIDDEN = (0.0, 0.2)
LABELS = (500, 1000, 3000)
#: Of populations too small for `LABELS`.
FEW_LABELS = (60, 120, 240)
USUAL = tuple(product(PREVALENCES, SCORES, HIDDEN, LABELS))
UNUSUAL = tuple(
    (name, labels)
    for name in HOSTILE
    for labels in (FEW_LABELS if name == "300 comments" else LABELS)
)
PLANNERS = ("slice", "none")
#: Labels of the random slice, and slices of a cell.
SLICE, SLICES = 1000, 4
METRICS = ("recall", "precision", "accuracy", "prevalence_unflagged")
#: Repetitions of the pilot, of a baseline where intervals are asked for, and of audits whose bound
#: is computed because the estimate is insufficient.
PILOTS, PILOT_WIDTHS, WIDTHS, BOUNDS = 500, 100, 1000, 200
ROUNDING = 1e-9
LOWEST, HIGHEST, MOST_BIAS = 0.94, 0.99, 0.25
#: Floors: coverage of what is printed, and labels over those of a random sample.
PRINTED, OVER_RANDOM = 0.93, 1.1


def known(side: Side, cut) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return N, K and mean score of each stratum."""
    stratum = cut.assign(side.score)
    size = np.bincount(stratum, minlength=len(cut))
    return (
        size,
        np.bincount(stratum, weights=side.label, minlength=len(cut)).astype(int),
        np.bincount(stratum, weights=side.score, minlength=len(cut)) / size,
    )


def audited(made: Design, population, generator, repetitions):
    """Return `repetitions` audits by a design."""
    counts = []
    for side, truth in ((made.flagged, population.flagged), (made.unflagged, population.unflagged)):
        sizes, positives, _ = known(truth, side.strata)
        found = draw_positives(sizes, positives, side.labels, generator, repetitions=repetitions)
        counts.append(
            StratumCounts.from_arrays(
                population=sizes, labels=side.labels, positives=found, score=side.score
            ).weighted()
        )
    comments = (population.flagged.label.size, population.unflagged.label.size)
    return AuditEstimator(flagged=counts[0], unflagged=counts[1], comments=comments)


def truths(population: SimulatedPopulation) -> dict[str, float]:
    """Return the true value of each metric."""
    flagged, missed = population.flagged.label, population.unflagged.label
    return {
        "recall": population.recall,
        "precision": float(flagged.mean()),
        "accuracy": float((flagged.sum() + (~missed).sum()) / (flagged.size + missed.size)),
        "prevalence_unflagged": float(missed.mean()),
    }


def figures(audits: AuditEstimator, metric: str, truth: float, single=one_of) -> pd.DataFrame:
    """Return a row per audit: its estimate, whether it is given, and whether what is printed holds.

    The bounds of insufficient estimates are computed for about `BOUNDS` of them, which then count
    for all.
    """
    ends, given = audits.interval_estimate(metric), sufficient(audits, metric)
    table = pd.DataFrame(
        {"value": ends.value, "low": ends.low, "high": ends.high, "given": given}
    ).assign(printed=np.nan)
    table["holds"] = holds(ends.low, ends.high, truth)
    table.loc[given, "printed"] = table.loc[given, "holds"].astype(float)
    without = np.flatnonzero(~given)
    some = without[:: max(len(without) // BOUNDS, 1)]
    for number in some:
        bound = single(audits, number).estimate(metric)
        low = 0.0 if bound.low is None else bound.low
        high = 1.0 if bound.high is None else bound.high
        table.loc[number, "printed"] = float(holds(low, high, truth))
    left = np.setdiff1d(without, some)
    table.loc[left, "printed"] = table.loc[some, "printed"].mean()
    return table


def holds(low, high, truth: float):
    """Return whether intervals hold the truth; a side labelled whole has one without width."""
    return (low - ROUNDING <= truth) & (truth <= high + ROUNDING)


def judged(name: str, table: pd.DataFrame, truth: float) -> dict[str, float]:
    """Return coverage, of all that is printed and of the estimates, bias and width.

    `above`: the share of the estimates whose interval ends below the true value.
    """
    given = table[table["given"]]
    return {
        f"{name}_printed": table["printed"].mean(),
        f"{name}_coverage": given["holds"].mean(),
        f"{name}_above": (truth > given["high"]).mean(),
        f"{name}_given": table["given"].mean(),
        f"{name}_bias": (table["value"].mean() - truth) / (table["value"].std() or np.nan),
        f"{name}_width": (table["high"] - table["low"]).median(),
        f"{name}_deviation": table["value"].std(),
    }


def cell(number, repetitions):
    """Return the lines of one of the cells, one per planner."""
    if number < len(USUAL):
        prevalence, score, hidden, labels = USUAL[number]
        population = simulate(prevalence=prevalence, score=score, hidden=hidden)
        what = {"prevalence": prevalence, "score": score, "hidden": hidden}
    else:
        name, labels = UNUSUAL[number - len(USUAL)]
        population = hostile(name)
        what = {"prevalence": population.unflagged.label.mean(), "score": name, "hidden": np.nan}
    return [
        what
        | {"labels": labels, "planner": planner, "repetitions": repetitions}
        | measured(population, labels, repetitions, planner, number)
        for planner in PLANNERS
    ]


def planned(population: SimulatedPopulation, labels, planner, generator) -> list[Design]:
    """Return what the default planner designs, once for each slice."""
    sides = (
        ScoreCounts.from_scores(population.flagged.score),
        ScoreCounts.from_scores(population.unflagged.score),
    )
    if planner == "none":
        return [design(*sides, labels)]
    slices = [routed_labels(population, SLICE, generator) for _ in range(SLICES)]
    return [design(*sides, labels, known=slice) for slice in slices]


def measured(population: SimulatedPopulation, labels, repetitions, planner, seed):
    """Return what the default design and the baselines give on a population."""
    generator = np.random.default_rng(seed)
    made = planned(population, labels, planner, generator)
    audits = [audited(record, population, generator, repetitions // len(made)) for record in made]
    line: dict[str, float] = {}
    singles: dict[tuple[int, int], AuditEstimator] = {}

    def single(many: AuditEstimator, which: int) -> AuditEstimator:
        """Keep single audits, whose intervals every metric needs."""
        return singles.setdefault((id(many), int(which)), one_of(many, which))

    for metric, truth in truths(population).items():
        parts = [figures(audit, metric, truth, single) for audit in audits]
        line |= judged(
            metric.removesuffix("_unflagged"), pd.concat(parts, ignore_index=True), truth
        )
    return (
        line
        | recall_at_random(population, made[0].labels, generator, line)
        | baselines(population.unflagged, made[0].unflagged, generator, line)
        | {"worst": max(variance_over_random(record, population) for record in made)}
    )


def variance_over_random(made: Design, population) -> float:
    """Return the variance over that of a random sample, of both sides the larger; exact."""
    ratios = []
    for side, truth in ((made.flagged, population.flagged), (made.unflagged, population.unflagged)):
        sizes, positives, _ = known(truth, side.strata)
        whole, labels, rate = sizes.sum(), side.labels.sum(), truth.label.mean()
        plain = rate * (1 - rate) * whole / (whole - 1) * (1 / labels - 1 / whole)
        if plain > 0:
            ratios.append(variance_by(sizes, positives, side.labels) / plain)
    return max(ratios, default=np.nan)


def variance_by(sizes, positives, labels) -> float:
    """Return the variance of the stratified share, all labels being known."""
    rate, weight = positives / sizes, sizes / sizes.sum()
    spread = rate * (1 - rate) * sizes / np.maximum(sizes - 1, 1)
    return float((weight**2 * spread * (1 / labels - 1 / sizes)).sum())


def recall_at_random(population, labels, generator, line) -> dict[str, float]:
    """Return the labels over those of a random sample of all comments, for recall."""
    sides = (population.flagged.label, population.unflagged.label)
    comments = tuple(side.size for side in sides)
    part = int(np.clip(round(labels * comments[0] / sum(comments)), 1, labels - 1))
    counts = [
        StratumCounts.from_arrays(
            population=[side.size], labels=[drawn], score=[side.mean()],
            positives=draw_positives(
                [side.size], [int(side.sum())], [drawn], generator, repetitions=WIDTHS
            ),
        ).weighted()
        for side, drawn in zip(sides, (part, labels - part), strict=True)
    ]  # fmt: skip
    plain = AuditEstimator(flagged=counts[0], unflagged=counts[1], comments=comments)
    if min(sufficient(plain, "recall").mean(), line["recall_given"]) < 0.5:
        return {"recall_random": np.nan}
    ends = plain.interval_estimate("recall")
    return {"recall_random": (line["recall_width"] / np.median(ends.high - ends.low)) ** 2}


def baselines(side: Side, made: SideDesign, generator, line) -> dict[str, float]:
    """Return the labels of the default design over those of each baseline."""
    truth, comments, labels = side.label.mean(), side.label.size, int(made.labels.sum())
    sizes, positives, means = known(side, made.strata)
    shown = positives / sizes
    best_labels = neyman(sizes, np.sqrt(shown * (1 - shown)), labels, worst_case=1e9)
    classes = quantile_strata(side.score, 200)
    fine, found, _ = known(side, classes)
    rate = found / fine
    best = (fine @ np.sqrt(rate * (1 - rate)) / comments) ** 2 / labels
    variance = line["prevalence_deviation"] ** 2
    pilot_labels = min(max(labels, PILOT_BINS * PILOT_LABELS), comments)  # fewer it cannot spend
    fewer = labels / pilot_labels
    pilots = pilot_counts(side, pilot_labels, generator)
    shares = np.array([float(pilot.weighted().rate) for pilot in pilots])
    random = draw_positives(
        [comments], [int(side.label.sum())], [labels], generator, repetitions=WIDTHS
    )
    plain = StratumCounts.from_arrays(
        population=[comments], labels=[labels], positives=random, score=[truth]
    )
    oracle = StratumCounts.from_arrays(
        population=sizes, labels=best_labels, score=means,
        positives=draw_positives(sizes, positives, best_labels, generator, repetitions=WIDTHS),
    )  # fmt: skip
    pilot_width = np.median([width(pilot)[0] for pilot in pilots[:PILOT_WIDTHS]])
    widths = {"random": width(plain), "oracle": width(oracle)}
    ratio = {
        f"width_{name}": (line["prevalence_width"] / item) ** 2 if given >= 0.5 else np.nan
        for name, (item, given) in widths.items()
    }
    if line["prevalence_given"] < 0.5:
        ratio = dict.fromkeys(ratio, np.nan)
    return ratio | {
        "width_pilot": (line["prevalence_width"] / (pilot_width or np.nan)) ** 2 * fewer,
        "sd_pilot": fewer * variance / (shares.var() or np.nan),
        "sd_random": variance / (truth * (1 - truth) / labels * (1 - labels / comments)),
        "sd_oracle": variance / (variance_by(sizes, positives, best_labels) or np.nan),
        "sd_best": variance / best,
        "best_pilot": fewer * best / (shares.var() or np.nan),
        "pilot_bias": (shares.mean() - truth) / (shares.std() or np.nan),
    }


def pilot_counts(side: Side, labels, generator):
    """Return audits by the paper's design."""
    sizes, positives, means = known(side, quantile_strata(side.score, PILOT_BINS))
    return [pilot_audit(sizes, positives, means, labels, generator) for _ in range(PILOTS)]


def width(counts: StratumCounts) -> tuple[float, float]:
    """Return the median width of the default interval, and the share of audits with an estimate."""
    empty = AuditEstimator(flagged=None, unflagged=counts.weighted(), comments=(0, 1))
    side = empty.side("unflagged")
    given = counts.positives.sum(-1) >= ENOUGH_POSITIVES
    return float(np.median(side.high - side.low)), float(np.mean(given))


def real_stream() -> SimulatedPopulation | None:
    """Return the published stream, flagged above 0.8 by its own score; None when not at hand."""
    file = Path(
        os.environ.get("MODWATCH_DATA", "../shared/data"), "wikipedia_talk/context_gc.csv.gz"
    )
    if not file.exists():
        return None
    with gzip.open(file, "rt", newline="") as rows:
        pairs = [(float(row["api"]), int(float(row["label"]))) for row in csv.DictReader(rows)]
    score, label = (np.array(column) for column in zip(*pairs, strict=True))
    flagged = score > 0.8
    parts = [Side(score=score[part], label=label[part] == 1) for part in (flagged, ~flagged)]
    return SimulatedPopulation(flagged=parts[0], unflagged=parts[1])


SHOWN = {
    "recall_printed": "recall", "precision_printed": "precision", "accuracy_printed": "accuracy",
    "prevalence_printed": "missed", "recall_given": "given", "prevalence_coverage": "cover",
    "recall_coverage": "r cover", "prevalence_bias": "bias", "recall_bias": "r bias",
    "width_random": "w/random", "recall_random": "r/random",
    "worst": "sd/random", "width_pilot": "w/pilot", "width_oracle": "w/oracle",
    "sd_pilot": "sd/pilot", "sd_oracle": "sd/oracle", "sd_best": "sd/best",
    "best_pilot": "best/pilot",
}  # fmt: skip


def main() -> int:
    """Print a line a cell and planner; return 1 when a floor is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--csv", type=Path, help="write all figures there too")
    parser.add_argument("--only", choices=("usual", "hostile"))
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    asked = parser.parse_args()
    started = time.perf_counter()
    every = range(len(USUAL) + len(UNUSUAL))
    cells = {"usual": every[: len(USUAL)], "hostile": every[len(USUAL) :]}.get(asked.only, every)
    with ProcessPoolExecutor(asked.processes) as pool:
        lines = pool.map(partial(cell, repetitions=asked.repetitions), cells)
        table = pd.DataFrame(list(chain.from_iterable(lines)))
    if asked.csv:
        table.to_csv(asked.csv, index=False)
    index = ["score", "hidden", "prevalence", "labels", "planner"]
    shown = table.set_index(index)[list(SHOWN)].rename(columns=SHOWN)
    print(shown.round(3).to_string())
    for planner, part in table[table["hidden"].notna()].groupby("planner"):
        print(f"\nPlanner with {'a random slice' if planner == 'slice' else 'no labels'}:")
        report(part)
    missed = floors(table)
    stream = real_stream()
    if stream is None:
        print("The real stream was not at hand (MODWATCH_DATA).")
    else:
        print("Real stream, Wikipedia Talk, by resampling:")
        for labels, planner in product(LABELS, PLANNERS):
            line = measured(stream, labels, asked.repetitions, planner, labels)
            print(labels, planner, {SHOWN[name]: round(float(line[name]), 3) for name in SHOWN})
    print(f"{time.perf_counter() - started:.0f} s")
    return int(missed)


def floors(table: pd.DataFrame) -> bool:
    """Print which cells miss the floors of coverage and of labels; return whether any does."""
    missed = False
    where = ["score", "hidden", "prevalence", "labels", "planner"]
    for name, title, low, high in (
        *(
            (f"{metric.removesuffix('_unflagged')}_printed", metric, PRINTED, 1.0)
            for metric in METRICS
        ),
        ("worst", "variance over random", 0.0, OVER_RANDOM),
        ("width_random", "labels over random, missed share", 0.0, OVER_RANDOM),
        ("recall_random", "labels over random, recall", 0.0, OVER_RANDOM),
    ):
        values = table[name]
        bad = table[(values < low) | (values > high)]
        missed |= len(bad) > 0
        print(
            f"{title}: {values.min():.3f} to {values.max():.3f}, median {values.median():.3f}; "
            f"{len(bad)} of {values.notna().sum()} outside {low:g} to {high:g}"
        )
        if len(bad):
            print(bad[[*where, name]].round(4).to_string(index=False))
    return missed


def report(table: pd.DataFrame) -> None:
    """Print which cells miss the floors; except cells without estimates in half of their audits."""
    given = table["prevalence_given"] >= 0.5
    for name in ("prevalence", "recall"):
        some = table[table[f"{name}_given"] >= 0.5]
        cover, bias = some[f"{name}_coverage"], some[f"{name}_bias"].abs()
        print(
            f"{name}: {len(some)} of {len(table)} cells with figures; coverage "
            f"{cover.min():.3f}–{cover.max():.3f}, under {LOWEST}: {int((cover < LOWEST).sum())}, "
            f"over {HIGHEST}: {int((cover > HIGHEST).sum())}; largest bias {bias.max():.2f} "
            f"standard errors, above {MOST_BIAS}: {int((bias > MOST_BIAS).sum())}"
        )
    few, four = given & (table["prevalence"] <= 0.01), given & (table["prevalence"] == 0.04)
    for name, part, most in (("pilot", few, 0.6), ("pilot", four, 0.8), ("oracle", given, 1.3)):
        for by in ("width", "sd"):
            ratio = table[part][f"{by}_{name}"]
            print(f"{by}: at most {most} x the {name}'s: {(ratio <= most).sum()} of {len(ratio)}")
    for (score, hidden), part in table[given].groupby(["score", "hidden"]):
        low, four = part[part["prevalence"] <= 0.01], part[part["prevalence"] == 0.04]
        print(
            f"{score}, {hidden:.0%} hidden: labels over the pilot's, ≤ 1 %: "
            f"{low['width_pilot'].median():.2f} by width, {low['sd_pilot'].median():.2f} by "
            f"deviation (best possible {low['best_pilot'].median():.2f}); at 4 %: "
            f"{four['width_pilot'].median():.2f}, {four['sd_pilot'].median():.2f} "
            f"({four['best_pilot'].median():.2f}); over the oracle's "
            f"{part['sd_oracle'].median():.2f} (largest {part['sd_oracle'].max():.2f})"
        )


if __name__ == "__main__":
    sys.exit(main())
