"""From plan, sample and labels to every figure of an audit. Nothing else goes in: it can be redone.

`computed` returns what goes into `result.json`. Numbers are plain floats; what the labels do not
suffice for is None, with the reason.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

import numpy as np

from modwatch.audit.draw import DrawnComment, labels_wanted
from modwatch.audit.estimates import Audited, Estimate
from modwatch.audit.labels import AuditLabel, Key, final_labels, key_of
from modwatch.audit.plan import SIDES, AuditPlan
from modwatch.audit.sensitivity import corrected
from modwatch.audit.tallies import side_counts
from modwatch.metrics.agreement import krippendorff_alpha, observed_agreement
from modwatch.metrics.annotator_error import annotator_error_rate

#: Values of a column with fewer comments than this have no line: figures on few are on people.
LEAST_COMMENTS = 50

#: Pairs of error rates of people (false positives, false negatives) to look at.
ASSUMED_ERRORS = ((0.001, 0.02), (0.005, 0.05), (0.01, 0.1))

Document = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What an audit was made of."""

    plan: AuditPlan
    #: Sample of each stage, together with those of earlier stages, in the order of the keys.
    samples: Sequence[Sequence[DrawnComment]]
    #: Comments by column, value and stratum.
    population: Mapping[tuple[str, str, int], int]
    labels: Sequence[AuditLabel]


def computed(evidence: Evidence) -> Document:
    """Return every figure of the audit.

    `short_of_labels` says how many comments count by fewer labels than were planned, as when the
    labelling was stopped: the label of one person counts as that of any comment that one person was
    to label. Comments that somebody settled are not among them. `stages` were labelled of
    `stages_planned`. `random_labels` are those of `_random_labels`.
    """
    plan, drawn = evidence.plan, evidence.samples[-1]
    final = final_labels(drawn, evidence.labels)
    whole = {number: each.population for number, each in enumerate(plan.strata)}
    figures = audited(evidence, final, whole, drawn).estimates()
    told = {figure.metric: figure for figure in figures}
    return {
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
        "stages": len(evidence.samples),
        "stages_planned": plan.stages,
        "decisions": len(evidence.labels),
        "labellers": len({each.labeller for each in evidence.labels}),
        "figures": [asdict(figure) for figure in figures],
        "strata": _by_stratum(plan, drawn, final),
        "domains": _by_domain(evidence, final),
        "agreement": _agreement(evidence.labels),
        "sensitivity": _sensitivity(told, plan, evidence.labels),
        "random_labels": _random_labels(
            told["prevalence_unflagged"], sum(whole[n] for n in plan.of_side("unflagged"))
        ),
    }


def to_json(document: Document) -> bytes:
    """Return the canonical text of a result."""
    text = json.dumps(document, sort_keys=True, indent=1, allow_nan=False)
    return (text + "\n").encode()


def audited(
    evidence: Evidence,
    final: Mapping[Key, int],
    population: Mapping[int, int],
    drawn: Sequence[DrawnComment],
) -> Audited:
    """Return the labels of some comments, those of `drawn`, as estimators take them.

    `population` says how many comments of each stratum they stand for.
    """
    plan = evidence.plan
    sides = []
    for side in SIDES:
        numbers = [n for n in plan.of_side(side) if population.get(n)]
        mine = {n: population[n] for n in numbers}
        sides.append(side_counts(plan, evidence.samples, drawn, final, mine))
    comments = tuple(sum(population.get(n, 0) for n in plan.of_side(side)) for side in SIDES)
    return Audited(
        flagged=sides[0], unflagged=sides[1], comments=(comments[0], comments[1]), rule=plan.rule
    )


def _short_of_labels(
    plan: AuditPlan,
    drawn: Sequence[DrawnComment],
    final: Mapping[Key, int],
    labels: Sequence[AuditLabel],
) -> int:
    """Return how many comments count by fewer labels than planned, nobody having settled them."""
    said = Counter(key_of(each) for each in labels if each.action == "label")
    settled = {key_of(each) for each in labels if each.action != "label"}
    counting = [each for each in drawn if key_of(each) in final.keys() - settled]
    return sum(said[key_of(each)] < labels_wanted(plan, each) for each in counting)


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


def _by_domain(evidence: Evidence, final: Mapping[Key, int]) -> list[Document]:
    """Return the figures of each value of each column, those on few comments left out."""
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
        found = audited(evidence, final, population, mine)
        rows.append(
            {
                "column": column,
                "value": value,
                "comments": sum(population.values()),
                "figures": [
                    asdict(found.estimate(metric))
                    for metric in ("prevalence_unflagged", "precision", "recall", "accuracy")
                ],
            }
        )
    return rows


def _when(label: AuditLabel) -> tuple[str, date, str, str]:
    return label.decided_at, label.day, label.comment_id, label.labeller


def _pairs(labels: Sequence[AuditLabel]) -> list[tuple[int, int, int]]:
    """Return the first two labels of each comment that has two, and its number."""
    said: dict[Key, list[int]] = {}
    for each in sorted(labels, key=_when):
        if each.action == "label":
            said.setdefault(key_of(each), []).append(each.label)
    return [(number, of[0], of[1]) for number, of in enumerate(said.values()) if len(of) > 1]


def _agreement(labels: Sequence[AuditLabel]) -> list[Document]:
    """Return how far people agree before anybody settles it."""
    pairs = _pairs(labels)
    numbers = np.array(pairs, dtype=np.float64).reshape(-1, 3)
    units = np.repeat(numbers[:, 0], 2)
    found = {
        "observed": observed_agreement(numbers[:, 1], numbers[:, 2]),
        "krippendorff_alpha": krippendorff_alpha(
            units, numbers[:, 1:].ravel(), rng=np.random.default_rng(0)
        ),
    }
    return [{"metric": name} | asdict(each) for name, each in found.items()]


def _sensitivity(
    told: Mapping[str, Estimate], plan: AuditPlan, labels: Sequence[AuditLabel]
) -> list[Document]:
    """Return the figures as they would be if people erred at measured and at assumed rates."""
    precision, missed = told["precision"].value, told["prevalence_unflagged"].value
    if precision is None or missed is None:
        return []
    flagged = sum(day.flagged for day in plan.population)
    comments = (flagged, sum(day.comments for day in plan.population) - flagged)
    pairs = np.array(_pairs(labels), dtype=np.float64).reshape(-1, 3)
    measured = annotator_error_rate(pairs[:, 1], pairs[:, 2])
    errors = list(ASSUMED_ERRORS)
    if measured.value is not None:
        errors.insert(0, (measured.value, measured.value))
    recall = told["recall"].value
    rows = corrected(precision, missed, comments, errors=errors, recall=recall)
    sources = ["measured"] * (len(errors) - len(ASSUMED_ERRORS)) + ["assumed"] * len(ASSUMED_ERRORS)
    return [{"source": source} | asdict(row) for source, row in zip(sources, rows, strict=True)]


def _random_labels(missed: Estimate, comments: int) -> int | None:
    """Return how many labels a random sample of `comments` would need for the same standard error.

    Eq. 9 of the paper, n₀ = p(1−p)/SE², which is for a population without end, corrected as the
    standard error is: n = n₀ / (1 + (n₀−1)/N) (Cochran 1977, eq. 4.2).
    """
    if missed.value is None or not missed.error:
        return None
    endless = missed.value * (1 - missed.value) / missed.error**2
    return int(np.ceil(endless / (1 + (endless - 1) / comments)))
