"""The result of an audit, computed from plan, sample and labels alone, to be reproducible.

`computed` returns the content of `result.json`. Estimates for which there are too few labels are
None, with a reason and, where the labels give one, a bound.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from typing import Any

import numpy as np

from modwatch.audit.draw import DrawnComment, labels_demanded
from modwatch.audit.estimates import METRICS, AuditEstimator, Estimate
from modwatch.audit.label_errors import SHARED, ImputedEstimator, LabelErrors, label_errors
from modwatch.audit.labels import (
    AuditLabel,
    Key,
    blind_labels,
    final_labels,
    in_order,
    key_of,
    unlabelled,
)
from modwatch.audit.plan import SIDES, AuditPlan
from modwatch.audit.sensitivity import corrected
from modwatch.audit.stages import Label, side_counts
from modwatch.audit.stratified import WeightedCounts
from modwatch.metrics.agreement import cohen_kappa, krippendorff_alpha, observed_agreement
from modwatch.metrics.annotator_error import annotator_error_rate
from modwatch.metrics.estimation.annotators import MINIMUM_CONFIRMED
from modwatch.metrics.inputs import Floats

#: Minimum comments of a value to be reported: estimates on fewer would describe single people.
LEAST_COMMENTS = 50

#: Assumed annotator error rates (false positives, false negatives) of the sensitivity analysis.
ASSUMED_ERRORS = ((0.001, 0.02), (0.005, 0.05), (0.01, 0.1))

#: Format of the document. The first had no bounds, left comments without a final label out of every
#: interval, and corrected for the disagreement of annotators as if both erred alike. Up to the
#: second, labels counted as true: it is still that of plans without confirmations.
FORMAT, UNCORRECTED = 3, 2

#: Metrics and fields of an estimate in the first format.
_FIRST_METRICS = ("prevalence_unflagged", "precision", "recall", "f1", "accuracy", "prevalence")
#: Metrics with a band for shared errors.
_SHARED_METRICS = ("recall", "precision", "prevalence_unflagged", "accuracy", "prevalence")

_LATER_FIELDS = ("bound", "all_labelled", "low_if_random", "high_if_random")

#: Why labels of annotators who hardly do better than chance give no estimate.
_USELESS = (
    "the annotators contradict each other so often that their labels tell too little; clarify the "
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


def format_of(plan: AuditPlan) -> int:
    """Return the format of the result of a plan."""
    return FORMAT if plan.confirmations else UNCORRECTED


def computed(evidence: Evidence, *, form: int | None = None) -> Document:
    """Return the result of the audit in a format, by default the latest for its plan.

    `short_of_labels` counts comments whose final label comes from fewer people than planned, such
    as when the labelling was stopped; adjudicated comments are not counted. `missing` counts those
    without a final label; see `labels.Unlabelled`. `stages` of `stages_planned` were labelled.
    `random_labels`: see `_random_labels`.

    The `figures` of a plan with confirmations allow for errors of the annotators; `uncorrected` are
    those that take the final labels for true. `label_errors` counts the confirmations and
    estimates the error rates; `shared_errors` are the intervals if some errors were shared.
    """
    plan, drawn = evidence.plan, evidence.samples[-1]
    form = form or format_of(plan)
    majority = plan.confirmations is not None
    final = final_labels(drawn, evidence.labels, majority=majority)
    missing = unlabelled(evidence.samples, evidence.labels, majority=majority)
    unknown = missing.unknown if form >= UNCORRECTED else frozenset()
    population = {number: each.population for number, each in enumerate(plan.strata)}
    plain = estimator(evidence, final, population, drawn, unknown, form).estimates()
    by_metric = {estimate.metric: estimate for estimate in plain}
    errors = label_errors(plan, drawn, evidence.labels) if form >= FORMAT else None
    whole = _Part(population=population, drawn=drawn)
    estimates = _corrected(evidence, errors, missing.passed_over, whole) if errors else plain
    document: Document = {
        "audit": plan.audit,
        "plan": plan.digest,
        "first_day": plan.first.isoformat(),
        "last_day": plan.last.isoformat(),
        "model_version": plan.model_version,
        "threshold": plan.threshold,
        "comments": sum(day.comments for day in plan.population),
        "flagged": sum(day.flagged for day in plan.population),
        "drawn": len(drawn),
        "labelled": len(final),
        "short_of_labels": _short_of_labels(plan, drawn, evidence.labels),
        **({"four_eyes": plan.four_eyes} if plan.format > 1 else {}),
        "stages": len(evidence.samples),
        "stages_planned": plan.stages,
        "decisions": len(evidence.labels),
        "labellers": len({each.labeller for each in evidence.labels}),
        "figures": [_figure(estimate, form) for estimate in estimates if _told(estimate, form)],
        "strata": _by_stratum(plan, drawn, final),
        "domains": _by_domain(
            evidence,
            lambda part: (
                _corrected(evidence, errors, missing.passed_over, part)
                if errors
                else estimator(
                    evidence, final, part.population, part.drawn, unknown, form
                ).estimates()
            ),
            form,
        ),
        "agreement": _agreement(evidence),
        "sensitivity": _sensitivity(by_metric, plan, evidence.labels, form),
        # Of the error of sampling alone: people would err about a random sample, too.
        "random_labels": _random_labels(
            by_metric["prevalence_unflagged"],
            sum(population[n] for n in plan.of_side("unflagged")),
        ),
    }
    if form < UNCORRECTED:
        return document
    counts = {
        "disputed": len(missing.disputed),
        "passed_over": len(missing.passed_over),
        "not_reached": len(missing.not_reached),
    }
    document |= {"format": form, "missing": counts}
    if errors is None:
        return document
    return document | {
        "uncorrected": [_figure(estimate, form) for estimate in plain],
        "label_errors": _label_errors(evidence, errors),
        "shared_errors": _shared_errors(evidence, errors, missing.passed_over, whole, estimates),
    }


@dataclass(frozen=True, kw_only=True)
class _Part:
    """A part of the audited comments: those of a value of a column, or all."""

    #: Its comments by stratum.
    population: Mapping[int, int]
    drawn: Sequence[DrawnComment]


def _corrected(
    evidence: Evidence,
    errors: LabelErrors,
    unknown: Collection[Key],
    part: _Part,
) -> list[Estimate]:
    """Return every metric, allowing for errors of the annotators."""
    draws = estimator(evidence, errors.drawn, part.population, part.drawn, unknown)
    imputed = ImputedEstimator.of(draws)
    estimates = [imputed.estimate(metric) for metric in METRICS]
    if not errors.useless:
        return estimates
    without = {"value": None, "low": None, "high": None, "error": None, "bound": None}
    without |= {"labels_needed": None, "labels_needed_side": None}
    without |= {"low_if_random": None, "high_if_random": None}
    return [
        replace(each, status="insufficient", reason=_USELESS, **without)  # type: ignore[arg-type]
        for each in estimates
    ]


def _told(estimate: Estimate, form: int) -> bool:
    return form >= UNCORRECTED or estimate.metric in _FIRST_METRICS


def _figure(estimate: Estimate, form: int) -> Document:
    """Return an estimate as the document has it."""
    figure = asdict(estimate)
    if form < UNCORRECTED:
        ends = {"low": None, "high": None} if estimate.value is None else {}
        return {k: v for k, v in figure.items() if k not in _LATER_FIELDS} | ends
    return figure


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
    form: int = FORMAT,
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
        if any(each.stratum in mine and key_of(each) in unknown for each in drawn):
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
        whole=form >= UNCORRECTED,
    )


def _short_of_labels(
    plan: AuditPlan, drawn: Sequence[DrawnComment], labels: Sequence[AuditLabel]
) -> int:
    """Return how many comments with a label have fewer than planned, and no adjudication.

    Up to format 2 of the plan, comments whose labels disagree do not count.
    """
    given = in_order(labels)
    final = final_labels(drawn, labels) if plan.confirmations is None else given
    counting = [each for each in drawn if key_of(each) in final]
    of = [(each, given[key_of(each)]) for each in counting]
    return sum(
        len(mine) < labels_demanded(plan, each, mine)
        for each, mine in of
        if all(one.action != "adjudicate" for one in mine)
    )


def _by_stratum(
    plan: AuditPlan, drawn: Sequence[DrawnComment], final: Mapping[Key, int]
) -> list[Document]:
    rows = []
    for number, stratum in enumerate(plan.strata):
        mine = [key_of(each) for each in drawn if each.stratum == number]
        labels = [final[key] for key in mine if key in final]
        rows.append(
            asdict(stratum)
            | {
                "drawn": len(mine),
                "labels": len(labels),
                "positives": sum(labels),
                "share": sum(labels) / len(labels) if labels else None,
            }
        )
    return rows


def _by_domain(
    evidence: Evidence, estimates: Callable[[_Part], list[Estimate]], form: int
) -> list[Document]:
    """Return the estimates of each value of each column with at least `LEAST_COMMENTS` comments."""
    rows = []
    drawn = evidence.samples[-1]
    for column, value in sorted({key[:2] for key in evidence.population}):
        population = {
            number: count
            for (name, of, number), count in evidence.population.items()
            if (name, of) == (column, value)
        }
        if sum(population.values()) < LEAST_COMMENTS:
            continue
        mine = [each for each in drawn if value in each.traits.get(column, ())]
        of_value = {
            each.metric: each for each in estimates(_Part(population=population, drawn=mine))
        }
        rows.append(
            {
                "column": column,
                "value": value,
                "comments": sum(population.values()),
                "figures": [
                    _figure(of_value[metric], form)
                    for metric in ("prevalence_unflagged", "precision", "recall", "accuracy")
                ],
            }
        )
    return rows


def _label_errors(evidence: Evidence, errors: LabelErrors) -> Document:
    """Return the numbers of confirmations, and the error rates with their 95 % intervals."""
    plan = evidence.plan
    given = blind_labels(evidence.labels)
    confirmed = [each for each in given.values() if len(each) > 1]
    drawn = {key_of(each): each for each in evidence.samples[-1]}
    missing = sum(
        len(mine) < labels_demanded(plan, drawn[key], mine)
        for key, mine in in_order(evidence.labels).items()
    )
    rates: dict[str, Document] = {}
    for side in SIDES:
        if not plan.of_side(side):
            continue
        for name, drawn_rates in zip(
            ("false_positive", "false_negative"), errors.rates(side), strict=True
        ):
            low, high = np.quantile(drawn_rates, [0.025, 0.975]).tolist()
            rates.setdefault(side, {})[name] = {
                "value": float(drawn_rates.mean()), "low": low, "high": high
            }  # fmt: skip
    return {
        "confirmed": len(confirmed),
        "overturned": sum(2 * each.count(each[0]) < len(each) for each in confirmed),
        "third_labels": sum(len(each) > 2 for each in confirmed),
        "missing": missing,
        "enough": len(confirmed) >= MINIMUM_CONFIRMED,
        "rates": rates,
    }


def _shared_errors(
    evidence: Evidence,
    errors: LabelErrors,
    unknown: Collection[Key],
    whole: _Part,
    estimates: Sequence[Estimate],
) -> list[Document]:
    """Return the metrics if up to `SHARED` of the errors were made by everybody alike.

    The band holds the intervals for none and for as many, of false positives and false negatives.
    """
    corners = [
        errors.shared(false_positive=up, false_negative=down)
        for up, down in ((SHARED, 0.0), (0.0, SHARED), (SHARED, SHARED))
    ]
    found = [list(estimates), *(_corrected(evidence, each, unknown, whole) for each in corners)]
    return [
        {
            "metric": each[0].metric,
            "share": SHARED,
            "low": min(0.0 if one.low is None else one.low for one in each),
            "high": max(1.0 if one.high is None else one.high for one in each),
        }
        for each in zip(*found, strict=True)
        if each[0].metric in _SHARED_METRICS and each[0].value is not None
    ]


def _time_order(label: AuditLabel) -> tuple[str, date, str, str]:
    return label.decided_at, label.day, label.comment_id, label.labeller


def _pairs(labels: Sequence[AuditLabel]) -> Floats:
    """Return comment index, first and second label (n, 3) of each comment with two labels."""
    by_comment: dict[Key, list[int]] = {}
    for each in sorted(labels, key=_time_order):
        if each.action != "adjudicate":
            by_comment.setdefault(key_of(each), []).append(each.label)
    pairs = [(number, *of[:2]) for number, of in enumerate(by_comment.values()) if len(of) > 1]
    return np.array(pairs, dtype=np.float64).reshape(-1, 3)


def _agreement(evidence: Evidence) -> list[Document]:
    """Return the agreement between annotators before adjudication.

    Confirmations are drawn where labels matter or surprise: weighted by their probability, they
    represent all labels of the sample.
    """
    if evidence.plan.confirmations:
        first, second, probability = _confirmed(evidence)
        weight = 1 / probability
        estimates = {
            "observed": observed_agreement(first, second, sample_weight=weight),
            "cohen_kappa": cohen_kappa(first, second, sample_weight=weight),
        }
    else:
        pairs = _pairs(evidence.labels)
        units = np.repeat(pairs[:, 0], 2)
        estimates = {
            "observed": observed_agreement(pairs[:, 1], pairs[:, 2]),
            "krippendorff_alpha": krippendorff_alpha(
                units, pairs[:, 1:].ravel(), rng=np.random.default_rng(0)
            ),
        }
    return [{"metric": name} | asdict(each) for name, each in estimates.items()]


def _confirmed(evidence: Evidence) -> tuple[Floats, Floats, Floats]:
    """Return first and second label (n,) of confirmed comments, and the probability of the second.

    Without the labels that the plan does not confirm, which `verify` tells.
    """
    plan, said = evidence.plan, blind_labels(evidence.labels)
    rows = []
    for each in evidence.samples[-1]:
        labels = said.get(key_of(each), [])
        rule = (plan.confirmations or {}).get(plan.strata[each.stratum].side)
        if len(labels) > 1 and rule is not None and rule.by_label[labels[0]] > 0:
            rows.append((*labels[:2], rule.by_label[labels[0]]))
    first, second, probability = np.array(rows, dtype=np.float64).reshape(-1, 3).T
    return first, second, probability


def _sensitivity(
    estimates: Mapping[str, Estimate], plan: AuditPlan, labels: Sequence[AuditLabel], form: int
) -> list[Document]:
    """Return the metrics corrected for assumed annotator error rates.

    The first format had a row for measured ones: half of the disagreement of all pairs, whatever
    their stratum. Pairs are drawn where positives are likely, so it overstated the errors.
    """
    precision = estimates["precision"].value
    missed = estimates["prevalence_unflagged"].value
    if precision is None or missed is None:
        return []
    flagged = sum(day.flagged for day in plan.population)
    comments = (flagged, sum(day.comments for day in plan.population) - flagged)
    pairs = _pairs(labels)
    measured = annotator_error_rate(pairs[:, 1], pairs[:, 2])
    errors = list(ASSUMED_ERRORS)
    if form < UNCORRECTED and measured.value is not None:
        errors.insert(0, (measured.value, measured.value))
    recall = estimates["recall"].value
    rows = corrected(precision, missed, comments, errors=errors, recall=recall)
    sources = ["measured"] * (len(errors) - len(ASSUMED_ERRORS)) + ["assumed"] * len(ASSUMED_ERRORS)
    return [{"source": source} | asdict(row) for source, row in zip(sources, rows, strict=True)]


def _random_labels(missed: Estimate, comments: int) -> int | None:
    """Return how many labels a random sample of `comments` would need for the same standard error.

    Eq. 9 of the paper, n₀ = p(1−p)/SE², with the finite-population correction
    n = n₀ / (1 + (n₀−1)/N) (Cochran 1977, eq. 4.2).
    """
    if missed.value is None or not missed.error:
        return None
    infinite = missed.value * (1 - missed.value) / missed.error**2
    return int(np.ceil(infinite / (1 + (infinite - 1) / comments)))
