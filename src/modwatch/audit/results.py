"""The result of an audit, computed from plan, sample and labels alone, to be reproducible.

`computed` returns the content of `result.json`. Estimates for which there are too few labels are
None, with a reason and, where the labels give one, a bound.
"""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

import numpy as np

from modwatch.audit.draw import DrawnComment, labels_wanted
from modwatch.audit.estimates import AuditEstimator, Estimate
from modwatch.audit.labels import AuditLabel, Key, final_labels, key_of, unlabelled
from modwatch.audit.plan import SIDES, AuditPlan
from modwatch.audit.sensitivity import corrected
from modwatch.audit.stages import side_counts
from modwatch.audit.stratified import WeightedCounts
from modwatch.metrics.agreement import krippendorff_alpha, observed_agreement
from modwatch.metrics.annotator_error import annotator_error_rate
from modwatch.metrics.inputs import Floats

#: Minimum comments of a value to be reported: estimates on fewer would describe single people.
LEAST_COMMENTS = 50

#: Assumed annotator error rates (false positives, false negatives) of the sensitivity analysis.
ASSUMED_ERRORS = ((0.001, 0.02), (0.005, 0.05), (0.01, 0.1))

#: Format of the document. The first had no bounds, left comments without a final label out of every
#: interval, and corrected for the disagreement of annotators as if both erred alike.
FORMAT = 2

#: Metrics and fields of an estimate in the first format.
_FIRST_METRICS = ("prevalence_unflagged", "precision", "recall", "f1", "accuracy", "prevalence")
_LATER_FIELDS = ("bound", "all_labelled", "low_if_random", "high_if_random")

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


def computed(evidence: Evidence, *, form: int = FORMAT) -> Document:
    """Return the result of the audit in a format, by default the latest.

    `short_of_labels` counts comments whose final label comes from fewer people than planned, such
    as when the labelling was stopped; adjudicated comments are not counted. `missing` counts those
    without a final label; see `labels.Unlabelled`. `stages` of `stages_planned` were labelled.
    `random_labels`: see `_random_labels`.
    """
    plan, drawn = evidence.plan, evidence.samples[-1]
    final = final_labels(drawn, evidence.labels)
    missing = unlabelled(evidence.samples, evidence.labels)
    unknown = missing.unknown if form >= FORMAT else frozenset()
    population = {number: each.population for number, each in enumerate(plan.strata)}
    estimates = estimator(evidence, final, population, drawn, unknown, form).estimates()
    by_metric = {estimate.metric: estimate for estimate in estimates}
    document = {
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
        "short_of_labels": _short_of_labels(plan, drawn, final, evidence.labels),
        **({"four_eyes": plan.four_eyes} if plan.format > 1 else {}),
        "stages": len(evidence.samples),
        "stages_planned": plan.stages,
        "decisions": len(evidence.labels),
        "labellers": len({each.labeller for each in evidence.labels}),
        "figures": [_figure(estimate, form) for estimate in estimates if _told(estimate, form)],
        "strata": _by_stratum(plan, drawn, final),
        "domains": _by_domain(evidence, final, unknown, form),
        "agreement": _agreement(evidence.labels),
        "sensitivity": _sensitivity(by_metric, plan, evidence.labels, form),
        "random_labels": _random_labels(
            by_metric["prevalence_unflagged"],
            sum(population[n] for n in plan.of_side("unflagged")),
        ),
    }
    if form < FORMAT:
        return document
    counts = {
        "disputed": len(missing.disputed),
        "passed_over": len(missing.passed_over),
        "not_reached": len(missing.not_reached),
    }
    return document | {"format": form, "missing": counts}


def _told(estimate: Estimate, form: int) -> bool:
    return form >= FORMAT or estimate.metric in _FIRST_METRICS


def _figure(estimate: Estimate, form: int) -> Document:
    """Return an estimate as the document has it."""
    figure = asdict(estimate)
    if form < FORMAT:
        ends = {"low": None, "high": None} if estimate.value is None else {}
        return {k: v for k, v in figure.items() if k not in _LATER_FIELDS} | ends
    return figure


def to_json(document: Document) -> bytes:
    """Return the canonical text of a result."""
    text = json.dumps(document, sort_keys=True, indent=1, allow_nan=False)
    return (text + "\n").encode()


def estimator(
    evidence: Evidence,
    final: Mapping[Key, int],
    population: Mapping[int, int],
    drawn: Sequence[DrawnComment],
    unknown: Collection[Key] = (),
    form: int = FORMAT,
) -> AuditEstimator:
    """Return the estimator of the labels of `drawn`.

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
        whole=form >= FORMAT,
    )


def _short_of_labels(
    plan: AuditPlan,
    drawn: Sequence[DrawnComment],
    final: Mapping[Key, int],
    labels: Sequence[AuditLabel],
) -> int:
    """Return how many comments have fewer labels than planned and no adjudication."""
    given = Counter(key_of(each) for each in labels if each.action == "label")
    adjudicated = {key_of(each) for each in labels if each.action != "label"}
    counting = [each for each in drawn if key_of(each) in final.keys() - adjudicated]
    return sum(given[key_of(each)] < labels_wanted(plan, each) for each in counting)


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
    evidence: Evidence, final: Mapping[Key, int], unknown: Collection[Key], form: int
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
        of_value = estimator(evidence, final, population, mine, unknown, form)
        rows.append(
            {
                "column": column,
                "value": value,
                "comments": sum(population.values()),
                "figures": [
                    _figure(of_value.estimate(metric), form)
                    for metric in ("prevalence_unflagged", "precision", "recall", "accuracy")
                ],
            }
        )
    return rows


def _time_order(label: AuditLabel) -> tuple[str, date, str, str]:
    return label.decided_at, label.day, label.comment_id, label.labeller


def _pairs(labels: Sequence[AuditLabel]) -> Floats:
    """Return comment index, first and second label (n, 3) of each comment with two labels."""
    by_comment: dict[Key, list[int]] = {}
    for each in sorted(labels, key=_time_order):
        if each.action == "label":
            by_comment.setdefault(key_of(each), []).append(each.label)
    pairs = [(number, *of[:2]) for number, of in enumerate(by_comment.values()) if len(of) > 1]
    return np.array(pairs, dtype=np.float64).reshape(-1, 3)


def _agreement(labels: Sequence[AuditLabel]) -> list[Document]:
    """Return the agreement between annotators before adjudication."""
    pairs = _pairs(labels)
    units = np.repeat(pairs[:, 0], 2)
    estimates = {
        "observed": observed_agreement(pairs[:, 1], pairs[:, 2]),
        "krippendorff_alpha": krippendorff_alpha(
            units, pairs[:, 1:].ravel(), rng=np.random.default_rng(0)
        ),
    }
    return [{"metric": name} | asdict(each) for name, each in estimates.items()]


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
    if form < FORMAT and measured.value is not None:
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
