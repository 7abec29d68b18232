"""Measures days, and windows of days, from the tables of the lake."""

import datetime
from collections.abc import Sequence

import pandas as pd

from modwatch.metrics.corrections import Totals
from modwatch.metrics.estimate import measure_days, reliability_estimates
from modwatch.metrics.labelled import LabelledDay
from modwatch.metrics.planner import WIDTHS, plan_slice
from modwatch.metrics.rogan_gladen import corrected_rows, moderator_error_table
from modwatch.metrics.strategies import STRATEGIES
from modwatch.monitoring import tables
from modwatch.monitoring.annotator_error import check_errors
from modwatch.monitoring.tables import DayScores
from modwatch.monitoring.windows import Window, windows
from modwatch.resources import Resources
from modwatch.tracking.keys import deployed_rows


def measure_day(at: Resources, day: datetime.date) -> None:
    """Measure one day by itself."""
    digest = tables.labels_digest(at.lake, day)  # before the labels: newer ones are measured again
    strategy, fraction = tables.deployed(at.lake, day)
    strategies = tuple(dict.fromkeys((*at.strategies, strategy)))
    table = _estimates(at, *_labelled(at, [day]), strategies=strategies, fraction=fraction)
    at.lake.replace("measurements", day, [tables.measurement_rows(day, table, digest)])


def measure_window(at: Resources, window: Window) -> None:
    """Measure the days of a window together, unless that was done before.

    The window has labels enough to tell how often moderators err, and what that does to figures.
    """
    if tables.measured_digest(at.lake, window.last, "window_measurements") == window.digest:
        return
    if window.digest is None:
        for name in ("reliability", "moderator_error", "window_measurements"):
            at.lake.replace(name, window.last, [])
        return
    labelled, scores = _labelled(at, window.days)
    strategy, fraction = tables.deployed(at.lake, window.last)
    table = _estimates(at, labelled, scores, strategies=STRATEGIES, fraction=fraction)
    pairs = tables.label_pairs(at.lake, window.days)
    totals = Totals.of(labelled, threshold=scores.threshold, strategy=strategy)
    deployed = deployed_rows(table, strategy, fraction).reset_index(drop=True)
    others = check_errors(at.lake, window.days, prevalence=_prevalence(table))
    sensitivity = moderator_error_table(deployed, pairs, totals, others=others)
    errors = corrected_rows(table, pairs, totals, alpha=fraction)
    curve = tables.reliability_rows(window.last, reliability_estimates(labelled))
    at.lake.replace("reliability", window.last, [curve])
    at.lake.replace(
        "moderator_error", window.last, [tables.sensitivity_rows(window.last, sensitivity)]
    )
    rows = tables.measurement_rows(window.last, pd.concat([table, errors]), window.digest)
    at.lake.replace("window_measurements", window.last, [rows])


def slice_plan(
    at: Resources, day: datetime.date, widths: Sequence[float] | None = None
) -> pd.DataFrame:
    """Return how large the random slice of the window that ends with `day` had to be."""
    (window,) = windows(at.lake, [at.window(day)])
    if not window.days:
        return plan_slice([], alpha=at.settings.review_fraction)
    labelled, scores = _labelled(at, window.days)
    return plan_slice(
        labelled,
        alpha=at.settings.review_fraction,
        strategy=at.settings.strategy,
        widths=widths or WIDTHS,
        threshold=scores.threshold,
        toxic_share=at.settings.toxic_share,
    )


def _prevalence(table: pd.DataFrame) -> float | None:
    """Return the share of toxic comments as it is seen; None when that is insufficient."""
    found = table.loc[table["metric"] == "prevalence", "value"].dropna()
    return float(found.iloc[0]) if len(found) else None


def _labelled(at: Resources, days: Sequence[datetime.date]) -> tuple[list[LabelledDay], DayScores]:
    """Return the days with their labels, and the scores of the last."""
    labelled = []
    for day in days:
        scores = tables.day_scores(at.lake, day)
        labelled.append(tables.labelled_day(at.lake, day, scores))
    return labelled, scores


def _estimates(
    at: Resources,
    labelled: Sequence[LabelledDay],
    scores: DayScores,
    *,
    strategies: Sequence[str],
    fraction: float,
) -> pd.DataFrame:
    """Return every metric of these days together, which one model scored.

    `fraction` is the review fraction that they were routed with; the settings' may be another now.
    """
    return measure_days(
        labelled,
        alphas=sorted({*at.alphas, fraction}),
        strategies=strategies,
        threshold=scores.threshold,
        toxic_share=at.settings.toxic_share,
    )
