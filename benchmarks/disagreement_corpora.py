"""Flip rates of published corpora, and how far their annotators agree with the majority.

    python benchmarks/disagreement_corpora.py [--data ../shared/data] [--samples 100] [--draws 200]

Prints a table of results/groups.md, and one of results/agreement.md: panels of some annotators of
each item are drawn, and the agreement that is reported from their labels alone is compared with
that of their majority and the annotators who were not drawn. Corpora that are not in the folder are
left out. The 95 % intervals of r and flip rates from retests are for the people of whom the
annotators are a sample: Student's t of the standard deviation over random halves of them, which is
the standard error of all of them.
"""

import argparse
import os
from pathlib import Path

import numpy as np
from scipy import stats

from modwatch.common.errors import MetricInputError
from modwatch.statistics.disagreement import (
    Annotations,
    agreement_with_people,
    estimate_flip_rates,
    fixed_flip_rate,
    majority,
)
from modwatch_lab.corpora import load, long_table

#: Name, loader, folder.
CORPORA = (
    ("XHateStability", "xhate_stability", "xhate_stability"),
    ("CREHate", "crehate", "crehate"),
    ("MD-Agreement", "md_agreement", "md_agreement"),
    ("Civil Comments, spans", "civil_comments_spans", "civil_comments"),
    ("SBIC v2, dev", "sbic", "sbic_v2"),
    ("Civil Comments, single ratings", "civil_comments_cctk", "civil_comments_cctk"),
)
#: Corpus, sizes of the panels, and annotators that an item must have.
PANELS = (
    ("CREHate", (2, 3, 4, 5, 7), 12),
    ("MD-Agreement", (2, 3, 4), 5),
    ("SBIC v2, dev", (2,), 3),
    ("Civil Comments, spans", (3, 5), 7),
    ("XHateStability", (3, 7, 11), 20),
)


def annotations_of(table):
    return Annotations.from_columns(**table[["item", "annotator", "label"]], classes=(0, 1))


def of_retests(table):
    """Return r and the mean flip rate."""
    annotations = annotations_of(table)
    rates = estimate_flip_rates(annotations)
    return np.array([annotations.retests.differ.mean(), rates.mean])


def errors(table, samples):
    """Return the standard error of each figure, and the number of annotators."""
    rng = np.random.default_rng(0)
    people = table["annotator"].unique()
    halves = (rng.permutation(people)[: len(people) // 2] for _ in range(samples))
    found = [of_retests(table[table["annotator"].isin(half)]) for half in halves]
    return np.std(found, axis=0, ddof=1), len(people)


def interval(value, low, high):
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


def row(name, corpus, samples):
    """Return the cells of a corpus."""
    table = long_table(corpus)
    annotations = annotations_of(table)
    raw = agreement_with_people(annotations, fixed_flip_rate(annotations, 0.0))
    cells = [name, f"{len(table):,}", f"{len(annotations.annotators):,}"]
    try:
        rates = estimate_flip_rates(annotations)
    except MetricInputError:
        return [*cells, "none", "", "", interval(*raw.known), ""]
    agreement = [interval(*raw.known), interval(*agreement_with_people(annotations, rates).known)]
    if rates.method == "svd":
        return [*cells, "factorisation", "", f"{rates.mean:.3f}", *agreement]
    error, people = errors(table, samples)
    values, margin = of_retests(table), stats.t.ppf(0.975, people - 1) * error
    of_people = map(interval, values, np.maximum(values - margin, 0), values + margin)
    return [*cells, f"{rates.table['retests'].sum():,} retests", *of_people, *agreement]


def drawn(table, size, least, rng):
    """Return panels of `size` annotators of each item with `least` of them, and the others."""
    table = table.drop_duplicates(["item", "annotator"])
    table = table.iloc[rng.permutation(len(table))].sort_values("item", kind="stable")
    place = table.groupby("item").cumcount()
    enough = table.groupby("item")["item"].transform("size") >= least
    table, place = table[enough], place[enough]
    return table[place < size], table[place >= size]


def panel(table, size, least, draws):
    """Return the agreement with people held out, by own labels, and as reported with interval."""
    rng, found = np.random.default_rng(0), []
    for _ in range(draws):
        panels, others = drawn(table, size, least, rng)
        annotations = annotations_of(panels)
        counts = annotations.counts()
        label, tied = majority(counts)
        share = others["label"].astype(float).groupby(others["item"]).mean()[annotations.items]
        toxic = np.where(tied, 0.5, label)
        held_out = (toxic * share + (1 - toxic) * (1 - share)).mean()
        own = (counts.max(axis=1) / counts.sum(axis=1)).mean()
        reported = agreement_with_people(annotations, fixed_flip_rate(annotations, 0.0))
        found.append([held_out, own, *reported.known])
    return np.array(found)


def panels(name, corpus, draws):
    """Print the rows of a corpus."""
    for _, sizes, least in (of for of in PANELS if of[0] == name):
        for size in sizes:
            found = panel(long_table(corpus), size, least, draws)
            held_out, own, *reported = found.mean(axis=0)
            inside = (found[:, 3] <= found[:, 0]) & (found[:, 0] <= found[:, 4])
            cells = [name, f"{size}", f"{held_out:.3f}", f"{own:.3f}", interval(*reported)]
            print(f"| {' | '.join(cells)} | {inside.mean():.1%} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("MODWATCH_DATA"))
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--draws", type=int, default=200)
    options = parser.parse_args()
    folder = options.data or Path(__file__).resolve().parents[2] / "shared" / "data"
    found = [
        (name, load(loader, folder / where))
        for name, loader, where in CORPORA
        if (folder / where).exists()
    ]
    for name, corpus in found:
        print(f"| {' | '.join(row(name, corpus, options.samples))} |", flush=True)
    for name, corpus in found:
        panels(name, corpus, options.draws)


if __name__ == "__main__":
    main()
