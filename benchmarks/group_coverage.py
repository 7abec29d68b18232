"""Intervals, power and false alarms of the figures of groups of annotators.

    python benchmarks/group_coverage.py [--repetitions 500] [--people 20 100]

Three groups of a simulated crowd (`tests/support/divergent_crowd.py`) label 500 items; the last
one turns round a part of the labels that agree with the model, which lowers its agreement by five
points. Printed are, by number of annotators a group: the share of 95 % intervals that hold the
figure, the difference from all others, and Cohen's kappa, of 24,000 such people (floor: 93–98 %),
and the share of tests of the last group's agreement at 5 % that find the bias (floor at 100
annotators: 80 %), and that find one where there is none (5 %).
"""

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from divergent_crowd import crowd

from modwatch.statistics.divergence import group_report, kappa_table

#: Of the labels that agree: five points of agreement.
BIAS = 0.063
METRICS = ("agreement", "f1", "mean_delta", "uncertainty_divergence")
#: Columns of a figure and of its interval; divergences have no difference.
KINDS = {
    "": ("value", "low", "high"),
    "difference in ": ("difference", "difference_low", "difference_high"),
}


def figures(seed, people, bias, draws):
    made = crowd(seed, people=people, bias=bias)
    table = group_report(made.annotations, made.prob, made.groups, draws=draws, seed=seed)
    return table.set_index(["metric", "group"])


def kappas(seed, people):
    made = crowd(seed, people=people, bias=BIAS)
    return kappa_table(made.annotations, made.groups)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=500)
    parser.add_argument("--people", type=int, nargs="*", default=[20, 100])
    options = parser.parse_args()
    truth, kappa = figures(10**6, 8_000, BIAS, 1), kappas(10**6, 8_000)["kappa"]
    print(f"{'annotators':>10} {'figure':>24} {'coverage':>9} {'lowest group':>13}")
    for people in options.people:
        held, found, alarms = {}, 0, 0
        for seed in range(options.repetitions):
            table = figures(seed, people, BIAS, 200)
            for kind, (value, low, high) in KINDS.items():
                inside = (table[low] <= truth[value]) & (truth[value] <= table[high])
                for metric in METRICS[: 4 - 1 * (kind != "")]:
                    held.setdefault(f"{kind}{metric}", []).append(inside[metric].to_list())
            table_of_kappa = kappas(seed, people)
            inside = kappa.between(table_of_kappa["low"], table_of_kappa["high"])
            held.setdefault("kappa", []).append(inside.to_list())
            found += table["p_value"]["agreement", "group 2"] < 0.05
            calm = figures(10**7 + seed, people, 0.0, 200)
            alarms += calm["p_value"]["agreement", "group 2"] < 0.05
        for figure, hits in held.items():
            share = np.mean(hits, axis=0)
            print(f"{people:>10} {figure:>24} {share.mean():>9.3f} {share.min():>13.3f}")
        print(
            f"{people:>10} bias of five points found {found / options.repetitions:.2f}, "
            f"false alarms {alarms / options.repetitions:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
