"""The result of an audit, computed from plan, sample and labels alone, to be reproducible.

`computed` returns the content of `result.json`. Estimates for which there are too few labels are
None, with a reason and, where the labels give one, a bound.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

import numpy as np

from modwatch.statistics.audit.draw import DrawnComment
from modwatch.statistics.audit.estimates import AuditEstimate, AuditEstimator
from modwatch.statistics.audit.imputation import ImputedEstimator, LabelErrors, label_errors
from modwatch.statistics.audit.label_quality import agreement, error_rates
from modwatch.statistics.audit.labels import (
    AuditLabel,
    Key,
    Unlabelled,
    final_labels,
    in_order,
    key_of,
    labels_demanded,
    unlabelled,
)
from modwatch.statistics.audit.metric_intervals import METRICS
from modwatch.statistics.audit.plan import SIDES, AuditPlan
from modwatch.statistics.audit.stages import Label, side_counts
from modwatch.statistics.audit.stratified import WeightedCounts

#: Minimum comments of a value to be reported: estimates on fewer would describe single people.
LEAST_COMMENTS = 50

#: Format of the document.
FORMAT = 1

#: Metrics of each value of a column.
_DOMAIN_METRICS = ("prevalence_unflagged", "precision", "recall", "accuracy")

#: Why labels of annotators who hardly do better than chance give no estimate.
_USELESS = (
    "the annotators disagree so often that their labels carry too little information; clarify the "
    "guidelines and plan another audit"
)

Document = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The evidence from which a result is computed."""

    plan: AuditPlan
    #: Sample of each stage, including those of earlier stages, in the order of the keys.
    samples: Sequence[Sequence[DrawnComment]]
    #: Comments by column, value and stratum.
    population: Mapping[tuple[str, str, int], int]
    labels: Sequence[AuditLabel]


def computed(evidence: Evidence) -> Document:
    """Return the result of the audit.

    `short_of_labels` counts comments whose final label comes from fewer people than planned, such
    as when the labelling was stopped; adjudicated comments are not counted. `missing` counts those
    without a final label; see `labels.Unlabelled`. `stages` of `stages_planned` were labelled.
    `random_labels`: see `_random_labels`.

    The `figures` of a plan with confirmations allow for errors of the annotators, of which some may
    be shared, as the plan states; `label_errors` counts the confirmations and estimates the error
    rates. Without confirmations, every final label counts as true.
    """
    made = _Estimation.from_evidence(evidence)
    plan, figures = evidence.plan, made.reported(made.population, made.drawn, METRICS)
    missed = next(figure for figure in figures if figure.metric == "prevalence_unflagged")
    if made.errors is not None:
        # Of the sampling error alone: a random sample would have annotator errors, too.
        (missed,) = made.plain(made.population, made.drawn, (missed.metric,))
    document = _counts(made) | {
        "figures": [figure.figure() for figure in figures],
        "strata": _by_stratum(plan, made.drawn, made.final),
        "domains": _by_domain(made),
        "agreement": agreement(plan, made.drawn, evidence.labels),
        "sampling_error": missed.error,
        "random_labels": _random_labels(
            missed, sum(plan.strata[n].population for n in plan.of_side("unflagged"))
        ),
    }
    if made.errors is None:
        return document
    rates = error_rates(plan, made.drawn, evidence.labels, made.errors)
    return document | {"label_errors": rates}


@dataclass(frozen=True, kw_only=True)
class _Estimation:
    """What every metric of a result is estimated from, for all comments or a part of them."""

    evidence: Evidence
    #: Drawn comments with a final label, and why the others have none.
    final: Mapping[Key, int]
    missing: Unlabelled
    #: None where the labels count as true.
    errors: LabelErrors | None

    @classmethod
    def from_evidence(cls, evidence: Evidence) -> "_Estimation":
        drawn = evidence.samples[-1]
        return cls(
            evidence=evidence,
            final=final_labels(drawn, evidence.labels),
            missing=unlabelled(evidence.samples, evidence.labels),
            errors=label_errors(evidence.plan, drawn, evidence.labels),
        )

    @property
    def drawn(self) -> Sequence[DrawnComment]:
        """The comments that were drawn in all stages."""
        return self.evidence.samples[-1]

    @property
    def population(self) -> dict[int, int]:
        """All comments by stratum."""
        return {n: stratum.population for n, stratum in enumerate(self.evidence.plan.strata)}

    def plain(
        self, population: Mapping[int, int], drawn: Sequence[DrawnComment], metrics: Sequence[str]
    ) -> list[AuditEstimate]:
        """Return metrics of `drawn`, which represent `population`; final labels count as true."""
        made = estimator(self.evidence, self.final, population, drawn, self.missing.unknown)
        return made.estimates(metrics)

    def reported(
        self, population: Mapping[int, int], drawn: Sequence[DrawnComment], metrics: Sequence[str]
    ) -> list[AuditEstimate]:
        """Return metrics that allow for errors of the annotators, where they are estimated."""
        errors = self.errors
        if errors is None:
            return self.plain(population, drawn, metrics)
        draws = estimator(self.evidence, errors.drawn, population, drawn, self.missing.passed_over)
        imputed = ImputedEstimator.from_draws(draws)
        estimates = [imputed.estimate(metric) for metric in metrics]
        return [_without_value(estimate) for estimate in estimates] if errors.useless else estimates


