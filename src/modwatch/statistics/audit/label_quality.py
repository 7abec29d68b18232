"""The part of a result on its labels: agreement and error rates of the annotators."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from modwatch.statistics.agreement import cohen_kappa, observed_agreement
from modwatch.statistics.arguments import Floats
from modwatch.statistics.audit.draw import DrawnComment
from modwatch.statistics.audit.imputation import LabelErrors
from modwatch.statistics.audit.labels import (
    AuditLabel,
    blind_labels,
    in_order,
    key_of,
    labels_demanded,
)
from modwatch.statistics.audit.plan import SIDES, AuditPlan
from modwatch.statistics.label_truth import MINIMUM_CONFIRMED

#: A part of a result.
Section = dict[str, Any]


def error_rates(
    plan: AuditPlan,
    drawn: Sequence[DrawnComment],
    labels: Sequence[AuditLabel],
    errors: LabelErrors,
) -> Section:
    """Return the numbers of confirmations, and the error rates with their 95 % intervals."""
    confirmed = [given for given in blind_labels(labels).values() if len(given) > 1]
    by_key = {key_of(comment): comment for comment in drawn}
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
        "overturned": sum(2 * given.count(given[0]) < len(given) for given in confirmed),
        "third_labels": sum(len(given) > 2 for given in confirmed),
        "missing": missing,
        "enough": len(confirmed) >= MINIMUM_CONFIRMED,
        "shared": {
            "false_positive": plan.shared_false_positive,
            "false_negative": plan.shared_false_negative,
        },
        "rates": rates,
    }


def agreement(
    plan: AuditPlan, drawn: Sequence[DrawnComment], labels: Sequence[AuditLabel]
) -> list[Section]:
    """Return the agreement between annotators before adjudication.

    Confirmations are drawn where labels matter or surprise: weighted by their probability, they
    represent all labels of the sample.
    """
    first, second, probability = _confirmed(plan, drawn, labels)
    weight = 1 / probability
    estimates = {
        "observed": observed_agreement(first, second, sample_weight=weight),
        "cohen_kappa": cohen_kappa(first, second, sample_weight=weight),
    }
    return [{"metric": name} | asdict(estimate) for name, estimate in estimates.items()]


def _confirmed(
    plan: AuditPlan, drawn: Sequence[DrawnComment], labels: Sequence[AuditLabel]
) -> tuple[Floats, Floats, Floats]:
    """Return first and second label (n,) of confirmed comments, and the probability of the second.

    Labels that the plan does not confirm are left out; `verify` reports them.
    """
    given, rows = blind_labels(labels), []
    for comment in drawn:
        mine = given.get(key_of(comment), [])
        rule = plan.confirmations.get(plan.strata[comment.stratum].side)
        if len(mine) > 1 and rule is not None and rule.by_label[mine[0]] > 0:
            rows.append((*mine[:2], rule.by_label[mine[0]]))
    first, second, probability = np.array(rows, dtype=np.float64).reshape(-1, 3).T
    return first, second, probability
