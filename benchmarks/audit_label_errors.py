"""Coverage of what an audit prints when annotators err, and the price in labels and width.

    python benchmarks/audit_label_errors.py [--repetitions 200] [--kinds low …] [--csv FILE]

The populations of `benchmarks/audit.py`, 1,000 and 3,000 labels; annotators with false-positive and
false-negative rates of 1/10 and 2/20 %, the latter also on hard comments, where a second person
repeats an error as on Civil Comments or, as the plan then states, half of the time, and by score as
in `benchmarks/populations.py`: misses rise from 8 to 50 % as it falls (`low`), from 14 to 32 %
(`mild`), or like the first while false positives rise with it (`both`). The default plan with its
default confirmations. On the same samples:

- reported: what an audit reports;
- independent: the same, if no error were shared;
- uncorrected: the same, first labels taken for true;
- infallible: the same, true labels.

Floors: coverage of the reported interval, or of the bound in its place, ≥ 93 % for recall,
precision and the missed share (an estimate that is insufficient counts by its bound); width up to
1.3 times that of independent errors. Cells are judged with three standard errors of their
repetitions.
"""

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from audit import METRICS, holds, planned, truths

from modwatch.statistics.audit.confirmation_rules import planned_rules
from modwatch.statistics.audit.estimates import AuditEstimator
from modwatch.statistics.audit.imputation import ImputedEstimator, LabelErrors
from modwatch.statistics.audit.stratified import StratumCounts
from modwatch.statistics.label_truth import SHARED, ErrorEvidence, GivenLabels, true_labels

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
import populations
from simulated_errors import labels_of

from modwatch_lab.audit_designs import HOSTILE, hostile, simulate

#: Kinds of errors by score, of `populations`.
BY_SCORE = ("low", "mild", "both")
#: False-positive and false-negative rate; kind of errors, of `simulated_errors` or by score.
ERRORS = (
    (0.01, 0.1, "independent"),
    (0.02, 0.2, "independent"),
    (0.02, 0.2, "hard"),
    (0.02, 0.2, "harder"),
    *((0.02, 0.2, kind) for kind in BY_SCORE),
)
KINDS = tuple(dict.fromkeys(kind for *_, kind in ERRORS))
LABELS = (1000, 3000)
USUAL = (
    (0.001, "sharp", 0.0),
    (0.005, "sharp", 0.2),
    (0.01, "dull", 0.0),
    (0.02, "miscalibrated", 0.0),
    (0.02, "sharp", 0.2),
    (0.04, "dull", 0.2),
    (0.08, "sharp", 0.0),
    (0.08, "dull", 0.2),
)
CELLS = tuple(
    (name, labels, errors)
    for name, labels, errors in product(
        (*USUAL, *(item for item in HOSTILE if item != "300 comments")), LABELS, ERRORS
    )
    if errors[2] == "independent" or name in USUAL
)
#: Expected confirmations over labels, as by default.
SHARE = 0.2
SIDE = ("score", "label")
FLOOR, MOST_WIDER = 0.93, 1.3
#: Audits by one design, whose recalibration depends on one random slice.
A_SLICE = 20


def people(population, score, truth, errors, generator):
    """Return the labels (m, 3) of people who make these errors."""
    if errors[2] not in BY_SCORE:
        return labels_of(generator, truth, errors[:2], errors[2])
    sides = population.flagged, population.unflagged
    scores, toxic = (np.concatenate([vars(side)[name] for side in sides]) for name in SIDE)
    known = (np.sort(scores[toxic == label]) for label in (0, 1))
    rates = populations.errors_by_score(errors[2], *known, score)
    return populations.labels(generator, truth, rates)


def labelled(given, flagged, rules, generator):
    """Return first labels, number of labels, and of toxic ones; `given` (m, 3) are by people."""
    first, second, third = given.T
    chance = np.where(
        flagged,
        np.array(rules["flagged"].by_label)[first],
        np.array(rules["unflagged"].by_label)[first],
    )
    confirmed = generator.random(flagged.size) < chance
    differ = confirmed & (first != second)
    given = 1 + confirmed + differ
    return first, given, first + confirmed * second + differ * third


class Audit:
    """One audit of a population, and the estimates of its labels."""

    def __init__(self, population, made, rules, errors, generator):
        self.made = made
        sides = (population.flagged, population.unflagged)
        self.comments = tuple(side.label.size for side in sides)
        designs = (made.flagged, made.unflagged)
        rows = [item.draw(side.score, generator) for item, side in zip(designs, sides, strict=True)]
        score, truth = (
            np.concatenate(
                [getattr(side, name)[row] for side, row in zip(sides, rows, strict=True)]
            )
            for name in ("score", "label")
        )
        self.size = rows[0].size
        flagged = np.arange(score.size) < self.size
        self.stratum = [
            design.strata.assign(part)
            for design, part in zip(designs, (score[flagged], score[~flagged]), strict=True)
        ]
        self.truth = truth.astype(np.int64)
        labels = people(population, score, self.truth, errors, generator)
        self.first, given, toxic = labelled(labels, flagged, rules, generator)
        self.price = given.sum() / given.size - 1
        group = (~flagged).astype(np.int64)
        self.labels = GivenLabels(prob=score, group=group, given=given, toxic=toxic)

    def estimator(self, label):
        """Return the estimator of labels (m,), or of draws (R, m)."""
        parts = label[..., : self.size], label[..., self.size :]
        counts = [
            StratumCounts.from_arrays(
                population=design.population,
                labels=design.labels,
                score=design.score,
                positives=np.stack(
                    [part[..., stratum == h].sum(-1) for h in range(len(design.strata))], axis=-1
                ),
            ).weighted()
            for design, part, stratum in zip(
                (self.made.flagged, self.made.unflagged), parts, self.stratum, strict=True
            )
        ]
        return AuditEstimator(flagged=counts[0], unflagged=counts[1], comments=self.comments)

    def corrected(self, shared):
        """Return the estimator that allows for errors, of which a part may be shared."""
        posterior = true_labels(self.labels, ErrorEvidence.sharing(*shared))
        errors = LabelErrors(keys=[*range(self.truth.size)], truth=posterior)
        drawn = np.stack([*errors.drawn.values()], axis=-1)
        return ImputedEstimator.from_draws(self.estimator(drawn))


