"""Coverage of the interval of an audit, and how many labels its design saves.

    python benchmarks/audit.py [--repetitions 2000] [--csv FILE]

Simulated populations of 400,000 comments (`tests/support/simulated_audits.py`): prevalence of the
unflagged 0.1, 0.5, 1, 2, 4 and 8 %, a sharp, a dull and a miscalibrated score, 0 or 20 % of the
positives missed by it, 500, 1,000 and 3,000 labels. All designs see the same populations. Named
baselines:

- pilot: the paper's design, 8 quantile strata, 50 pilot labels each, pooled (as many labels);
- random: a simple random sample of the unflagged;
- oracle: the allocation of least variance in the default's strata, all labels being known;
- best: the same for any number of strata by this score, E[√(p(1−p))]², p being the true rate in
  each of 200 classes of the score: no design that goes by this score can need fewer labels.

Labels for the same width: (width / width of the baseline)² at the same number of labels, both with
the default interval; and by the estimators' own standard deviations, without any interval. With
the published data at hand (MODWATCH_DATA), the same on the real stream. `audit_curves.py` draws the
pictures of docs/auditors.md from the CSV.
"""

import argparse
import csv
import gzip
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from modwatch.audit.allocation import optimal
from modwatch.audit.design import DesignOptions, ScoreCounts, design
from modwatch.audit.estimates import ENOUGH_POSITIVES, AuditEstimator
from modwatch.audit.intervals import IntervalOptions
from modwatch.audit.strata import strata
from modwatch.audit.stratified import StratumCounts

# Populations and baselines are shared with the tests.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
from simulated_audits import (
    PILOT_BINS,
    PILOT_LABELS,
    Side,
    SimulatedPopulation,
    draw_positives,
    pilot_audit,
    simulate,
)

PREVALENCES = (0.001, 0.005, 0.01, 0.02, 0.04, 0.08)
SCORES = ("sharp", "dull", "miscalibrated")
HIDDEN = (0.0, 0.2)
LABELS = (500, 1000, 3000)
CELLS = tuple(product(PREVALENCES, SCORES, HIDDEN, LABELS))
#: Repetitions of the pilot, and of a baseline where intervals are asked for.
PILOTS, WIDTHS = 1000, 400
LOWEST, HIGHEST, MOST_BIAS = 0.94, 0.99, 0.25


