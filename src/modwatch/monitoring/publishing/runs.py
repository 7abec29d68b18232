"""The runs in MLflow that are published whole: one per day and per report.

Publishing one again replaces its run.
"""

import json
import logging
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

import pandas as pd
from pandas.api.types import is_numeric_dtype

from modwatch.common.cells import neutral_csv
from modwatch.common.mlflow_client import (
    AUDIT_EXPERIMENT,
    DESCRIPTION_TAG,
    artifact_url,
    connect,
    experiment_id,
    is_whole,
    log_figures,
    log_points,
    log_texts,
    points_of,
    replacing_run,
    runs_tagged,
)
from modwatch.monitoring.publishing.description import (
    day_tags,
    describe_day,
    describe_unmeasured,
    unmeasured_tags,
)
from modwatch.monitoring.publishing.effects import drift_status
from modwatch.monitoring.publishing.facts import DayFacts, DayTables, UnmeasuredDay
from modwatch.monitoring.publishing.history import PublishedAudit, PublishedDay
from modwatch.monitoring.publishing.keys import (
    INTERVALS_TAG,
    KEYS,
    LABELS_TAG,
    Interval,
    check_key_count,
    checked_tables,
    day_intervals,
    day_labels,
    day_metrics,
    deployed_estimates,
)
from modwatch.monitoring.publishing.status import day_status, is_bad

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from mlflow import MlflowClient
    from mlflow.entities import Run

_log = logging.getLogger(__name__)

_DAY = {"kind": "day"}

_CHECK_PAGE = "checks.html"


def publish_day(
    day: date,
    *,
    tables: DayTables,
    facts: DayFacts,
    check_page: str | None = None,
    tracking_uri: str,
    experiment: str = "modwatch",
) -> str:
    """Publish the run of a day in place of an earlier one; return its id.

    The run is named and tagged with the day. Its metrics are those of `keys.day_metrics`;
    everything else goes to the artifacts `tables/` and `figures/`, and the HTML of `check_page` to
    `checks.html`. The run of a day with a critical alert, or whose validation failed since it was
    measured, is marked failed.

    Raises:
        TrackingError: MLflow cannot be reached, or another process replaced the run meanwhile.
        MetricInputError: a column of a table is missing.
    """
    # Imports matplotlib, which takes a second: not when a DAG file is parsed.
    from modwatch.monitoring.publishing.figures import day_figures

    tables = checked_tables(tables)
    estimates = deployed_estimates(tables, facts)
    metrics = day_metrics(estimates, tables.drift, facts)
    drift = drift_status(tables.drift)
    figures = day_figures(day, tables, facts)
    params = {
        "model_version": facts.model_version,
        "strategy": facts.strategy,
        "review_fraction": repr(facts.review_fraction),
    }
    with connect(tracking_uri) as client:
        in_experiment = experiment_id(client, experiment)
        bad = is_bad(day_status(facts.checks, facts.alerts))
        with _replacing_day(client, in_experiment, day, failed=bad) as run_id:
            log_points(client, run_id, points_of({day: metrics}, first=day), first=day)
            page = _log_check_page(client, run_id, check_page, (tracking_uri, in_experiment))
            facts = replace(facts, check_page_url=facts.check_page_url or page)
            more = {
                **day_tags(facts, estimates, drift[0]),
                INTERVALS_TAG: _as_json(day_intervals(estimates, tables.drift)),
                LABELS_TAG: json.dumps(day_labels(estimates)),
                DESCRIPTION_TAG: describe_day(day, facts, estimates, drift, tables),
            }
            log_texts(client, run_id, params=params, tags=more)
            _log_tables(client, run_id, tables)
            log_figures(client, run_id, figures)
    _log.info(
        "The day's run in MLflow is replaced.",
        extra={"event": "tracking.day_published", "dt": day.isoformat(), "keys": len(metrics)},
    )
    return run_id


def publish_unmeasured(
    day: UnmeasuredDay,
    *,
    check_page: str | None = None,
    tracking_uri: str,
    experiment: str = "modwatch",
) -> str:
    """Publish the run of a day that was rejected or failed in place of an earlier one.

    It is marked failed, and has no metric but `day/alerts`. Returns the id of the run.

    Raises:
        TrackingError: MLflow cannot be reached, or another process replaced the run meanwhile.
    """
    metrics = {day.day: {"day/alerts": float(len(day.alerts))}}
    with connect(tracking_uri) as client:
        in_experiment = experiment_id(client, experiment)
        with _replacing_day(client, in_experiment, day.day, failed=True) as run_id:
            log_points(client, run_id, points_of(metrics, first=day.day), first=day.day)
            page = _log_check_page(client, run_id, check_page, (tracking_uri, in_experiment))
            day = replace(day, check_page_url=day.check_page_url or page)
            tags = unmeasured_tags(day) | {DESCRIPTION_TAG: describe_unmeasured(day)}
            log_texts(client, run_id, params={}, tags=tags)
    _log.warning(
        "A day without measurements is reported in MLflow.",
        extra={"event": "tracking.unmeasured_day_published", "dt": str(day.day)},
    )
    return run_id


def _replacing_day(
    client: "MlflowClient", experiment: str, day: date, *, failed: bool
) -> AbstractContextManager[str]:
    tags = _DAY | {"day": day.isoformat()}
    return replacing_run(client, experiment, tags, name=tags["day"], day=day, failed=failed)


def _log_check_page(
    client: "MlflowClient", run_id: str, html: str | None, at: tuple[str, str]
) -> str | None:
    """Log the validation page, if there is one; return its URL `at` that MLflow and experiment."""
    if html is None:
        return None
    client.log_text(run_id, html, _CHECK_PAGE)
    if not at[0].startswith(("http://", "https://")):  # a folder, which has no pages
        return None
    return artifact_url(*at, run_id, _CHECK_PAGE)


