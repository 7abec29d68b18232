"""What a result says of its labels: agreement and error rates of the annotators, and what if."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date
from typing import Any

import numpy as np

from modwatch.statistics.agreement import (
    annotator_error_rate,
    cohen_kappa,
    krippendorff_alpha,
    observed_agreement,
)
from modwatch.statistics.arguments import Floats
from modwatch.statistics.audit.draw import DrawnComment, labels_demanded
from modwatch.statistics.audit.estimates import Estimate
from modwatch.statistics.audit.imputation import LabelErrors
from modwatch.statistics.audit.labels import AuditLabel, Key, blind_labels, in_order, key_of
from modwatch.statistics.audit.plan import SIDES, AuditPlan
from modwatch.statistics.audit.sensitivity import corrected
from modwatch.statistics.true_labels import MINIMUM_CONFIRMED

#: Assumed annotator error rates (false positives, false negatives) of the sensitivity analysis.
ASSUMED_ERRORS = ((0.001, 0.02), (0.005, 0.05), (0.01, 0.1))

#: A part of a result.
Section = dict[str, Any]


def error_rates(
    plan: AuditPlan,
    drawn: Sequence[DrawnComment],
    labels: Sequence[AuditLabel],
    errors: LabelErrors,
) -> Section:
    """Return the numbers of confirmations, and the error rates with their 95 % intervals."""
    confirmed = [each for each in blind_labels(labels).values() if len(each) > 1]
    by_key = {key_of(each): each for each in drawn}
    missing = sum(
        len(mine) < labels_demanded(plan, by_key[key], mine)
        for key, mine in in_order(labels).items()
    )
    rates: dict[str, Section] = {}
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


def agreement(
    plan: AuditPlan, drawn: Sequence[DrawnComment], labels: Sequence[AuditLabel]
) -> list[Section]:
    """Return the agreement between annotators before adjudication.

    Confirmations are drawn where labels matter or surprise: weighted by their probability, they
    represent all labels of the sample.
    """
    if plan.confirmations:
        first, second, probability = _confirmed(plan, drawn, labels)
        weight = 1 / probability
        estimates = {
            "observed": observed_agreement(first, second, sample_weight=weight),
            "cohen_kappa": cohen_kappa(first, second, sample_weight=weight),
        }
    else:
        pairs = _pairs(labels)
        units = np.repeat(pairs[:, 0], 2)
        estimates = {
            "observed": observed_agreement(pairs[:, 1], pairs[:, 2]),
            "krippendorff_alpha": krippendorff_alpha(
                units, pairs[:, 1:].ravel(), rng=np.random.default_rng(0)
            ),
        }
    return [{"metric": name} | asdict(each) for name, each in estimates.items()]


def _confirmed(
    plan: AuditPlan, drawn: Sequence[DrawnComment], labels: Sequence[AuditLabel]
) -> tuple[Floats, Floats, Floats]:
    """Return first and second label (n,) of confirmed comments, and the probability of the second.

    Without the labels that the plan does not confirm, which `verify` tells.
    """
    said, rows = blind_labels(labels), []
    for each in drawn:
        mine = said.get(key_of(each), [])
        rule = (plan.confirmations or {}).get(plan.strata[each.stratum].side)
        if len(mine) > 1 and rule is not None and rule.by_label[mine[0]] > 0:
            rows.append((*mine[:2], rule.by_label[mine[0]]))
    first, second, probability = np.array(rows, dtype=np.float64).reshape(-1, 3).T
    return first, second, probability


def sensitivity(
    estimates: Mapping[str, Estimate],
    plan: AuditPlan,
    labels: Sequence[AuditLabel],
    *,
    measured: bool,
) -> list[Section]:
    """Return the metrics corrected for assumed annotator error rates.

    The first format of results had a row for `measured` ones, too: half of the disagreement of all
    pairs, whatever their stratum. Pairs are drawn where positives are likely, so it overstated the
    errors.
    """
    precision = estimates["precision"].value
    missed = estimates["prevalence_unflagged"].value
    if precision is None or missed is None:
        return []
    flagged = sum(day.flagged for day in plan.population)
    comments = (flagged, sum(day.comments for day in plan.population) - flagged)
    errors = list(ASSUMED_ERRORS)
    if measured:
        pairs = _pairs(labels)
        rate = annotator_error_rate(pairs[:, 1], pairs[:, 2]).value
        errors[:0] = [] if rate is None else [(rate, rate)]
    recall = estimates["recall"].value
    rows = corrected(precision, missed, comments, errors=errors, recall=recall)
    sources = ["measured"] * (len(errors) - len(ASSUMED_ERRORS)) + ["assumed"] * len(ASSUMED_ERRORS)
    return [{"source": source} | asdict(row) for source, row in zip(sources, rows, strict=True)]