def known(side: Side, cut) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return N, K and mean score of each stratum."""
    stratum = cut.assign(side.score)
    size = np.bincount(stratum, minlength=len(cut))
    return (
        size,
        np.bincount(stratum, weights=side.label, minlength=len(cut)).astype(int),
        np.bincount(stratum, weights=side.score, minlength=len(cut)) / size,
    )


def audited(made, population, generator, repetitions, options):
    """Return `repetitions` audits by a design."""
    counts = []
    for side, truth in ((made.flagged, population.flagged), (made.unflagged, population.unflagged)):
        sizes, positives, _ = known(truth, side.strata)
        found = draw_positives(sizes, positives, side.labels, generator, repetitions=repetitions)
        counts.append(
            StratumCounts.of(
                population=sizes, labels=side.labels, positives=found, score=side.score
            ).weighted()
        )
    comments = (population.flagged.label.size, population.unflagged.label.size)
    return AuditEstimator(
        flagged=counts[0], unflagged=counts[1], comments=comments, options=options
    )


def judged(name, estimate, truth, enough):
    """Return coverage, of all audits and of those with an estimate, bias and width.

    `above`: the share of the estimates whose interval ends below the true value.
    """
    holds = (estimate.low <= truth) & (truth <= estimate.high)
    deviation = float(estimate.value.std()) or np.nan
    return {
        f"{name}_coverage_all": holds.mean(),
        f"{name}_coverage": holds[enough].mean() if enough.any() else np.nan,
        f"{name}_above": (truth > estimate.high)[enough].mean() if enough.any() else np.nan,
        f"{name}_given": enough.mean(),
        f"{name}_bias": (estimate.value.mean() - truth) / deviation,
        f"{name}_width": float(np.median(estimate.high - estimate.low)),
        f"{name}_deviation": deviation,
    }


def cell(number, repetitions):
    """Return the line of one of `CELLS`."""
    prevalence, score, hidden, labels = CELLS[number]
    population = simulate(prevalence=prevalence, score=score, hidden=hidden)
    return measured(population, labels, repetitions, prevalence, number) | {
        "prevalence": prevalence, "score": score, "hidden": hidden, "labels": labels,
        "repetitions": repetitions,
    }  # fmt: skip


def measured(population: SimulatedPopulation, labels, repetitions, expected, seed):
    """Return what the default design and the baselines give on a population."""
    generator = np.random.default_rng(seed)
    flagged, missed = population.flagged, population.unflagged
    options = DesignOptions(expected_prevalence=expected)
    made = design(ScoreCounts.of(flagged.score), ScoreCounts.of(missed.score), labels, options)
    audits = audited(made, population, generator, repetitions, IntervalOptions())
    enough = audits.unflagged.positives.sum(-1) >= ENOUGH_POSITIVES
    both = enough & (audits.flagged.positives.sum(-1) >= ENOUGH_POSITIVES)
    truth = float(missed.label.mean())
    line = judged("prevalence", audits.interval_estimate("prevalence_unflagged"), truth, enough)
    line |= judged("recall", audits.interval_estimate("recall"), population.recall, both)
    classic = audited(
        made, population, generator, repetitions, IntervalOptions(method="korn_graubard")
    )
    estimate = classic.interval_estimate("prevalence_unflagged")
    line["korn_graubard"] = ((estimate.low <= truth) & (truth <= estimate.high))[
        classic.unflagged.positives.sum(-1) >= ENOUGH_POSITIVES
    ].mean()
    spent = int(made.unflagged.labels.sum())
    return line | baselines(missed, made.unflagged.strata, spent, generator, line)


def baselines(side: Side, cut, labels, generator, line) -> dict[str, float]:
    """Return the labels of the default design over those of each baseline."""
    truth, comments = side.label.mean(), side.label.size
    sizes, positives, means = known(side, cut)
    best_labels = optimal(sizes, positives, labels)
    classes = strata(side.score, method="quantile", bins=200)
    fine, found, _ = known(side, classes)
    rate = found / fine
    best = (fine @ np.sqrt(rate * (1 - rate)) / comments) ** 2 / labels
    variance = line["prevalence_deviation"] ** 2
    pilot_labels = max(labels, PILOT_BINS * PILOT_LABELS)  # fewer it cannot spend
    fewer = labels / pilot_labels
    pilots = pilot_counts(side, pilot_labels, generator)
    shares = np.array([float(each.rate()) for each in pilots])
    widths = [width(each) for each in pilots[:WIDTHS]]
    random = draw_positives(
        [comments], [int(side.label.sum())], [labels], generator, repetitions=WIDTHS
    )
    plain = StratumCounts.of(
        population=[comments], labels=[labels], positives=random, score=[truth]
    )
    oracle = StratumCounts.of(
        population=sizes, labels=best_labels, score=means,
        positives=draw_positives(sizes, positives, best_labels, generator, repetitions=WIDTHS),
    )  # fmt: skip
    ratio = {
        "pilot": np.median(widths) / fewer**0.5, "random": width(plain), "oracle": width(oracle),
    }  # fmt: skip
    p = positives / sizes
    weight = sizes / comments
    least = float((weight**2 * (1 - best_labels / sizes) * p * (1 - p) / best_labels).sum())
    return {f"width_{name}": (line["prevalence_width"] / w) ** 2 for name, w in ratio.items()} | {
        "sd_pilot": fewer * variance / shares.var(),
        "sd_random": variance / (truth * (1 - truth) / labels * (1 - labels / comments)),
        "sd_oracle": variance / least,
        "sd_best": variance / best,
        "best_pilot": fewer * best / shares.var(),
        "pilot_bias": (shares.mean() - truth) / shares.std(),
    }


def pilot_counts(side: Side, labels, generator):
    """Return audits by the paper's design."""
    sizes, positives, means = known(side, strata(side.score, method="quantile", bins=PILOT_BINS))
    return [pilot_audit(sizes, positives, means, labels, generator) for _ in range(PILOTS)]


def width(counts: StratumCounts) -> float:
    """Return the width of the default interval, the median of repetitions."""
    nobody = AuditEstimator(flagged=None, unflagged=counts.weighted(), comments=(0, 1))
    side = nobody.side("unflagged")
    return float(np.median(side.high - side.low))


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
    "prevalence_coverage_all": "cover", "prevalence_coverage": "given", "prevalence_given": "share",
    "prevalence_bias": "bias", "recall_coverage": "recall", "recall_bias": "r bias",
    "korn_graubard": "KG", "width_pilot": "w/pilot", "width_random": "w/random",
    "width_oracle": "w/oracle", "sd_pilot": "sd/pilot", "sd_random": "sd/random",
    "sd_oracle": "sd/oracle", "sd_best": "sd/best", "best_pilot": "best/pilot",
    "pilot_bias": "pilot bias",
}  # fmt: skip


def main() -> int:
    """Print a line a cell, and which floors were missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--csv", type=Path, help="write all figures there too")
    asked = parser.parse_args()
    started = time.perf_counter()
    with ProcessPoolExecutor() as pool:
        lines = pool.map(partial(cell, repetitions=asked.repetitions), range(len(CELLS)))
        table = pd.DataFrame(list(lines))
    if asked.csv:
        table.to_csv(asked.csv, index=False)
    index = ["prevalence", "score", "hidden", "labels"]
    shown = table.set_index(index)[list(SHOWN)].rename(columns=SHOWN).sort_index()
    print(shown.round(3).to_string())
    report(table)
    stream = real_stream()
    if stream is None:
        print("The real stream was not at hand (MODWATCH_DATA).")
    else:
        print("Real stream, Wikipedia Talk, by resampling:")
        for labels in (500, 1000, 3000):
            expected = stream.unflagged.label.mean()
            line = measured(stream, labels, asked.repetitions, expected, labels)
            print(labels, {SHOWN[name]: round(float(line[name]), 3) for name in SHOWN})
    print(f"{time.perf_counter() - started:.0f} s")
    return 0


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
