"""What a plan promises before anybody labels: how wide intervals will be, and whether they will be.

Audits are simulated from the plan alone. In each stratum, positives are as frequent as the mean
recalibrated score; where that comes from labels, their number is uncertain and varies from audit to
audit. The forecast is as good as that expectation, and no part of the evidence.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from modwatch.audit.allocation import neyman
from modwatch.audit.arguments import Ints
from modwatch.audit.estimates import ENOUGH_POSITIVES, AuditEstimator
from modwatch.audit.plan import SIDES, AuditPlan
from modwatch.audit.stratified import StratumCounts, WeightedCounts
from modwatch.errors import DesignError

#: Metrics that are forecast.
METRICS = ("recall", "precision", "prevalence_unflagged")

_AUDITS = 400


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """What to expect of a metric; `value`, `low`, `high` are medians of audits with an estimate.

    None where no simulated audit has one.
    """

    metric: str
    #: Share of the audits in which the estimate is insufficient.
    insufficient: float
    value: float | None = None
    low: float | None = None
    high: float | None = None


def forecast(plan: AuditPlan, *, audits: int = _AUDITS) -> list[Forecast]:
    """Return the forecast of `METRICS`, from `audits` simulated audits; always the same for a plan.

    A second stage is taken as allocated by what was expected, in one stage with the first.
    """
    generator = np.random.default_rng(0)
    flagged, unflagged = (_simulated(plan, side, audits, generator) for side in SIDES)
    comments = [
        sum(plan.strata[number].population for number in plan.of_side(side)) for side in SIDES
    ]
    simulated = AuditEstimator(
        flagged=flagged,
        unflagged=unflagged,
        comments=(comments[0], comments[1]),
        options=plan.rule,
    )
    return [_forecast(simulated, metric, audits) for metric in METRICS]


def sufficient(audits: AuditEstimator, metric: str) -> NDArray[np.bool_]:
    """Return which of many audits (R,) have an estimate of a metric, and not the reason why none.

    That depends on the positives of both sides only, and not on their number beyond three.
    """
    sides = [side for side in (audits.flagged, audits.unflagged) if side is not None]
    found = np.stack([np.minimum(each.positives.sum(-1), ENOUGH_POSITIVES) for each in sides], -1)
    _, first, kind = np.unique(found, axis=0, return_index=True, return_inverse=True)
    status = [one_of(audits, number).estimate(metric).status for number in first.tolist()]
    return np.array([each == "ok" for each in status], dtype=np.bool_)[kind.ravel()]


def one_of(audits: AuditEstimator, number: int) -> AuditEstimator:
    """Return one of many audits that were simulated at once."""
    return replace(
        audits,
        flagged=_single(audits.flagged, number),
        unflagged=_single(audits.unflagged, number),
    )


def _single(counts: WeightedCounts | None, number: int) -> WeightedCounts | None:
    return counts and replace(counts, positives=counts.positives[number])


def _forecast(audits: AuditEstimator, metric: str, number: int) -> Forecast:
    given = sufficient(audits, metric)
    made = Forecast(metric=metric, insufficient=1 - float(given.sum()) / number)
    if not given.any():
        return made
    ends = audits.interval_estimate(metric)
    value, low, high = (
        float(np.median(np.broadcast_to(each, given.shape)[given]))
        for each in (ends.value, ends.low, ends.high)
    )
    return replace(made, value=value, low=low, high=high)


def _simulated(
    plan: AuditPlan, side: str, audits: int, generator: np.random.Generator
) -> WeightedCounts | None:
    """Return the labels of one side in many audits; None for a side without comments or labels."""
    strata = [plan.strata[number] for number in plan.of_side(side)]
    labels = np.array([each.labels for each in strata], dtype=np.int64)
    if not labels.any():
        return None
    population = np.array([each.population for each in strata], dtype=np.int64)
    score = np.array([each.score for each in strata])
    if side == "unflagged" and plan.second_stage_labels:
        labels = labels + _later(population - labels, score, plan.second_stage_labels)
    rate = np.broadcast_to(score, (audits, score.size))
    calibration = plan.calibration_of(side)
    if calibration.labels:
        # As uncertain as the number of positives among those labels, one more added.
        known = calibration.positives + 1
        rate = rate * generator.gamma(known, 1 / known, (audits, 1))
    there = labels > 0
    positives = generator.binomial(labels[there], np.minimum(rate, 1)[:, there])
    return StratumCounts.of(
        population=population[there], labels=labels[there], positives=positives, score=score[there]
    ).weighted()


def _later(left: Ints, score: np.ndarray, labels: int) -> Ints:
    """Return the labels (H,) of a second stage if the first finds what was expected."""
    more, some = np.zeros(left.size, dtype=np.int64), left > 0
    if some.any():
        try:
            more[some] = neyman(left[some], np.sqrt(score * (1 - score))[some], labels)
        except DesignError:  # fewer labels than strata; `next_stage` will say so
            return more
    return more
