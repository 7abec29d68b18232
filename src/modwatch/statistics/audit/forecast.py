"""The forecast of a plan, before any label: whether there will be estimates, and how precise.

Audits are simulated from the plan alone. In each stratum, positives are as frequent as the mean
recalibrated score; where that comes from labels, their number is uncertain and varies from audit to
audit. With confirmations, a few audits are simulated with annotators whose error rates are
`confirmation_rules.FALSE_POSITIVE` and `FALSE_NEGATIVE`, and the intervals widened accordingly.
The forecast is as good as these expectations, and no part of the evidence.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modwatch.common.errors import DesignError
from modwatch.statistics.arguments import Ints
from modwatch.statistics.audit.allocation import neyman
from modwatch.statistics.audit.confirmation_rules import FALSE_NEGATIVE, FALSE_POSITIVE, MOST_LABELS
from modwatch.statistics.audit.estimates import ENOUGH_POSITIVES, AuditEstimator
from modwatch.statistics.audit.imputation import ImputedEstimator, LabelErrors
from modwatch.statistics.audit.plan import SIDES, AuditPlan, PlannedStratum
from modwatch.statistics.audit.stratified import StratumCounts, WeightedCounts
from modwatch.statistics.label_truth import GivenLabels, true_labels

#: Metrics that are forecast.
METRICS = ("recall", "precision", "prevalence_unflagged")

_AUDITS = 400

#: Of how many of them the interval is computed; those of the others lie between.
_INTERVALS = 40

#: Audits that are simulated with annotator errors.
_ERRING = 5


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


def forecast(plan: AuditPlan) -> list[Forecast]:
    """Return the forecast of `METRICS`, from simulated audits; always the same for a plan.

    A second stage is taken as allocated by what was expected, in one stage with the first.
    """
    generator = np.random.default_rng(0)
    sides = [_simulated(plan, side, generator) for side in SIDES]
    simulated = replace(_estimator(plan, sides), most_intervals=_INTERVALS)
    wider = _wider(plan, generator) if plan.confirmations else dict.fromkeys(METRICS, 1.0)
    return [_widened(_forecast(simulated, metric), wider[metric]) for metric in METRICS]


def _widened(made: Forecast, times: float) -> Forecast:
    if made.value is None or made.low is None or made.high is None:
        return made
    low = made.value - times * (made.value - made.low)
    high = made.value + times * (made.high - made.value)
    return replace(made, low=max(low, 0.0), high=min(high, 1.0))


def _wider(plan: AuditPlan, generator: np.random.Generator) -> dict[str, float]:
    """Return by metric how many times wider intervals are that allow for errors; at least 1."""
    ratios: dict[str, list[float]] = {metric: [1.0] for metric in METRICS}
    for _ in range(_ERRING):
        true, corrected = _with_errors(plan, generator)
        for metric, found in ratios.items():
            one, other = true.estimate(metric), corrected.estimate(metric)
            ends = (one.low, one.high, other.low, other.high)
            if one.value is not None and other.value is not None and None not in ends:
                width = float(one.high or 0) - float(one.low or 0)
                if width > 0:
                    found.append((float(other.high or 0) - float(other.low or 0)) / width)
    return {metric: max(1.0, float(np.median(found))) for metric, found in ratios.items()}


def _with_errors(
    plan: AuditPlan, generator: np.random.Generator
) -> tuple[AuditEstimator, ImputedEstimator]:
    """Return the estimators of one audit's true labels, and of labels with errors."""
    stratum = np.repeat(np.arange(len(plan.strata)), [planned.labels for planned in plan.strata])
    score = np.array([planned.score for planned in plan.strata])[stratum]
    side = np.array([SIDES.index(planned.side) for planned in plan.strata])[stratum]
    true = generator.random(score.size) < score
    wrong = np.where(true, FALSE_NEGATIVE, FALSE_POSITIVE)
    labels = (true ^ (generator.random((MOST_LABELS, score.size)) < wrong)).astype(np.int64)
    rules = [(plan.confirmations or {}).get(name) for name in SIDES]
    shares = np.array([rule.by_label if rule else (0.0, 0.0) for rule in rules])
    confirmed = generator.random(score.size) < shares[side, labels[0]]
    differ = confirmed & (labels[0] != labels[1])
    posterior = true_labels(
        GivenLabels(
            prob=score,
            group=side,
            given=1 + confirmed + differ,
            toxic=labels[0] + confirmed * labels[1] + differ * labels[2],
        ),
        plan.stated_errors,
    )
    draws = np.stack(
        [*LabelErrors(keys=[*range(score.size)], truth=posterior).drawn.values()], axis=-1
    )
    plain, imputed = (
        _estimator(plan, [_counted(plan, name, stratum, label) for name in SIDES])
        for label in (true.astype(np.int64), draws)
    )
    return plain, ImputedEstimator.from_draws(imputed)


