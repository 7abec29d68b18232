"""Measures days, and windows of days, from the tables of the lake."""

import datetime
from collections.abc import Mapping, Sequence

import pandas as pd

from modwatch.lake.day_scores import DayScores, day_scores
from modwatch.lake.delta import Lake
from modwatch.lake.schemas import MODERATOR_ERROR, RELIABILITY, as_batch
from modwatch.metrics.annotator_error import (
    ErrorRates,
    error_rates_from_gold,
    error_rates_from_pairs,
)
from modwatch.metrics.collaborative import REVIEW_FRACTIONS
from modwatch.metrics.estimation.labelled_day import LabelledDay
from modwatch.metrics.estimation.measure import measure_days, reliability_estimates
from modwatch.metrics.estimation.sample_size import WIDTHS, plan_slice
from modwatch.metrics.rogan_gladen import PopulationCounts, corrected_rows, sensitivity_table
from modwatch.metrics.strategies import STRATEGIES
from modwatch.monitoring import tables
from modwatch.monitoring.windows import Window, windows
from modwatch.routing.policy import RoutingPolicy
from modwatch.tracking.keys import deployed_rows


def measure_day(lake: Lake, day: datetime.date, policy: RoutingPolicy) -> None:
    """Measure one day by itself."""
    digest = tables.labels_digest(lake, day)  # before the labels: newer ones are measured again
    strategy, fraction = tables.deployed(lake, day)
    strategies = tuple(dict.fromkeys(("uncertainty", "toxicity", policy.strategy, strategy)))
    labelled, scores = _labelled(lake, [day])
    table = _estimates(labelled, scores, policy, strategies=strategies, fraction=fraction)
    lake.replace("measurements", day, [tables.measurement_rows(day, table, digest)])


def measure_window(lake: Lake, window: Window, policy: RoutingPolicy) -> None:
    """Measure the days of a window together, unless that was done before.

    A window has enough labels to estimate the annotator error rate and its effect on the estimates.
    """
    if tables.measured_digest(lake, window.last, "window_measurements") == window.digest:
        return
    if window.digest is None:
        for name in ("reliability", "moderator_error", "window_measurements"):
            lake.replace(name, window.last, [])
        return
    labelled, scores = _labelled(lake, window.days)
    strategy, fraction = tables.deployed(lake, window.last)
    table = _estimates(labelled, scores, policy, strategies=STRATEGIES, fraction=fraction)
    pairs = tables.label_pairs(lake, window.days)
    totals = PopulationCounts.of(labelled, threshold=scores.threshold, strategy=strategy)
    deployed = deployed_rows(table, strategy, fraction).reset_index(drop=True)
    others = check_errors(lake, window.days, prevalence=_prevalence(table))
    sensitivity = sensitivity_table(deployed, pairs, totals, others=others)
    errors = corrected_rows(table, pairs, totals, review_fraction=fraction)
    curve = reliability_estimates(labelled)
    for name, frame, schema in (
        ("reliability", curve, RELIABILITY),
        ("moderator_error", sensitivity, MODERATOR_ERROR),
    ):
        lake.replace(name, window.last, [as_batch(frame.assign(dt=window.last), schema)])
    rows = tables.measurement_rows(window.last, pd.concat([table, errors]), window.digest)
    lake.replace("window_measurements", window.last, [rows])


def check_errors(
    lake: Lake, days: Sequence[datetime.date], *, prevalence: float | None
) -> Mapping[str, ErrorRates]:
    """Return the error rates that the checks of `days` tell, by source; some may be insufficient.

        source  is
        retest  a lower bound: a person may repeat a misreading
        gold    of comments that are no sample of the routed ones; `prevalence` as seen

    They are never pooled with confirmations, nor with each other.
    """
    return {
        "retest": error_rates_from_pairs(tables.retest_pairs(lake, days)),
        "gold": error_rates_from_gold(tables.gold_answers(lake, days), prevalence=prevalence),
    }


def slice_plan(
    lake: Lake,
    window: Sequence[datetime.date],
    policy: RoutingPolicy,
    widths: Sequence[float] | None = None,
) -> pd.DataFrame:
    """Return the sizes of the random slice that give intervals of these widths, from a window."""
    (measured,) = windows(lake, [window])
    if not measured.days:
        return plan_slice([], review_fraction=policy.review_fraction)
    labelled, scores = _labelled(lake, measured.days)
    return plan_slice(
        labelled,
        review_fraction=policy.review_fraction,
        strategy=policy.strategy,
        widths=widths or WIDTHS,
        threshold=scores.threshold,
        toxic_share=policy.toxic_share,
    )


def _prevalence(table: pd.DataFrame) -> float | None:
    """Return the prevalence among the labels; None when that is insufficient."""
    values = table.loc[table["metric"] == "prevalence", "value"].dropna()
    return float(values.iloc[0]) if len(values) else None


def _labelled(lake: Lake, days: Sequence[datetime.date]) -> tuple[list[LabelledDay], DayScores]:
    """Return the days with their labels, and the scores of the last."""
    labelled = []
    for day in days:
        scores = day_scores(lake, day)
        labelled.append(tables.labelled_day(lake, day, scores))
    return labelled, scores


def _estimates(
    labelled: Sequence[LabelledDay],
    scores: DayScores,
    policy: RoutingPolicy,
    *,
    strategies: Sequence[str],
    fraction: float,
) -> pd.DataFrame:
    """Return every metric of these days together, which one model scored.

    `fraction` is the review fraction that they were routed with; the policy's may be another now.
    """
    return measure_days(
        labelled,
        review_fractions=sorted({*REVIEW_FRACTIONS, policy.review_fraction, fraction}),
        strategies=strategies,
        threshold=scores.threshold,
        toxic_share=policy.toxic_share,
    )
