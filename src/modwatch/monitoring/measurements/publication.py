"""Gathers what MLflow shows of a day from the lake, and publishes it."""

import datetime
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from modwatch.common.addresses import day_url
from modwatch.data.lake.delta import Lake
from modwatch.data.validation.result import Status, ValidationResult
from modwatch.data.validation.store import CheckStore
from modwatch.monitoring.incidents.evaluation import active_alerts
from modwatch.monitoring.incidents.messages.incidents import ActiveAlert
from modwatch.monitoring.incidents.rules import AlertRule, in_words
from modwatch.monitoring.measurements.windows import seconds_per_decision, windows
from modwatch.monitoring.publishing import runs, timeline
from modwatch.monitoring.publishing.facts import (
    DayFacts,
    DayTables,
    ScoreHistogram,
    UnmeasuredDay,
)
from modwatch.monitoring.publishing.groups import GROUP_EXPERIMENT, group_points
from modwatch.monitoring.publishing.history import thresholds
from modwatch.monitoring.publishing.timeline_page import timeline_page
from modwatch.monitoring.publishing.view import days_url
from modwatch.statistics.collaboration.what_if import what_if_table
from modwatch.statistics.drift.day_comparison import Reference
from modwatch.statistics.drift.profile import BINS, pooled

_SCORES = ["prob", "flagged", "model_variance"]
_WORST: tuple[Status, ...] = ("rejected", "warned", "passed")

#: Bins of the published histogram; a profile has twenty times as many.
_HISTOGRAM_BINS = 50

Days = Sequence[datetime.date]

#: What was not done on a day of which these tables are empty; the first of them counts.
_MISSING = {
    "landed": "no comments were ingested",
    "comments": "the comments were not validated",
    "scores": "the comments were not scored",
    "routed": "nothing was routed",
}


@dataclass(frozen=True, kw_only=True)
class _Content:
    """What decides whether the run of a day is outdated."""

    tables: DayTables
    validation: Status
    alerts: tuple[ActiveAlert, ...]

    @property
    def digest(self) -> str:
        """Hash of the content; the queue metrics of earlier days, which change hourly, left out."""
        estimates, drift = self.tables.measurements, self.tables.drift
        measured = (
            *(self.tables.day_before, self.tables.window_before),
            *(estimates, self.tables.window),
        )
        digests = [table["labels_digest"].iloc[0] if len(table) else None for table in measured]
        if self.tables.challenger is not None and len(self.tables.challenger):
            digests.append(self.tables.challenger["digest"].iloc[0])
        groups = self.tables.comment_groups
        if groups is not None:
            digests.append(hashlib.sha256(groups.to_csv(index=False).encode()).hexdigest())
        shown = drift[(drift["feature"] != "queue") | (drift["dt"] == estimates["dt"].iloc[0])]
        rows = sorted(repr(row) for row in shown.to_dict("records"))
        content = repr((digests, self.validation, rows, self.alerts))
        return hashlib.sha256(content.encode()).hexdigest()


def stale_days(
    lake: Lake, checks: CheckStore, days: Mapping[datetime.date, Days], *, mlflow_url: str
) -> list[datetime.date]:
    """Return the measured days whose run in MLflow is missing or outdated.

    `days` are the days to look at, each with the days of the window that ends with it.
    """
    published = runs.published_digests(mlflow_url)
    contents = {day: _read(lake, checks, day, window) for day, window in days.items()}
    return [
        day
        for day, content in contents.items()
        if len(content.tables.measurements) and content.digest != published.get(day)
    ]


def publish(
    lake: Lake,
    checks: CheckStore,
    day: datetime.date,
    *,
    window: Days,
    references: Sequence[Reference],
    mlflow_url: str,
    console_url: str,
    airflow_url: str,
) -> str:
    """Publish the measurement of `day` in place of an earlier one; return the run's id.

    `window` are the days of the window that ends with `day`; `references` what its scores are
    compared with.
    """
    content = _read(lake, checks, day, window)
    design = lake.table("routing_design", day, columns=["strategy", "review_fraction"])
    # Not `lake.day_scores`, which also loads the ids of all comments.
    scores = lake.table("scores", day, columns=_SCORES, role="champion")
    models = lake.read("scores", day, columns=["threshold", "model_version"], role="champion")
    model = next((batch.slice(0, 1).to_pylist()[0] for batch in models if len(batch)), None)
    curve = lake.table("reliability", day).to_pandas()
    (measured,) = windows(lake, [window])
    facts = DayFacts(
        comments=len(scores),
        quarantined=lake.count("quarantine", day),
        flagged=int(scores.column("flagged").to_numpy().sum()),
        routed=lake.count("routed", day),
        labelled=lake.count("labels", day),
        model_version=model["model_version"] if model else "",
        deterministic=bool(len(scores)) and not scores.column("model_variance").to_numpy().any(),
        **design.slice(0, 1).to_pylist()[0],
        checks=content.validation,
        pooled_days=len(measured.days),
        window_days=len(window),
        queue_url=console_url,
        alerts=content.alerts,
        airflow_run_url=day_url(airflow_url, day, "airflow"),
        digest=content.digest,
    )
    histogram = model and _histogram(scores.column("prob").to_numpy(), references, **model)
    read = replace(
        content.tables,
        what_if=_what_if(lake, measured.days, content.tables.window, facts),
        scores=histogram,
        reliability=curve if model and len(curve) else None,
    )
    return runs.publish_day(
        day, tables=read, facts=facts, check_page=checks.read_page(day), tracking_uri=mlflow_url
    )