def _counted(plan: AuditPlan, side: str, stratum: Ints, label: Ints) -> WeightedCounts | None:
    """Return the labels (…, m) of comments of `stratum` (m,) on one side; None without any."""
    numbers = [n for n in plan.of_side(side) if plan.strata[n].labels]
    if not numbers:
        return None
    positives = np.stack([label[..., stratum == n].sum(-1) for n in numbers], axis=-1)
    strata = [plan.strata[number] for number in numbers]
    return _counts(strata, [planned.labels for planned in strata], positives)


def _counts(strata: Sequence[PlannedStratum], labels: ArrayLike, positives: Ints) -> WeightedCounts:
    return StratumCounts.from_arrays(
        population=[stratum.population for stratum in strata],
        labels=labels,
        positives=positives,
        score=[stratum.score for stratum in strata],
    ).weighted()


def _estimator(plan: AuditPlan, sides: Sequence[WeightedCounts | None]) -> AuditEstimator:
    """Return the estimator of the labels of both sides."""
    sizes = [sum(plan.strata[n].population for n in plan.of_side(name)) for name in SIDES]
    return AuditEstimator(
        flagged=sides[0], unflagged=sides[1], comments=(sizes[0], sizes[1]), options=plan.rule
    )


def sufficient(audits: AuditEstimator, metric: str) -> NDArray[np.bool_]:
    """Return which of many audits (R,) have an estimate of a metric, and not the reason why none.

    That depends on the positives of both sides only, and not on their number beyond three.
    """
    sides = [side for side in (audits.flagged, audits.unflagged) if side is not None]
    found = np.stack(
        [np.minimum(counts.positives.sum(-1), ENOUGH_POSITIVES) for counts in sides], -1
    )
    _, first, kind = np.unique(found, axis=0, return_index=True, return_inverse=True)
    reasons = [one_of(audits, number).counted(metric).reason for number in first.tolist()]
    return np.array([not reason for reason in reasons], dtype=np.bool_)[kind.ravel()]


def one_of(audits: AuditEstimator, number: int) -> AuditEstimator:
    """Return one of many audits that were simulated at once."""
    return replace(
        audits,
        flagged=_single(audits.flagged, number),
        unflagged=_single(audits.unflagged, number),
    )


def _single(counts: WeightedCounts | None, number: int) -> WeightedCounts | None:
    return counts and replace(counts, positives=counts.positives[number])


def _forecast(audits: AuditEstimator, metric: str) -> Forecast:
    given = sufficient(audits, metric)
    made = Forecast(metric=metric, insufficient=1 - float(given.sum()) / _AUDITS)
    if not given.any():
        return made
    ends = audits.interval_estimate(metric)
    value, low, high = (
        float(np.median(np.broadcast_to(values, given.shape)[given]))
        for values in (ends.value, ends.low, ends.high)
    )
    return replace(made, value=value, low=low, high=high)


def _simulated(plan: AuditPlan, side: str, generator: np.random.Generator) -> WeightedCounts | None:
    """Return the labels of one side in many audits; None for a side without comments or labels."""
    strata = [plan.strata[number] for number in plan.of_side(side)]
    labels = np.array([stratum.labels for stratum in strata], dtype=np.int64)
    if not labels.any():
        return None
    population = np.array([stratum.population for stratum in strata], dtype=np.int64)
    score = np.array([stratum.score for stratum in strata])
    if side == "unflagged" and plan.second_stage_labels:
        labels = labels + _later(population - labels, score, plan.second_stage_labels)
    rate = np.broadcast_to(score, (_AUDITS, score.size))
    calibration = plan.calibration_of(side)
    if calibration.labels:
        # As uncertain as the number of positives among those labels, one more added.
        known = calibration.positives + 1
        rate = rate * generator.gamma(known, 1 / known, (_AUDITS, 1))
    there = labels > 0
    positives = generator.binomial(labels[there], np.minimum(rate, 1)[:, there])
    drawn = [stratum for stratum, some in zip(strata, there, strict=True) if some]
    return _counts(drawn, labels[there], positives)


def _later(left: Ints, score: np.ndarray, labels: int) -> Ints:
    """Return the labels (H,) of a second stage if the first finds what was expected."""
    more, some = np.zeros(left.size, dtype=np.int64), left > 0
    if some.any():
        with suppress(DesignError):  # fewer labels than strata; `next_stage` will report it
            more[some] = neyman(left[some], np.sqrt(score * (1 - score))[some], labels)
    return more
