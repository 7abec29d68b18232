"""How often the segment that was drifted on purpose is named first.

    python benchmarks/segments.py [--cases 200] [--seed 1]

Days of simulated platforms, languages and lengths are compared with the 14 days before. On each day
one segment is drifted, a value or a pair of values: its comments are flagged more often
(*behaviour*), or there are more of them and these are flagged three times as often as others on
every day (*composition*). Days differ by chance in size, shares and rates. Printed are, by size of
the day, share of the segment and size of the shift, the share of cases in which the segment is
ranked first, and in which a segment is named because it stands out (Holm, 5 %); then the share of
right ones among those named. Floors, each 90 %: of the cases in which the flagged share of the
whole day moved by two points or more, those with the right segment first; of all that are named,
the right ones. The last rows have no shift, or the same shift in all segments: there, none should
stand out.
"""

import argparse
import sys
from itertools import product

import numpy as np
import pandas as pd

from modwatch.metrics.segments import explain_shift, leading

FACTORS = {"platform": 4, "language": 5, "length": 4}
USUAL_RATE = 0.08
DAYS = 14
FLOOR = 0.9


def population(rng):
    """Return all combinations of values, with shares and flagged shares that vary."""
    cells = pd.DataFrame(
        product(*([f"{name[0]}{n}" for n in range(size)] for name, size in FACTORS.items())),
        columns=list(FACTORS),
    )
    share = np.ones(len(cells))
    for name, size in FACTORS.items():
        of_value = dict(
            zip(sorted(cells[name].unique()), rng.dirichlet(np.full(size, 4)), strict=True)
        )
        share = share * cells[name].map(of_value).to_numpy()
    share = share * rng.gamma(20, 1 / 20, len(cells))
    rate = USUAL_RATE * rng.gamma(20, 1 / 20, len(cells))
    return cells, share / share.sum(), rate


def inside(cells, share, wanted, rng):
    """Return a segment, and which cells are in it: of all, one of about the wanted share."""
    candidates = []
    names = list(FACTORS)
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    for factors in [(name,) for name in names] + pairs:
        for values in cells[list(factors)].drop_duplicates().itertuples(index=False):
            rows = np.logical_and.reduce(
                [cells[f] == v for f, v in zip(factors, values, strict=True)]
            )
            name = ", ".join(f"{f}={v}" for f, v in zip(factors, values, strict=True))
            candidates.append((abs(np.log(share[rows].sum() / wanted)), rng.random(), name, rows))
    candidates.sort(key=lambda each: each[:2])
    _, _, name, rows = candidates[rng.integers(3)]
    return name, np.asarray(rows)


def case(seed, size, wanted, factor, kind):
    """Return whether the right segment is first, whether one is named, and the day's shift."""
    rng = np.random.default_rng(seed)
    cells, share, rate = population(rng)
    name, rows = inside(cells, share, wanted, rng)
    day_share, day_rate = share.copy(), rate.copy()
    if kind == "behaviour":
        day_rate[rows] *= factor
    elif kind == "composition":
        rate[rows] = day_rate[rows] = np.minimum(3 * rate[rows], 0.9)
        day_share[rows] *= factor
    elif kind == "everywhere":
        day_rate *= factor
    day_rate, day_share = np.minimum(day_rate, 0.95), day_share / day_share.sum()
    counts = {}
    for prefix, number, p, q in (
        ("", size, day_share, day_rate),
        ("reference_", DAYS * size, share, rate),
    ):
        counts[f"{prefix}comments"] = rng.multinomial(number, p)
        counts[f"{prefix}flagged"] = rng.binomial(counts[f"{prefix}comments"], q)
    found = explain_shift(cells.assign(**counts), list(FACTORS))
    first = bool(found) and found[0].name == name
    return first, leading(found) is not None, abs(day_share @ day_rate - share @ rate)


def report(title, done):
    """Print the rates of some cases; return whether both floors hold there."""
    first, named, shift = (np.array(column) for column in zip(*done, strict=True))
    right = f"{100 * first[named].mean():5.1f} %" if named.any() else "      –"
    print(
        f"{title:<48} {100 * first.mean():5.1f} % {100 * named.mean():6.1f} % {right}"
        f" {100 * shift.mean():6.1f}"
    )
    return first.mean() >= FLOOR, not named.any() or first[named].mean() >= FLOOR


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    grid = [
        *product((2_000, 10_000), (0.05, 0.15, 0.4), (1.5, 2.0, 4.0), ("behaviour",)),
        *product((2_000, 10_000), (0.05, 0.15), (2.0, 3.0), ("composition",)),
    ]
    print(f"{'comments a day, share of the segment, shift':<48}   first    named   right  points")
    every = []
    for size, wanted, factor, kind in grid:
        done = [
            case([given.seed, number, size], size, wanted, factor, kind)
            for number in range(given.cases)
        ]
        every += done
        report(f"{size:>6,}  {wanted:4.0%}  {kind} x {factor:g}", done)
    _, right = report("all", every)
    first, _ = report("all that moved the day by two points", [e for e in every if e[2] >= 0.02])
    for kind, factor in (("none", 1.0), ("everywhere", 2.0)):
        done = [
            case([given.seed, number, 9], 10_000, 0.15, factor, kind)
            for number in range(given.cases)
        ]
        report(f"10,000  {kind} x {factor:g}", done)
    return 0 if first and right else 1


if __name__ == "__main__":
    sys.exit(main())
