"""Measures days, and windows of days, from the tables of the lake."""

import datetime
import logging
from collections.abc import Sequence
from typing import Any

import pandas as pd

from modwatch.data.lake.day_scores import day_scores
from modwatch.data.lake.delta import Lake, as_batch
from modwatch.data.lake.schemas import ASSUMPTION_CHECKS, RELIABILITY
from modwatch.monitoring.measurements import tables
from modwatch.monitoring.measurements.windows import Window, windows
from modwatch.routing.design import RoutingPolicy
from modwatch.routing.label_plan import plan_labels
from modwatch.statistics.collaboration.collaborative import REVIEW_FRACTIONS
from modwatch.statistics.collaboration.review_strategies import all_review_scores, available
from modwatch.statistics.intervals import mid_p
from modwatch.statistics.label_truth import RATE_BOUNDS, ErrorEvidence
from modwatch.statistics.live.assumption_checks import assumption_checks
from modwatch.statistics.live.labelled_day import LabelledDay
from modwatch.statistics.live.measure import Measured
from modwatch.statistics.recalibration import shown_by_variance, shown_off

logger = logging.getLogger(__name__)


def measure_day(lake: Lake, day: datetime.date, policy: RoutingPolicy) -> None:
    """Measure one day by itself, with what earlier labels show, and keep its labels for later."""
    digest = tables.labels_digest(lake, day)  # before the labels: newer ones are measured again
    strategy, fraction = tables.deployed(lake, day)
    labelled = _labelled(lake, [day], policy)
    strategies = ("uncertainty", "toxicity", policy.strategy, strategy)
    measured = _measured(lake, labelled, [day], policy)
    lake.replace("label_counts", day, [tables.label_counts(day, measured.sample.given)])
    found = _tables(measured, policy, strategies=strategies, fraction=fraction)
    tables.replace_estimates(lake, day, found, digest)


def measure_window(lake: Lake, window: Window, policy: RoutingPolicy) -> None:
    """Measure the days of a window together, unless that was done before."""
    if tables.measured_digest(lake, window.last, window=True) == window.digest:
        return
    if window.digest is None:
        for name in ("reliability", "assumption_checks"):
            lake.replace(name, window.last, [])
        lake.replace("estimates", window.last, [], window=True)
        return
    labelled = _labelled(lake, window.days, policy)
    strategy, fraction = tables.deployed(lake, window.last)
    measured = _measured(lake, labelled, window.days, policy)
    compared = (name for name, score in all_review_scores().items() if score.compared)
    strategies = (*compared, policy.strategy, strategy)
    found = _tables(measured, policy, strategies=strategies, fraction=fraction)
    pairs = [tables.label_pairs(lake, day, day_scores(lake, day)) for day in window.days]
    checks = assumption_checks(measured, found, pd.concat(pairs, ignore_index=True))
    for name, frame, schema in (
        ("reliability", measured.reliability(), RELIABILITY),
        ("assumption_checks", checks, ASSUMPTION_CHECKS),
    ):
        lake.replace(name, window.last, [as_batch(frame.assign(dt=window.last), schema)])
    found = (pd.concat([found[0], _supposed(measured)]), found[1])
    tables.replace_estimates(lake, window.last, found, window.digest, window=True)


def _supposed(measured: Measured) -> pd.DataFrame:
    """Return the line of the true logit over that of the scores, where labels show them off.

    And how it depends on the model variance, where labels show that; and up to which share people
    may repeat the errors of others.
    """
    sample, toxic, values = measured.sample, measured.toxic, dict[str, float]()
    if measured.labels is not None:
        most = (kind.ends[1] for kind in measured.known.kinds)
        values |= zip(tables.SHARED_ERRORS, most, strict=True)
    if (found := shown_off(sample.prob, toxic)) is not None:
        values |= zip(tables.RECALIBRATION, (found.intercept, found.slope), strict=True)
    variance = sample.columns.get("model_variance")
    if variance is not None and (given := shown_by_variance(sample.prob, variance, toxic)):
        values |= zip(tables.BY_VARIANCE, given.coefficients, strict=True)
    n = toxic.size
    every = {"n": n, "effective_n": float(n), "status": "ok", "reason": ""}
    return pd.DataFrame([{"metric": name, "value": at, **every} for name, at in values.items()])


def error_evidence(
    lake: Lake, days: Sequence[datetime.date], policy: RoutingPolicy
) -> ErrorEvidence:
    """Return the answers to gold items, and up to which share errors may be shared.

    Without answers where the keys of the gold items must be wrong: no moderator errs more often
    than `RATE_BOUNDS`, but the answers show a higher rate for certain.
    """
    stated = ErrorEvidence.sharing(policy.shared_false_positive, policy.shared_false_negative)
    answers = tables.gold_answers(lake, days, stated)
    for kind, bound in zip(answers.kinds, RATE_BOUNDS, strict=True):
        given, wrong = kind.answers, kind.wrong
        if given and mid_p(wrong, given)[0] > bound:
            logger.warning(
                "Gold items are left out: people contradict too many of them.",
                extra={"event": "gold_contradicted", "answers": given, "contradicted": wrong},
            )
            return stated
    return answers


def window_plan(
    lake: Lake, window: Sequence[datetime.date], policy: RoutingPolicy, **wanted: Any
) -> pd.DataFrame:
    """Return how to split labels between slice and confirmations, from the labels of a window.

    `wanted` are the widths, budget and error rates of `plan_labels`.
    """
    (measured,) = windows(lake, [window])
    if not measured.days:
        return plan_labels([], policy, **wanted)
    labelled = _labelled(lake, measured.days, policy)
    known = error_evidence(lake, measured.days, policy)
    history = tables.earlier_labels(lake, measured.days[0])
    return plan_labels(labelled, policy, known=known, history=history, **wanted)


def _labelled(
    lake: Lake, days: Sequence[datetime.date], policy: RoutingPolicy
) -> list[LabelledDay]:
    return [tables.labelled_day(lake, day, day_scores(lake, day), policy) for day in days]


def _measured(
    lake: Lake,
    labelled: Sequence[LabelledDay],
    days: Sequence[datetime.date],
    policy: RoutingPolicy,
) -> Measured:
    """Return days, which one model scored, with what their labels and earlier ones show."""
    known = error_evidence(lake, days, policy)
    return Measured.from_days(labelled, known, history=tables.earlier_labels(lake, days[0]))


def _tables(
    measured: Measured,
    policy: RoutingPolicy,
    *,
    strategies: Sequence[str],
    fraction: float,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return every metric of some days, and by the design alone.

    `fraction` is the review fraction that they were routed with; the policy's may be another now.
    Strategies whose columns the model does not return are left out.
    """
    known = available([*measured.sample.columns])
    return measured.tables(
        review_fractions=sorted({*REVIEW_FRACTIONS, policy.review_fraction, fraction}),
        strategies=[name for name in dict.fromkeys(strategies) if name in known],
        threshold=0.5,
    )
