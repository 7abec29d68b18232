"""How often the segment that was drifted on purpose is named first.

    python benchmarks/segments.py [--cases 200] [--seed 1]

Days of simulated platforms, languages and lengths are compared with the 14 days before. On each day
one segment is drifted, a value or a pair of values: its comments are flagged more often
(*behaviour*), or there are more of them and these are flagged three times as often as others on
every day (*composition*), or those that are not flagged score higher (*score*). A third of the
comments mention one of eight identities, and on some days those of one are flagged more often
(*identity*). Days differ by chance in size, shares and rates. Printed are, by size of the day,
share of the segment and size of the shift, the share of cases in which the segment is ranked first,
and in which a segment is named because it stands out (Holm, 5 %); then the share of right ones
among those named.

Two more columns have the share of cases in which the drifted segment has the highest likelihood if
the shares and rates of before, and kind and size of the shift, are known: of all segments
(*oracle*), and of those that go the way of the day's change (*same way*).

Floors, each 90 %: of the cases in which the flagged share of the whole day moved by two points or
more, those with the right segment first; of all that are named, the right ones. In the rows without
a shift, or with the same shift in all segments, none should stand out; where only scores changed,
none should for flags, which the last column of those rows tells.
"""

import argparse
import sys
from itertools import product

import numpy as np
import pandas as pd

from modwatch.statistics.drift.shift_segments import NONE, explain_shift, leading

FACTORS = {"platform": 4, "language": 5, "length": 4}
LABEL = "identity"
#: Shares of the comments that mention each identity.
MENTIONS = (0.01, 0.01, 0.02, 0.02, 0.03, 0.05, 0.05, 0.15)
USUAL_RATE = 0.08
DAYS = 14
FLOOR = 0.9
PREFIXES = ("reference_", "")
SHOWN = ("first", "named", "shift")


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
    names = [*(f"i{n}" for n in range(len(MENTIONS))), NONE]
    of_label = np.append(MENTIONS, 1 - sum(MENTIONS))
    labelled = cells.loc[np.repeat(cells.index, len(names))].reset_index(drop=True)
    labelled[LABEL] = names * len(cells)
    return labelled, np.outer(share / share.sum(), of_label).ravel(), np.repeat(rate, len(names))


def segments(cells):
    """Return the cells that are in each value, pair of values and identity, by name."""
    found = {}
    names = list(FACTORS)
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    for factors in [(name,) for name in names] + pairs:
        for values in cells[list(factors)].drop_duplicates().itertuples(index=False):
            rows = np.logical_and.reduce(
                [cells[f] == v for f, v in zip(factors, values, strict=True)]
            )
            name = ", ".join(f"{f}={v}" for f, v in zip(factors, values, strict=True))
            found[name] = np.asarray(rows)
    for value in sorted({*cells[LABEL]} - {NONE}):
        found[f"{LABEL}={value}"] = (cells[LABEL] == value).to_numpy()
    return found


def inside(every, share, wanted, rng, kind):
    """Return a segment, and which cells are in it: of those of a kind, one of about that share."""
    names = [name for name in every if name.startswith(LABEL) == (kind == LABEL)]
    order = sorted((abs(np.log(share[every[n]].sum() / wanted)), rng.random(), n) for n in names)
    name = order[0 if kind == LABEL else rng.integers(3)][2]
    return name, every[name]


def likelihoods(every, counts, share, rate, factor, kind):
    """Return the logarithm of the likelihood ratio of a known shift in each segment, by name."""
    n, flagged = counts["comments"], counts["flagged"]
    if kind == "composition":
        of_size, whole = np.log(factor), n.sum()
        return {
            name: of_size * n[rows].sum() - whole * np.log1p((factor - 1) * share[rows].sum())
            for name, rows in every.items()
        }
    new = np.minimum(rate * factor, 0.95)
    item = flagged * np.log(new / rate) + (n - flagged) * np.log((1 - new) / (1 - rate))
    return {name: item[rows].sum() for name, rows in every.items()}


def case(seed, size, wanted, factor, kind):
    """Return what was found in a day of flags, and by how much its flagged share moved."""
    rng = np.random.default_rng(seed)
    cells, share, rate = population(rng)
    every = segments(cells)
    name, rows = inside(every, share, wanted, rng, kind)
    day_share, day_rate = share.copy(), rate.copy()
    if kind in ("behaviour", LABEL):
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
    found = explain_shift(cells.assign(**counts), list(FACTORS), labels=[LABEL])
    known = likelihoods(every, counts, share, rate, factor, kind)
    listed = [match.name for match in found if match.name in known]
    return {
        **outcome(found, name),
        "shift": abs(day_share @ day_rate - share @ rate),
        "oracle": max(known, key=known.get) == name,
        "same way": bool(listed) and max(listed, key=known.get) == name,
    }


