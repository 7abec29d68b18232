"""Flip rates of published corpora, and how far their annotators agree with the majority.

    python benchmarks/disagreement_corpora.py [--data ../shared/data] [--samples 100]

Prints the table of docs/groups.md. Corpora that are not in the folder are left out. The 95 %
intervals are for the people of whom the annotators are a sample: Student's t of the standard
deviation over random halves of the annotators, which is the standard error of all of them. They
contain how far the choice of the labels held out changes a factorisation, and not that its rates
are those of a model.
"""

import argparse
import os
from pathlib import Path

import numpy as np
from scipy import stats

from modwatch.common.errors import MetricInputError
from modwatch.data.sources.corpora import load, long_table
from modwatch.statistics.disagreement import (
    Annotations,
    adjusted_accuracy,
    estimate_flip_rates,
    majority,
)

#: Name, loader, folder.
CORPORA = (
    ("XHateStability", "xhate_stability", "xhate_stability"),
    ("CREHate", "crehate", "crehate"),
    ("MD-Agreement", "md_agreement", "md_agreement"),
    ("Civil Comments, spans", "civil_comments_spans", "civil_comments"),
    ("SBIC v2, dev", "sbic", "sbic_v2"),
    ("Civil Comments, single ratings", "civil_comments_cctk", "civil_comments_cctk"),
)
METHODS = {"svd": "factorisation"}


def figures(table):
    """Return the rates, and r, mean flip rate, raw and adjusted agreement with the majority."""
    annotations = Annotations.from_columns(**table[["item", "annotator", "label"]], classes=(0, 1))
    rates = estimate_flip_rates(annotations)
    label, _ = majority(annotations.counts())
    found = adjusted_accuracy(annotations, label, rates)
    r = np.nan if rates.method == "svd" else annotations.retests.differ.mean()
    return rates, np.array([r, rates.mean, found["raw"], found["adjusted"]])


def errors(table, samples):
    """Return the standard error of each figure, and the number of annotators."""
    rng = np.random.default_rng(0)
    people = table["annotator"].unique()
    halves = (rng.permutation(people)[: len(people) // 2] for _ in range(samples))
    found = [figures(table[table["annotator"].isin(half)])[1] for half in halves]
    return np.std(found, axis=0, ddof=1), len(people)


def row(name, corpus, samples):
    """Return the cells of a corpus."""
    table = long_table(corpus)
    annotations = f"{len(table):,}"
    try:
        rates, values = figures(table)
    except MetricInputError:
        return [name, annotations, "no identity", "none", "", "", "", ""]
    error, people = errors(table, samples)
    margin = stats.t.ppf(0.975, people - 1) * error
    cells = [
        "" if np.isnan(value) else f"{value:.3f} [{max(value - reach, 0):.3f}, {value + reach:.3f}]"
        for value, reach in zip(values, margin, strict=True)
    ]
    source = METHODS.get(rates.method, f"{rates.table['retests'].sum():,} retests")
    return [name, annotations, f"{people:,}", source, *cells]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("MODWATCH_DATA"))
    parser.add_argument("--samples", type=int, default=100)
    options = parser.parse_args()
    folder = options.data or Path(__file__).resolve().parents[2] / "shared" / "data"
    for name, loader, where in CORPORA:
        if (folder / where).exists():
            cells = row(name, load(loader, folder / where), options.samples)
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
