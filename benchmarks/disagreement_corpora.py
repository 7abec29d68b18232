"""Flip rates of published corpora, and how far their annotators agree with the majority.

    python benchmarks/disagreement_corpora.py [--data ../shared/data]

Prints the table of docs/groups.md. Corpora that are not in the folder are left out.
"""

import argparse
import os
from pathlib import Path

from modwatch.disagreement import (
    Annotations,
    adjusted_accuracy,
    estimate_flip_rates,
    majority,
)
from modwatch.errors import MetricInputError
from modwatch.ingest.corpora import load, long_table

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


def row(name, corpus):
    """Return the cells of a corpus."""
    table = long_table(corpus)
    annotations = Annotations.of(**table[["item", "annotator", "label"]], classes=(0, 1))
    people, retests = len(annotations.annotators), annotations.retests.differ
    cells = [name, f"{len(table):,}", f"{people:,}"]
    try:
        rates = estimate_flip_rates(annotations)
    except MetricInputError:
        return [cells[0], cells[1], "no identity", "none", "", "", "", ""]
    label, _ = majority(annotations.counts())
    found = adjusted_accuracy(annotations, label, rates)
    source = METHODS.get(rates.method, f"{retests.size:,} retests")
    r = "" if rates.method == "svd" else f"{retests.mean():.3f}"
    figures = (rates.mean, found["raw"], found["adjusted"])
    return [*cells, source, r, *(f"{figure:.3f}" for figure in figures)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("MODWATCH_DATA"))
    folder = parser.parse_args().data or Path(__file__).resolve().parents[2] / "shared" / "data"
    for name, loader, where in CORPORA:
        if (folder / where).exists():
            print(f"| {' | '.join(row(name, load(loader, folder / where)))} |", flush=True)


if __name__ == "__main__":
    main()