def row(metric, truth, estimates):
    """Return what one metric of an audit came to."""
    found = {}
    for name, item in estimates.items():
        low, high = 0.0 if item.low is None else item.low, 1.0 if item.high is None else item.high
        found |= {
            f"{name}_holds": holds(low, high, truth),
            f"{name}_width": high - low if item.value is not None else np.nan,
            f"{name}_value": np.nan if item.value is None else item.value,
        }
    return {"metric": metric, "truth": truth} | found


def cell(number, repetitions):
    """Return a line for each metric of a cell."""
    name, labels, errors = CELLS[number]
    if isinstance(name, tuple):
        population = simulate(prevalence=name[0], score=name[1], hidden=name[2])
    else:
        population = hostile(name)
    generator = np.random.default_rng(number)
    wanted, rows, prices = truths(population), [], []
    for repetition in range(repetitions):
        if repetition % A_SLICE == 0:
            made = planned(population, labels, "slice", generator)[0]
            sides = {"flagged": made.flagged, "unflagged": made.unflagged}
            strata = [
                (side, labels, score)
                for side, item in sides.items()
                for labels, score in zip(item.labels.tolist(), item.score.tolist(), strict=True)
            ]
            rules = planned_rules(strata, SHARE)
        audit = Audit(population, made, rules, errors, generator)
        prices.append(audit.price)
        estimators = {
            "reported": audit.corrected((0.5, 0.5) if errors[2] == "harder" else SHARED),
            "independent": audit.corrected((0.0, 0.0)),
            "uncorrected": audit.estimator(audit.first),
            "infallible": audit.estimator(audit.truth),
        }
        for metric in METRICS:
            found = {kind: item.estimate(metric) for kind, item in estimators.items()}
            rows.append(row(metric, wanted[metric], found))
    table = pd.DataFrame(rows)
    lines = []
    for metric, part in table.groupby("metric"):
        values = part["reported_value"].dropna()
        lines.append(
            {
                "population": str(name), "labels": labels, "errors": errors, "metric": metric,
                "coverage": part["reported_holds"].mean(),
                "independent": part["independent_holds"].mean(),
                "uncorrected": part["uncorrected_holds"].mean(),
                "infallible": part["infallible_holds"].mean(),
                "width": (part["reported_width"] / part["infallible_width"]).median(),
                "wider": (part["reported_width"] / part["independent_width"]).median(),
                "given": part["reported_value"].notna().mean(),
                "bias": (values.mean() - part["truth"].iloc[0]) / values.std(),
                "price": np.mean(prices), "repetitions": repetitions,
            }
        )  # fmt: skip
    return lines


def main() -> int:
    """Print a line per cell; return 1 when a floor is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--kinds", nargs="*", default=KINDS, choices=KINDS)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    started = time.perf_counter()
    numbers = [number for number, (*_, errors) in enumerate(CELLS) if errors[2] in asked.kinds]
    lines = []
    with ProcessPoolExecutor(asked.processes) as pool:
        for found in pool.map(partial(cell, repetitions=asked.repetitions), numbers):
            lines += found
            if asked.csv:
                pd.DataFrame(lines).to_csv(asked.csv, index=False)
    table = pd.DataFrame(lines)
    shown = table.drop(columns=["repetitions"]).set_index(["population", "labels", "errors"])
    print(shown.round(3).to_string())
    missed = floors(table)
    print(f"{time.perf_counter() - started:.0f} s")
    return int(missed)


def floors(table: pd.DataFrame) -> bool:
    """Print coverage and width by kind of errors; return whether a floor is missed."""
    missed = False
    for (metric, errors), part in table.groupby(["metric", "errors"]):
        noise = 3 * np.sqrt(FLOOR * (1 - FLOOR) / part["repetitions"].iloc[0])
        bad = part[part["coverage"] < FLOOR - noise]
        wider = part["wider"].median()
        if metric in ("recall", "precision", "prevalence_unflagged"):
            missed |= part["coverage"].mean() < FLOOR or len(bad) > 0 or wider > MOST_WIDER
        print(
            f"{metric}, {errors}: mean {part['coverage'].mean():.3f}, lowest "
            f"{part['coverage'].min():.3f}; independent {part['independent'].mean():.3f} "
            f"({part['independent'].min():.3f}), uncorrected {part['uncorrected'].mean():.3f}, "
            f"infallible {part['infallible'].mean():.3f}; width {wider:.2f} times that of "
            f"independent errors, {part['width'].median():.2f} times that of infallible labels; "
            f"{100 * part['price'].mean():.0f} % more labels; {len(bad)} cells below "
            f"{FLOOR - noise:.3f}"
        )
    return missed


if __name__ == "__main__":
    sys.exit(main())