def _without_value(estimate: AuditEstimate) -> AuditEstimate:
    """Return the estimate without a value: the labels carry too little information."""
    return AuditEstimate.insufficient(
        _USELESS,
        n=estimate.n,
        metric=estimate.metric,
        positives=estimate.positives,
        all_labelled=estimate.all_labelled,
    )


def _counts(made: _Estimation) -> Document:
    """Return what was audited, and how many comments were drawn and labelled."""
    evidence, plan, missing = made.evidence, made.evidence.plan, made.missing
    return {
        "format": FORMAT,
        "audit": plan.audit,
        "plan": plan.digest,
        "first_day": plan.first.isoformat(),
        "last_day": plan.last.isoformat(),
        "model_version": plan.model_version,
        "threshold": plan.threshold,
        "comments": sum(day.comments for day in plan.population),
        "flagged": sum(day.flagged for day in plan.population),
        "drawn": len(made.drawn),
        "labelled": len(made.final),
        "short_of_labels": _short_of_labels(plan, made.drawn, evidence.labels),
        "stages": len(evidence.samples),
        "stages_planned": plan.stages,
        "decisions": len(evidence.labels),
        "labellers": len({label.labeller for label in evidence.labels}),
        "four_eyes": plan.four_eyes,
        "missing": {
            "disputed": len(missing.disputed),
            "passed_over": len(missing.passed_over),
            "not_reached": len(missing.not_reached),
        },
    }


def to_json(document: Document) -> bytes:
    """Return the canonical text of a result."""
    text = json.dumps(document, sort_keys=True, indent=1, allow_nan=False)
    return (text + "\n").encode()


def estimator(
    evidence: Evidence,
    final: Mapping[Key, Label],
    population: Mapping[int, int],
    drawn: Sequence[DrawnComment],
    unknown: Collection[Key] = (),
) -> AuditEstimator:
    """Return the estimator of the labels of `drawn`, or of draws (R,) of each.

    `population` is the number of comments of each stratum that they represent; `unknown` are the
    comments that may be positive or negative, without a final label.
    """
    plan = evidence.plan
    sides: list[WeightedCounts | None] = []
    extremes: dict[str, tuple[WeightedCounts, WeightedCounts]] = {}
    for side in SIDES:
        mine = {n: population[n] for n in plan.of_side(side) if population.get(n)}
        sides.append(side_counts(plan, evidence.samples, drawn, final, mine))
        if any(comment.stratum in mine and key_of(comment) in unknown for comment in drawn):
            none, every = (
                side_counts(
                    plan, evidence.samples, drawn, {**final, **dict.fromkeys(unknown, label)}, mine
                )
                for label in (0, 1)
            )
            if none is not None and every is not None:
                extremes[side] = none, every
    comments = tuple(sum(population.get(n, 0) for n in plan.of_side(side)) for side in SIDES)
    return AuditEstimator(
        flagged=sides[0],
        unflagged=sides[1],
        comments=(comments[0], comments[1]),
        options=plan.rule,
        extremes=extremes,
    )


def _short_of_labels(
    plan: AuditPlan, drawn: Sequence[DrawnComment], labels: Sequence[AuditLabel]
) -> int:
    """Return how many comments with a label have fewer than planned, and no adjudication."""
    given = in_order(labels)
    rows = [(comment, given.get(key_of(comment), [])) for comment in drawn]
    return sum(
        bool(mine)
        and len(mine) < labels_demanded(plan, comment, mine)
        and all(label.action != "adjudicate" for label in mine)
        for comment, mine in rows
    )


def _by_stratum(
    plan: AuditPlan, drawn: Sequence[DrawnComment], final: Mapping[Key, int]
) -> list[Document]:
    rows = []
    for number, stratum in enumerate(plan.strata):
        mine = [comment for comment in drawn if comment.stratum == number]
        labels = [final[key] for comment in mine if (key := key_of(comment)) in final]
        rows.append(
            asdict(stratum)
            | {
                "drawn": len(mine),
                # As scored, like the range; `score` is recalibrated.
                "mean_score": fmean(comment.score for comment in mine) if mine else None,
                "labels": len(labels),
                "positives": sum(labels),
                "share": sum(labels) / len(labels) if labels else None,
            }
        )
    return rows


def _by_domain(made: _Estimation) -> list[Document]:
    """Return the estimates of each value of each column with at least `LEAST_COMMENTS` comments."""
    rows, counts = [], made.evidence.population
    for column, value in sorted({key[:2] for key in counts}):
        population = {
            number: count
            for (name, of, number), count in counts.items()
            if (name, of) == (column, value)
        }
        if sum(population.values()) < LEAST_COMMENTS:
            continue
        drawn = [comment for comment in made.drawn if value in comment.traits.get(column, ())]
        estimates = made.reported(population, drawn, _DOMAIN_METRICS)
        rows.append(
            {
                "column": column,
                "value": value,
                "comments": sum(population.values()),
                "figures": [estimate.figure() for estimate in estimates],
            }
        )
    return rows


def _random_labels(missed: AuditEstimate, comments: int) -> int | None:
    """Return how many labels a random sample of `comments` would need for the same standard error.

    Eq. 9 of the paper, n₀ = p(1−p)/SE², with the finite-population correction
    n = n₀ / (1 + (n₀−1)/N) (Cochran 1977, eq. 4.2).
    """
    if missed.value is None or not missed.error:
        return None
    infinite = missed.value * (1 - missed.value) / missed.error**2
    return int(np.ceil(infinite / (1 + (infinite - 1) / comments)))