def outcome(found, name):
    """Return whether the right segment is first, and whether one is named."""
    return {
        "first": bool(found) and found[0].name == name,
        "named": leading(found) is not None,
    }


def score_case(seed, size, wanted, factor):
    """Return what was found in a day on which comments that are not flagged score higher.

    Scores of a comment that is not flagged are half of a beta variable of mean 0.2 and precision 5,
    those of a flagged one are uniform above one half.
    """
    rng = np.random.default_rng(seed)
    cells, share, rate = population(rng)
    name, rows = inside(segments(cells), share, wanted, rng, "score")
    counts = {}
    for prefix, number in (("", size), ("reference_", DAYS * size)):
        n = rng.multinomial(number, share)
        cell = np.repeat(np.arange(len(n)), n)
        flagged = rng.random(number) < rate[cell]
        mean = np.where(rows[cell] & (prefix == ""), 0.2 * factor, 0.2)
        score = np.where(
            flagged, rng.uniform(0.5, 1, number), rng.beta(5 * mean, 5 * (1 - mean)) / 2
        )
        sums = {"comments": None, "flagged": flagged, "prob": score, "prob_square": score**2}
        for column, value in sums.items():
            counts[prefix + column] = np.bincount(cell, value, len(n))
    cells = cells.assign(**counts)
    found = explain_shift(cells, list(FACTORS), measure="prob", labels=[LABEL])
    before, day = (counts[f"{p}prob"].sum() / counts[f"{p}comments"].sum() for p in PREFIXES)
    by_flags = leading(explain_shift(cells, list(FACTORS), labels=[LABEL])) is not None
    return {**outcome(found, name), "shift": abs(day - before), "by flags": by_flags}


def report(title, done):
    """Print the rates of some cases; return whether both floors hold there."""
    table = pd.DataFrame(done).astype(float)
    named = table[table["named"] == 1]
    right = f"{100 * named['first'].mean():5.1f} %" if len(named) else "      –"
    others = " ".join(f"{100 * table[name].mean():8.1f} %" for name in table.columns[3:])
    first = table["first"].mean()
    print(
        f"{title:<40} {100 * first:5.1f} % {100 * table['named'].mean():6.1f} % {right}"
        f" {100 * table['shift'].mean():6.1f} {others}",
        flush=True,
    )
    return first >= FLOOR, not len(named) or named["first"].mean() >= FLOOR


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    grid = [
        *product((2_000, 10_000), (0.05, 0.15, 0.4), (1.5, 2.0, 4.0), ("behaviour",)),
        *product((2_000, 10_000), (0.05, 0.15), (2.0, 3.0), ("composition",)),
        *product((2_000, 10_000), (0.05, 0.15), (1.5, 2.0, 4.0), (LABEL,)),
    ]
    head = "   first    named   right  points     oracle   same way"
    print(f"{'comments a day, share of the segment, shift':<40}{head}")
    every = []
    for size, wanted, factor, kind in grid:
        done = [
            case([given.seed, number, size], size, wanted, factor, kind)
            for number in range(given.cases)
        ]
        every += done
        report(f"{size:>6,}  {wanted:4.0%}  {kind} x {factor:g}", done)
    _, right = report("all", every)
    first, _ = report("moved by two points or more", [e for e in every if e["shift"] >= 0.02])
    for kind, factor in (("none", 1.0), ("everywhere", 2.0)):
        done = [
            case([given.seed, number, 9], 10_000, 0.15, factor, kind)
            for number in range(given.cases)
        ]
        report(f"10,000  {kind} x {factor:g}", [{k: e[k] for k in SHOWN} for e in done])
    report_scores(given)
    return 0 if first and right else 1


def report_scores(given):
    """Print the rows of drifted scores, and of none."""
    print("by mean score; points of the score; last column: named by flags")
    for size, wanted, factor in product((2_000, 10_000), (0.05, 0.15, 0.4), (1.0, 1.25, 1.5)):
        if factor == 1.0 and wanted != 0.15:
            continue
        done = [
            score_case([given.seed, number, size], size, wanted, factor)
            for number in range(given.cases)
        ]
        report(f"{size:>6,}  {wanted:4.0%}  score x {factor:g}", done)


if __name__ == "__main__":
    sys.exit(main())