def publish_unmeasured(
    lake: Lake,
    checks: CheckStore,
    days: Days,
    *,
    mlflow_url: str,
    console_url: str,
    airflow_url: str,
) -> int:
    """Publish the days that were rejected or failed, as far as that is news; return how many.

    `days` end with the day of the run. Days before the first that has ever been ingested did not
    fail.
    """
    begun = min([*checks.days()[:1], *lake.days("landed")[:1], days[-1]])
    found = (_unmeasured(lake, checks, day) for day in days if day >= begun)
    published = runs.published_digests(mlflow_url)
    new = [day for day in found if day is not None and day.digest != published.get(day.day)]
    for day in new:
        run = day_url(airflow_url, day.day, "airflow")
        linked = replace(day, queue_url=console_url, airflow_run_url=run)
        page = checks.read_page(day.day)
        runs.publish_unmeasured(linked, check_page=page, tracking_uri=mlflow_url)
    return len(new)


def _unmeasured(lake: Lake, checks: CheckStore, day: datetime.date) -> UnmeasuredDay | None:
    """Return what is wrong with a day that has no measurements; None if it has, or will have."""
    if lake.count("measurements", day):
        return None
    results = [checks.load("comments", day), checks.load("scores", day)]
    rejected = [each for each in results if each is not None and each.rejected]
    missing = next((text for name, text in _MISSING.items() if not lake.count(name, day)), None)
    if not rejected and missing is None:
        return None
    return UnmeasuredDay(
        day=day,
        status="rejected" if rejected else "failed",
        reason=_rules(rejected[0]) if rejected else f"{missing}; open the Airflow run",
        landed=lake.count("landed", day),
        alerts=active_alerts(lake.table("alerts", day)),
    )


def _rules(result: ValidationResult) -> str:
    """Return the rules that failed a day, and what they found, in Markdown."""
    failed = (rule for rule in result.failed_of("day") if rule.severity == "critical")
    return "; ".join(
        f"{in_words(rule.name)}: {rule.observed}, allowed: {rule.allowed}" for rule in failed
    )


def publish_timeline(mlflow_url: str, rules: Sequence[AlertRule] = ()) -> None:
    """Bring the timeline up to date with the days' runs, and the saved view of them.

    MLflow charts what is counted; the page has the estimates, the bounds of the alert `rules`, the
    models and the incidents. Does nothing when there are no days.
    """
    days = runs.published_history(mlflow_url)
    if days:
        days_url(mlflow_url)
        rows = {day.day: day.counted for day in days}
        page = timeline_page(days, thresholds(rules))
        timeline.publish_timeline(rows, page=page, tracking_uri=mlflow_url)


def publish_groups(lake: Lake, mlflow_url: str) -> None:
    """Bring the charts of groups of comments up to date; nothing when there are none."""
    days = lake.days("comment_groups")
    if not days:
        return
    batches = lake.read_between("comment_groups", days[0], days[-1])
    table = pd.concat([batch.to_pandas() for batch in batches], ignore_index=True)
    if rows := group_points(table):
        timeline.publish_timeline(rows, tracking_uri=mlflow_url, experiment=GROUP_EXPERIMENT)


def _read(lake: Lake, checks: CheckStore, day: datetime.date, window: Days) -> _Content:
    results = (checks.load("comments", day), checks.load("scores", day))
    statuses = {result.status for result in results if result is not None}
    status: Status = next((status for status in _WORST if status in statuses), "passed")
    alerts = active_alerts(lake.table("alerts", day))
    before = day - datetime.timedelta(days=1)
    tables = DayTables(
        measurements=lake.table("measurements", day).to_pandas(),
        window=lake.table("window_measurements", day).to_pandas(),
        day_before=lake.table("measurements", before).to_pandas(),
        window_before=lake.table("window_measurements", before).to_pandas(),
        drift=pd.concat(
            [lake.table("drift", past).to_pandas() for past in window], ignore_index=True
        ),
        label_errors=lake.table("label_errors", day).to_pandas(),
        challenger=lake.table("challenger", day).to_pandas(),
        comment_groups=lake.table("comment_groups", day).to_pandas(),
    )
    return _Content(tables=tables, validation=status, alerts=alerts)


def _what_if(
    lake: Lake, days: Days, estimates: pd.DataFrame, facts: DayFacts
) -> pd.DataFrame | None:
    """Return the outcomes of other settings on an average of `days`, if these are measured."""
    if not len(estimates):
        return None
    comments = [lake.count("scores", day, role="champion") for day in days]
    return what_if_table(
        estimates,
        comments_per_day=float(np.mean(comments)),
        seconds_per_decision=seconds_per_decision(lake, days),
        strategy=facts.strategy,
        review_fraction=facts.review_fraction,
    )


def _histogram(
    prob: NDArray[np.float32],
    references: Sequence[Reference],
    *,
    threshold: float | None,
    model_version: str,
) -> ScoreHistogram:
    """Return the day's scores, and those of its references as far as the same model scored them."""
    counts = {
        each.name: pooled(each.scored_by(model_version))
        .scores["prob"]
        .reshape(_HISTOGRAM_BINS, BINS // _HISTOGRAM_BINS)
        .sum(axis=1)
        for each in references
    }
    return ScoreHistogram.of(
        prob,
        threshold=threshold,
        bins=_HISTOGRAM_BINS,
        references={name: each for name, each in counts.items() if each.any()},
    )
