"""What MLflow is told about a day: facts, estimates, pictures; gathered from the lake."""

import datetime
import hashlib

import numpy as np
import pandas as pd

from modwatch.alerts.alerting import standing_alerts
from modwatch.metrics.drift import Reference
from modwatch.metrics.profile import BINS, Counts, pooled
from modwatch.metrics.what_if import what_if
from modwatch.monitoring import drift, tables
from modwatch.monitoring.tables import DayScores
from modwatch.monitoring.windows import Window, seconds_per_decision, windows
from modwatch.quality.result import Status
from modwatch.resources import Resources
from modwatch.tracking import runs, timeline
from modwatch.tracking.facts import DayFacts, DayPictures, DayTables, ScoreHistogram

_WORST: tuple[Status, ...] = ("rejected", "warned", "passed")
_ONE_DAY = datetime.timedelta(days=1)

#: Bins of a histogram that is looked at; a profile has twenty times as many.
_SHOWN_BINS = 50


def stale_days(at: Resources, days: list[datetime.date]) -> list[datetime.date]:
    """Return those of `days` whose measurement, or what goes with it, MLflow does not show yet."""
    shown = runs.published_digests(at.settings.mlflow_url)
    wanted = {day: _digest(at, day) for day in days}
    return [day for day, digest in wanted.items() if digest and shown.get(day) != digest]


def publish(at: Resources, day: datetime.date) -> str:
    """Publish the measurement of `day` in place of an earlier one; return the run's id."""
    scores = tables.day_scores(at.lake, day)
    (window,) = windows(at.lake, [at.window(day)])
    facts = _facts(at, day, scores, window)
    return runs.publish_day(
        day,
        tables=_tables(at, day, window, facts),
        facts=facts,
        pictures=_pictures(at, day, scores),
        check_page=at.checks.read_page(day),
        tracking_uri=at.settings.mlflow_url,
    )


def publish_timeline(at: Resources) -> None:
    """Bring the long-lived run up to date with the days' runs; nothing when there is none."""
    rows = runs.published_days(at.settings.mlflow_url)
    if rows:
        timeline.publish_timeline(rows, tracking_uri=at.settings.mlflow_url)


def _facts(at: Resources, day: datetime.date, scores: DayScores, window: Window) -> DayFacts:
    strategy, review_fraction = tables.deployed(at.lake, day)
    return DayFacts(
        comments=len(scores.prob),
        quarantined=at.lake.count("quarantine", day),
        flagged=int(scores.flagged.sum()),
        routed=at.lake.count("routed", day),
        labelled=at.lake.count("labels", day),
        model_version=scores.model_version,
        strategy=strategy,
        review_fraction=review_fraction,
        checks=_checks(at, day),
        pooled_days=len(window.days),
        window_days=at.settings.window_days,
        queue_url=at.settings.console_url,
        alerts=standing_alerts(at, day),
        airflow_run_url=f"{at.settings.airflow_url}/dags/score_comments/runs",
        digest=_digest(at, day) or "",
    )


def _digest(at: Resources, day: datetime.date) -> str | None:
    """Return a hash of all that a day's run is made of; None if the day is not measured."""
    if tables.measured_digest(at.lake, day) is None:
        return None
    parts = [
        tables.measured_digest(at.lake, past, table)
        for past in (day - _ONE_DAY, day)
        for table in ("measurements", "window_measurements")
    ]
    drift = _drift(at, day)
    # The queue of an earlier day changes by the hour; that is told on its own page.
    told = drift[(drift["feature"] != "queue") | (drift["dt"] == day)]
    rows = sorted(repr(row) for row in told.to_dict("records"))
    made_of = repr((parts, _checks(at, day), rows, standing_alerts(at, day)))
    return hashlib.sha256(made_of.encode()).hexdigest()


def _checks(at: Resources, day: datetime.date) -> Status:
    """Return the worse verdict of the day's two suites."""
    verdicts = (at.checks.load("comments", day), at.checks.load("scores", day))
    statuses = {verdict.status for verdict in verdicts if verdict is not None}
    return next((status for status in _WORST if status in statuses), "passed")


def _tables(at: Resources, day: datetime.date, window: Window, facts: DayFacts) -> DayTables:
    def read(table: str, of: datetime.date) -> pd.DataFrame:
        return pd.DataFrame(at.lake.table(table, of).to_pandas())

    estimates = read("window_measurements", day)
    return DayTables(
        measurements=read("measurements", day),
        window=estimates,
        day_before=read("measurements", day - _ONE_DAY),
        window_before=read("window_measurements", day - _ONE_DAY),
        drift=_drift(at, day),
        what_if=_what_if(at, window, estimates, facts) if len(estimates) else None,
        moderator_error=read("moderator_error", day),
    )


def _drift(at: Resources, day: datetime.date) -> pd.DataFrame:
    """Return the drift of the days of the window that ends with `day`."""
    frames = [pd.DataFrame(at.lake.table("drift", past).to_pandas()) for past in at.window(day)]
    return pd.concat(frames, ignore_index=True)


def _what_if(
    at: Resources, window: Window, estimates: pd.DataFrame, facts: DayFacts
) -> pd.DataFrame:
    """Return what other settings would bring on a day such as those of the window."""
    comments = [at.lake.count("scores", day, role="champion") for day in window.days]
    return what_if(
        estimates,
        comments_per_day=float(np.mean(comments)),
        seconds_per_decision=seconds_per_decision(at.lake, window.days),
        strategy=facts.strategy,
        review_fraction=facts.review_fraction,
    )


def _pictures(at: Resources, day: datetime.date, scores: DayScores) -> DayPictures:
    if not len(scores.prob):  # an empty day: there is nothing to draw
        return DayPictures()
    curve = at.lake.table("reliability", day).to_pandas()
    return DayPictures(
        scores=_histogram(at, day, scores), reliability=curve if len(curve) else None
    )


def _histogram(at: Resources, day: datetime.date, scores: DayScores) -> ScoreHistogram:
    """Return the day's scores beside those of its references that the same model scored."""
    settings = at.settings
    fixed = drift.fixed_days(
        at.lake, day, first=settings.reference_first_day, days=settings.reference_days
    )
    found = drift.references(at.lake, at.checks, day, fixed=fixed, thresholds=at.thresholds)
    references = {each.name: _scores_of(each, scores.model_version) for each in found}
    return ScoreHistogram.of(
        scores.prob,
        threshold=scores.threshold,
        bins=_SHOWN_BINS,
        references={name: counts for name, counts in references.items() if counts.any()},
    )


def _scores_of(reference: Reference, model_version: str) -> Counts:
    """Return how many scores (B,) of one model the reference has in each bin, as profiled."""
    counts = pooled(reference.scored_by(model_version)).scores["prob"]
    coarse: Counts = counts.reshape(_SHOWN_BINS, BINS // _SHOWN_BINS).sum(axis=1)
    return coarse