def _as_json(intervals: Mapping[str, Interval]) -> str:
    """Return intervals as JSON, in digits that say all about a 95 % interval.

    >>> _as_json({"model/accuracy": (0.91234567, 0.95)})
    '{"model/accuracy":[0.912346,0.95]}'
    """
    rounded = {key: [float(f"{end:.6g}") for end in ends] for key, ends in intervals.items()}
    return json.dumps(rounded, separators=(",", ":"))


def published_days(tracking_uri: str, experiment: str = "modwatch") -> dict[date, dict[str, float]]:
    """Return the metrics of every whole day's run, by day: rows for `publish_timeline`.

    Keys of earlier versions that are no longer in `keys.KEYS` are skipped.

    Raises:
        TrackingError: MLflow cannot be reached.
    """
    return {
        day: {key: value for key, value in run.data.metrics.items() if key in KEYS}
        for day, run in _whole(tracking_uri, experiment)
    }


def published_history(tracking_uri: str, experiment: str = "modwatch") -> list[PublishedDay]:
    """Return every day's whole run, in the order of the days, one a day.

    Raises:
        TrackingError: MLflow cannot be reached.
    """
    days = {day: PublishedDay.of(run) for day, run in _whole(tracking_uri, experiment)}
    return [days[day] for day in sorted(days)]


def latest_audit(tracking_uri: str, experiment: str = AUDIT_EXPERIMENT) -> PublishedAudit | None:
    """Return the published audit whose period ended last; None before the first.

    Raises:
        TrackingError: MLflow cannot be reached.
    """
    with connect(tracking_uri) as client:
        runs = runs_tagged(client, experiment_id(client, experiment), {"kind": "audit"})
    whole = [run for run in runs if is_whole(run)]
    latest = max(whole, key=lambda run: int(run.info.start_time), default=None)
    return None if latest is None else PublishedAudit.of(latest)


def published_digests(tracking_uri: str, experiment: str = "modwatch") -> dict[date, str]:
    """Return the digest of every whole day's run, by day.

    Raises:
        TrackingError: MLflow cannot be reached.
    """
    return {day: run.data.tags["digest"] for day, run in _whole(tracking_uri, experiment)}


def _whole(tracking_uri: str, experiment: str) -> list[tuple[date, "Run"]]:
    """Return the days' runs that are whole; there may be two of a day after a crash."""
    with connect(tracking_uri) as client:
        runs = runs_tagged(client, experiment_id(client, experiment), _DAY)
    return [(date.fromisoformat(run.data.tags["day"]), run) for run in runs if is_whole(run)]


def _log_tables(client: "MlflowClient", run_id: str, tables: DayTables) -> None:
    """Log every table that has rows, as JSON for MLflow's table view and as CSV."""
    drift = tables.drift[tables.drift["dt"] == tables.drift["dt"].max()]
    for name, table in {
        "measurements": tables.measurements,
        "window_measurements": tables.window,
        "drift": drift,
        "what_if": tables.what_if,
        "label_errors": tables.label_errors,
        "challenger": tables.challenger,
        "comment_groups": tables.comment_groups,
    }.items():
        if table is not None and (len(table) or name == "measurements"):
            # log_table detects columns of objects in a way that pandas deprecated for strings.
            texts = [column for column in table if not is_numeric_dtype(table[column])]
            shown = table.astype(dict.fromkeys(texts, "str")).astype(dict.fromkeys(texts, object))
            client.log_table(run_id, shown, f"tables/{name}.json")
            client.log_text(run_id, neutral_csv(table), f"tables/{name}.csv")


def report_published(name: str, *, tracking_uri: str, experiment: str) -> bool:
    """Return whether `publish_report` has published a report of that name, whole.

    Raises:
        TrackingError: MLflow cannot be reached.
    """
    with connect(tracking_uri) as client:
        runs = runs_tagged(client, experiment_id(client, experiment), _report_tags(name))
        return any(run.info.status == "FINISHED" for run in runs)


def _report_tags(name: str) -> dict[str, str]:
    return {"kind": "report", "report": name}


def publish_report(
    name: str,
    *,
    day: date,
    metrics: Mapping[str, float],
    tags: Mapping[str, str],
    description: str,
    page: str,
    tables: Mapping[str, pd.DataFrame],
    figures: "Mapping[str, Figure]",
    tracking_uri: str,
    experiment: str,
) -> str:
    """Publish the run of a report about annotations in place of an earlier one; return its id.

    The run is dated and tagged with `day`. `page` (HTML) becomes `report.html`, the tables CSV
    files, the matplotlib figures PNG files.

    Raises:
        TrackingError: MLflow cannot be reached, or another process replaced the run meanwhile.
        MetricInputError: there are too many metrics.
    """
    check_key_count(metrics)
    named = _report_tags(name)
    with connect(tracking_uri) as client:
        in_experiment = experiment_id(client, experiment)
        with replacing_run(client, in_experiment, named, name=name, day=day) as run_id:
            more = {"day": day.isoformat(), DESCRIPTION_TAG: description}
            log_texts(client, run_id, params={}, tags={**tags, **more})
            log_points(client, run_id, points_of({day: dict(metrics)}, first=day), first=day)
            client.log_text(run_id, page, "report.html")
            for title, table in tables.items():
                client.log_text(run_id, neutral_csv(table), f"tables/{title}.csv")
            log_figures(client, run_id, figures)
    return run_id
