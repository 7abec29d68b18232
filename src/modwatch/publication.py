"""What MLflow is told about a day: facts, estimates, pictures; gathered from the lake."""

import datetime

from modwatch import tables
from modwatch.metrics.calibration import reliability_curve
from modwatch.metrics.sample import LabelledDay, Sample
from modwatch.quality.verdict import Status
from modwatch.tables import DayScores
from modwatch.tracking import runs, timeline
from modwatch.tracking.facts import DayFacts, DayPictures, ScoreHistogram
from modwatch.wiring import Wiring

_WORST: tuple[Status, ...] = ("rejected", "warned", "passed")


def stale_days(at: Wiring, days: list[datetime.date]) -> list[datetime.date]:
    """Return those of `days` whose measurement MLflow does not show yet."""
    shown = runs.published_digests(at.settings.mlflow_url)
    wanted = {day: _digest(at, day) for day in days}
    return [day for day, digest in wanted.items() if digest and shown.get(day) != digest]


def publish(at: Wiring, day: datetime.date) -> str:
    """Publish the measurement of `day` in place of an earlier one; return the run's id."""
    scores = tables.day_scores(at.lake, day)
    return runs.publish_day(
        day,
        measurements=at.lake.table("measurements", day).to_pandas(),
        facts=_facts(at, day, scores),
        pictures=_pictures(tables.labelled_day(at.lake, day, scores), scores),
        check_page=at.checks.read_page(day),
        tracking_uri=at.settings.mlflow_url,
    )


def publish_timeline(at: Wiring) -> None:
    """Bring the long-lived run up to date with the days' runs; nothing when there is none."""
    rows = runs.published_days(at.settings.mlflow_url)
    if rows:
        timeline.publish_timeline(rows, tracking_uri=at.settings.mlflow_url)


def _facts(at: Wiring, day: datetime.date, scores: DayScores) -> DayFacts:
    design = at.lake.table("routing_design", day, columns=["strategy", "review_fraction"])
    return DayFacts(
        comments=len(scores.prob),
        quarantined=at.lake.count("quarantine", day),
        flagged=int(scores.flagged.sum()),
        routed=at.lake.count("routed", day),
        labelled=at.lake.count("labels", day),
        model_version=scores.model_version,
        strategy=design.column("strategy")[0].as_py(),
        review_fraction=design.column("review_fraction")[0].as_py(),
        checks=_checks(at, day),
        queue_url=at.settings.console_url,
        airflow_run_url=f"{at.settings.airflow_url}/dags/score_comments/runs",
        digest=_digest(at, day) or "",
    )


def _digest(at: Wiring, day: datetime.date) -> str | None:
    """Return what a day's run is made of: its measurement and its checks; None if unmeasured."""
    measured = tables.measured_digest(at.lake, day)
    return measured and f"{measured[:16]}-{_checks(at, day)}"


def _checks(at: Wiring, day: datetime.date) -> Status:
    """Return the worse verdict of the day's two suites."""
    verdicts = (at.checks.load("comments", day), at.checks.load("scores", day))
    statuses = {verdict.status for verdict in verdicts if verdict is not None}
    return next((status for status in _WORST if status in statuses), "passed")


def _pictures(labelled: LabelledDay, scores: DayScores) -> DayPictures:
    if not len(scores.prob):  # an empty day: there is nothing to draw
        return DayPictures()
    histogram = ScoreHistogram.of(scores.prob, threshold=scores.threshold)
    sample = Sample([labelled])
    if not len(sample.label):
        return DayPictures(scores=histogram)
    curve = reliability_curve(sample.label, sample.prob, bins=10, weight=sample.weight)
    return DayPictures(scores=histogram, reliability=curve)
