"""How close metrics against estimated primary labels come to those against the true ones.

    python benchmarks/disagreement_recovery.py [--repetitions 20]

Communities of 4,000 comments and 40 people (`tests/support/disagreeing_people.py`), who flip their
labels at a rate of their own, or more often on hard comments, and give a fifth of them again.
Printed are, by number of annotators a comment, the mean errors of the AUROC against the majority
label, all labels, primary labels by Eq. 2 (which clips) and the adjusted metric; the standard
deviation of the latter's, and how many of the communities it misses by less than 0.01; and the mean
errors of the adjusted recall and average precision.

Two more tables are those of docs/benchmarks.md. Communities without labels given again have bounds
of slips by a factorisation: how often do they contain the true rate? And of people and items drawn
anew, how often does the interval of the agreement with people contain the true one, which is that
of a majority of as many people and of another person's opinion?
"""

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from disagreeing_people import world

from modwatch import statistics as metrics
from modwatch.common.errors import MetricInputError
from modwatch.statistics.disagreement import (
    Annotations,
    adjusted,
    adjusted_metrics,
    agreement_with_people,
    estimate_flip_rates,
    fixed_flip_rate,
    svd_flip_rates,
)

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


def annotations_of(person, label):
    """Return annotations (I, k) of numbered people (I, k)."""
    items, row = label.shape
    item = np.repeat(np.arange(items), row)
    return Annotations.from_columns(
        item=item, annotator=person.ravel(), label=label.ravel().astype(int)
    )


def drawn_people(rng, items, people, row):
    return rng.random((items, people)).argsort(axis=1)[:, :row]


def by_threshold(hard):
    """Return communities of people with thresholds."""

    def draw(seed, row):
        made = world(seed, annotators=row, hard=hard, retests=0)
        return made.annotations, made.flip_rate

    return draw


def of_two_camps(seed, row):
    """Return people of two camps, who have opposite opinions of half of the items; 10 % slips."""
    rng = np.random.default_rng(seed)
    person = drawn_people(rng, 1_000, 40, row)
    toxic, disputed = rng.random((2, 1_000, 1)) < 0.5
    opinion = toxic ^ (disputed & (person % 2 == 1))
    return annotations_of(person, opinion ^ (rng.random(person.shape) < 0.1)), 0.1


def with_ratings(camps):
    """Return people who rate from 1 to 5, a tenth by one more or less; in camps, or by chance."""

    def draw(seed, row):
        rng = np.random.default_rng(seed)
        person = drawn_people(rng, 1_000, 40, row)
        mild, strict = rng.uniform(1, 5, (2, 1_000, 1))
        taste = rng.normal(0, 0.7, person.shape)
        opinion = np.where(person % 2 == 1, mild, strict) if camps else mild + taste
        opinion = np.clip(np.rint(opinion), 1, 5)
        slip = rng.random(person.shape) < 0.1
        step = np.where(opinion == 1, 1, np.where(opinion == 5, -1, rng.choice([-1, 1], row)))
        return annotations_of(person, opinion + slip * step), 0.1

    return draw


COMMUNITIES = (
    ("thresholds, slips by person", by_threshold(False)),
    ("thresholds, slips on hard comments", by_threshold(True)),
    ("two camps", of_two_camps),
    ("ratings 1 to 5, two camps", with_ratings(True)),
    ("ratings 1 to 5, tastes", with_ratings(False)),
)


def slips(name, draw, row, repetitions):
    """Return the cells of a kind of communities without labels given again."""
    found, true = [], []
    for seed in range(repetitions):
        annotations, rate = draw(seed, row)
        true.append(rate)
        try:
            rates = svd_flip_rates(annotations)
        except MetricInputError:
            continue
        ends = [float(rates.rates(bound).mean()) for bound in ("low", "high")]
        found.append([rates.mean, *ends, ends[0] <= rate <= ends[1]])
    cells = [name, str(row), f"{np.mean(true):.3f}", f"{repetitions - len(found)} of {repetitions}"]
    if not found:
        return [*cells, "", "", ""]
    rate, low, high, covered = np.mean(found, axis=0)
    return [*cells, f"{rate:.3f}", f"{low:.3f} to {high:.3f}", f"{covered:.0%}"]


def votes(rng, items, people, row, spread, heavy):
    """Return people (I, k) and their opinions (I, k); some give many labels if `heavy`."""
    diligence = rng.pareto(1.2, people) + 0.05 if heavy else np.ones(people)
    person = np.argsort(rng.exponential(1, (items, people)) / diligence, axis=1)[:, :row]
    threshold = rng.normal(0.45, spread, people)[person]
    likely = 1 / (1 + np.exp((threshold - rng.beta(0.7, 1.5, (items, 1))) / 0.08))
    return person, rng.random(likely.shape) < likely


#: Items, people, labels an item, spread of their thresholds, whether some give many, slips.
CROWDS = (
    (300, 40, 2, 0.25, False, 0.0), (300, 40, 3, 0.25, False, 0.0), (300, 40, 4, 0.25, False, 0.0),
    (1_500, 200, 3, 0.25, True, 0.0), (2_000, 800, 5, 0.2, True, 0.0),
    (1_500, 400, 4, 0.1, False, 0.0), (1_500, 200, 3, 0.12, True, 0.1),
    (200, 10, 4, 0.25, False, 0.0), (95, 22, 22, 0.2, False, 0.0),
)  # fmt: skip


def agreement(items, people, row, spread, heavy, flip, repetitions):
    """Return the cells of a crowd."""
    rng = np.random.default_rng(99)
    toxicity = rng.beta(0.7, 1.5, (200_000, 1))
    threshold = rng.normal(0.45, spread, (200_000, row + 1))
    opinion = rng.random(threshold.shape) < 1 / (1 + np.exp((threshold - toxicity) / 0.08))
    voted = (opinion ^ (rng.random(opinion.shape) < flip))[:, :row].sum(axis=1) * 2
    right = np.where(voted == row, 0.5, (voted > row) == opinion[:, row]).mean()
    found = []
    for seed in range(repetitions):
        rng = np.random.default_rng(seed)
        person, opinion = votes(rng, items, people, row, spread, heavy)
        made = annotations_of(person, opinion ^ (rng.random(opinion.shape) < flip))
        own = made.counts().max(axis=1).mean() / row
        own = (own - flip) / (1 - 2 * flip)
        found.append([own, *agreement_with_people(made, fixed_flip_rate(made, flip)).known])
    own, value, low, high = np.mean(found, axis=0)
    inside = np.mean([(low <= right <= high) for _, _, low, high in found])
    crowd = f"{items:,} comments, {people} people" + (", some give many" if heavy else "")
    return [
        crowd, str(row), f"{spread:g}", f"{flip:.0%}", f"{right:.3f}", f"{own:.3f}",
        f"{value:.3f} [{low:.3f}, {high:.3f}]", f"{inside:.1%}",
    ]  # fmt: skip


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
    for name, draw in COMMUNITIES:
        for row in (5, 20):
            print(f"| {' | '.join(slips(name, draw, row, repetitions))} |", flush=True)
    for crowd in CROWDS:
        print(f"| {' | '.join(agreement(*crowd, 10 * repetitions))} |", flush=True)


if __name__ == "__main__":
    main()
