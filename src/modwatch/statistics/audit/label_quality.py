"""The part of a result on its labels: agreement and error rates of the annotators, sensitivity.

Sensitivity (Rogan & Gladen 1978): at a share p of positives, annotators with error rates
`false_positive` and `false_negative` observe p (1 − false_negative) + (1 − p) false_positive.
Solved for p on each side of the decision.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from modwatch.common.errors import MetricInputError
from modwatch.statistics import arguments
from modwatch.statistics.agreement import cohen_kappa, observed_agreement
from modwatch.statistics.arguments import Floats, whole_numbers
from modwatch.statistics.audit.draw import DrawnComment, labels_demanded
from modwatch.statistics.audit.estimates import AuditEstimate
from modwatch.statistics.audit.imputation import LabelErrors
from modwatch.statistics.audit.labels import AuditLabel, blind_labels, in_order, key_of
from modwatch.statistics.audit.plan import SIDES, AuditPlan
from modwatch.statistics.label_truth import MINIMUM_CONFIRMED

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


def sensitivity(estimates: Mapping[str, AuditEstimate], plan: AuditPlan) -> list[Section]:
    """Return the metrics corrected for assumed annotator error rates."""
    precision = estimates["precision"].value
    missed = estimates["prevalence_unflagged"].value
    if precision is None or missed is None:
        return []
    flagged = sum(day.flagged for day in plan.population)
    comments = (flagged, sum(day.comments for day in plan.population) - flagged)
    recall = estimates["recall"].value
    rows = corrected(precision, missed, comments, errors=ASSUMED_ERRORS, recall=recall)
    return [asdict(row) for row in rows]


@dataclass(frozen=True, kw_only=True)
class Corrected:
    """The metrics of an audit, corrected for annotator errors."""

    false_positive: float
    false_negative: float
    prevalence_unflagged: float
    precision: float
    #: None where no positives are left.
    recall: float | None
    #: Whether a corrected share was outside [0, 1] and was clipped.
    cut: bool


def rogan_gladen(observed: float | Floats, false_positive: float, false_negative: float) -> Floats:
    """Return the true share behind an observed share, not clipped to [0, 1].

    MetricInputError for error rates outside [0, 1), or that sum to 1 or more.

    >>> round(float(rogan_gladen(0.068, 0.02, 0.02)), 6)
    0.05
    """
    if not 0 <= false_positive < 1 or not 0 <= false_negative < 1:
        raise MetricInputError("Annotator error rates must be in [0, 1).")
    if false_positive + false_negative >= 1:
        raise MetricInputError(
            "Annotator error rates must sum to less than 1; such labels carry no information."
        )
    return np.asarray((observed - false_positive) / (1 - false_positive - false_negative))


def corrected(
    precision: float,
    prevalence_unflagged: float,
    comments: tuple[int, int],
    *,
    errors: Sequence[tuple[float, float]],
    recall: float | None = None,
) -> list[Corrected]:
    """Return the metrics at each pair of (false positive rate, false negative rate).

    `comments` are the numbers of flagged and unflagged comments. At low prevalence, recall depends
    mostly on false positives among the many negatives. The ratio of the odds of the bias-corrected
    `recall` to those of the plain quotient is kept at every pair, so that error rates of 0 change
    nothing. MetricInputError for shares outside [0, 1], negative numbers, or invalid error rates.

    >>> table = corrected(0.8, 0.01, (100, 9900), errors=[(0.0, 0.0), (0.005, 0.0)])
    >>> [round(row.recall, 2) for row in table]
    [0.45, 0.62]
    >>> round(corrected(0.8, 0.01, (100, 9900), errors=[(0.0, 0.0)], recall=0.44)[0].recall, 6)
    0.44
    """
    arguments.fraction("precision", precision)
    arguments.fraction("prevalence_unflagged", prevalence_unflagged)
    whole_numbers("comments", comments)
    tp, fn = comments[0] * precision, comments[1] * prevalence_unflagged
    odds = 1.0
    if recall is not None and arguments.fraction("recall", recall) not in (0, 1) and tp * fn:
        odds = recall / (1 - recall) * fn / tp
    rows = []
    for false_positive, false_negative in errors:
        shares = [
            float(rogan_gladen(observed, false_positive, false_negative))
            for observed in (precision, prevalence_unflagged)
        ]
        on_flagged, on_unflagged = (min(max(share, 0.0), 1.0) for share in shares)
        tp, fn = comments[0] * on_flagged * odds, comments[1] * on_unflagged
        rows.append(
            Corrected(
                false_positive=false_positive,
                false_negative=false_negative,
                prevalence_unflagged=on_unflagged,
                precision=on_flagged,
                recall=tp / (tp + fn) if tp + fn else None,
                cut=min(shares) < 0 or max(shares) > 1,
            )
        )
    return rows
