"""How close metrics against estimated primary labels come to those against the true ones.

    python benchmarks/disagreement_recovery.py [--repetitions 20]

Communities of 4,000 comments and 40 people (`tests/support/disagreeing_people.py`), who flip their
labels at a rate of their own, or more often on hard comments, and give a fifth of them again.
Printed are, by number of annotators a comment, the mean errors of the AUROC against the majority
label, all labels, primary labels by Eq. 2 (which clips) and the adjusted metric; the standard
deviation of the latter's, and how many of the communities it misses by less than 0.01; and the mean
errors of the adjusted recall and average precision.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from disagreeing_people import world

from modwatch import statistics as metrics
from modwatch.statistics.disagreement import adjusted, adjusted_metrics, estimate_flip_rates

CELLS = [(3, False), (5, False), (10, False), (20, False), (3, True), (5, True), (20, True)]
COLUMNS = (
    "annotators a comment", "flip rates", "majority label", "all labels", "Eq. 2", "adjusted",
    "its sd", "within 0.01", "adjusted recall", "adjusted average precision",
)  # fmt: skip


def errors(seed, annotators, hard):
    """Return the errors of one community: of four AUROCs, recall and average precision."""
    made = world(seed, annotators=annotators, hard=hard)
    rates = estimate_flip_rates(made.annotations, by=made.prob)
    table = adjusted_metrics(made.annotations, made.prob, rates)
    share = made.annotations.counts()[:, 1] / annotators
    flip = rates.mean if rates.by_annotator else rates.rates()
    auroc, recall, precision = (
        adjusted(metric, made.opinion, made.prob, **options)
        for metric, options in (
            (metrics.auroc, {}), (metrics.recall, {}), (metrics.auprc, {"interpolation": "step"})
        )
    )  # fmt: skip
    clipped = adjusted(metrics.auroc, share, made.prob, flip)
    found = [*table.loc["auroc", ["majority", "raw"]], clipped, table.loc["auroc", "adjusted"]]
    others = table.loc[["recall", "average_precision"], "adjusted"] - [recall, precision]
    return [*(np.array(found) - auroc), *others]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=20)
    repetitions = parser.parse_args().repetitions
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    for annotators, hard in CELLS:
        found = np.array([errors(seed, annotators, hard) for seed in range(repetitions)])
        of_auroc, others = found[:, :4].mean(axis=0), found[:, 4:].mean(axis=0)
        cells = [
            str(annotators),
            "higher on hard comments" if hard else "by person, 4–16 %",
            *(f"{value:+.3f}" for value in of_auroc),
            f"{found[:, 3].std(ddof=1):.3f}",
            f"{(np.abs(found[:, 3]) < 0.01).sum()} of {repetitions}",
            *(f"{value:+.3f}" for value in others),
        ]
        print(f"| {' | '.join(cells)} |".replace("-0.", "−0."), flush=True)


if __name__ == "__main__":
    main()
