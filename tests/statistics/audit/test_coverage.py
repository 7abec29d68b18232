"""Whether the default interval holds the truth as often as it says, by simulation.

`benchmarks/audit.py` does the same on 108 made-up populations.
"""

import numpy as np
import pytest

from modwatch.statistics.audit.estimates import ENOUGH_POSITIVES, AuditEstimator
from modwatch.statistics.audit.sample_design import DesignOptions, ScoreCounts, design
from modwatch.statistics.audit.share_interval import IntervalOptions
from modwatch.statistics.audit.stratified import StratumCounts
from modwatch_lab.audit_designs import draw_positives, simulate

REPETITIONS = 1_000


def audits(prevalence, score, hidden, labels):
    """Return a population, and the counts of both sides of many audits of it."""
    population = simulate(prevalence=prevalence, score=score, hidden=hidden, comments=100_000)
    truth = population.flagged, population.unflagged
    options = DesignOptions(expected_prevalence=prevalence)
    made = design(*(ScoreCounts.from_scores(side.score) for side in truth), labels, options)
    generator, sides = np.random.default_rng(labels), []
    for planned, side in zip((made.flagged, made.unflagged), truth, strict=True):
        positives = np.bincount(planned.strata.assign(side.score), weights=side.label)
        found = draw_positives(
            planned.population, positives, planned.labels, generator, repetitions=REPETITIONS
        )
        sides.append(
            StratumCounts.from_arrays(
                population=planned.population,
                labels=planned.labels,
                positives=found,
                score=planned.score,
            ).weighted()
        )
    return population, sides


def coverage(population, sides, metric, method):
    """Return how often the interval holds the truth, of audits that give a figure."""
    comments = population.flagged.label.size, population.unflagged.label.size
    made = AuditEstimator(
        flagged=sides[0],
        unflagged=sides[1],
        comments=comments,
        options=IntervalOptions(method=method),
    )
    truth = {
        "recall": population.recall,
        "precision": population.flagged.label.mean(),
        "prevalence_unflagged": population.unflagged.label.mean(),
    }[metric]
    figure = made.interval_estimate(metric)
    enough = np.min([side.positives.sum(-1) for side in sides], axis=0) >= ENOUGH_POSITIVES
    return float(((figure.low <= truth) & (truth <= figure.high))[enough].mean())


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("prevalence", "score", "hidden", "labels"),
    [
        (0.005, "sharp", 0.0, 1_000),
        (0.01, "sharp", 0.2, 1_000),
        (0.04, "dull", 0.0, 500),
        (0.02, "miscalibrated", 0.2, 1_000),
    ],
)
@pytest.mark.parametrize("metric", ["prevalence_unflagged", "recall", "precision"])
def test_the_default_interval_holds_the_truth(prevalence, score, hidden, labels, metric):
    made = audits(prevalence, score, hidden, labels)
    assert 0.93 <= coverage(*made, metric, "inversion") <= 0.995


@pytest.mark.simulation
def test_korn_graubard_misses_what_a_sharp_score_is_blind_to():
    """The reason for the default: a fifth of the positives are where the score sees none."""
    made = audits(0.005, "sharp", 0.2, 1_000)
    classic, default = (
        coverage(*made, "prevalence_unflagged", method) for method in ("korn_graubard", "inversion")
    )
    assert classic < 0.9
    assert default >= 0.93
