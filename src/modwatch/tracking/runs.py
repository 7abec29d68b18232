"""One MLflow run per day. Publishing a day again replaces its run."""

import logging
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

from pandas.api.types import is_numeric_dtype

from modwatch.tracking.client import (
    DESCRIPTION_TAG,
    connect,
    experiment_id,
    log_points,
    log_texts,
    points_of,
    replacing_run,
    runs_tagged,
)
from modwatch.tracking.description import day_tags, describe_day
from modwatch.tracking.effects import drift_status
from modwatch.tracking.facts import DayFacts, DayTables
from modwatch.tracking.keys import KEYS, checked_tables, day_metrics, deployed_estimates
from modwatch.tracking.links import artifact_url

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

_log = logging.getLogger(__name__)

_KIND = {"kind": "day"}
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
    `checks.html`.

    Raises:
        TrackingError: MLflow cannot be reached, or another process replaced the run meanwhile.
        MetricInputError: a column of a table is missing.
    """
    # Imports matplotlib, which takes a second: not when a DAG file is parsed.
    from modwatch.tracking.figures import day_figures
    from modwatch.tracking.figures.style import DPI

    tables = checked_tables(tables)
    estimates = deployed_estimates(tables, facts)
    metrics = day_metrics(estimates, tables.drift, facts)
    drift = drift_status(tables.drift)
    figures = day_figures(day, tables, facts)
    tags = _KIND | {"day": day.isoformat()}
    params = {
        "model_version": facts.model_version,
        "strategy": facts.strategy,
        "review_fraction": repr(facts.review_fraction),
    }
    with connect(tracking_uri) as client:
        in_experiment = experiment_id(client, experiment)
        with replacing_run(client, in_experiment, tags, name=tags["day"], day=day) as run_id:
            log_points(client, run_id, points_of({day: metrics}, first=day), first=day)
            if check_page is not None:
                client.log_text(run_id, check_page, _CHECK_PAGE)
                if tracking_uri.startswith(("http://", "https://")):  # else there are no pages
                    page = artifact_url(tracking_uri, in_experiment, run_id, _CHECK_PAGE)
                    facts = replace(facts, check_page_url=facts.check_page_url or page)
            text = describe_day(day, facts, estimates, drift)
            more = day_tags(facts, estimates, drift[0]) | {DESCRIPTION_TAG: text}
            log_texts(client, run_id, params=params, tags=more)
            _log_tables(client, run_id, tables)
            for name, figure in figures.items():
                client.log_figure(run_id, figure, f"figures/{name}.png", save_kwargs={"dpi": DPI})
    _log.info(
        "The day's run in MLflow is replaced.",
        extra={"event": "tracking.day_published", "dt": day.isoformat(), "keys": len(metrics)},
    )
    return run_id


def published_days(tracking_uri: str, experiment: str = "modwatch") -> dict[date, dict[str, float]]:
    """Return the metrics of every finished day's run, by day: rows for `publish_timeline`.

    Keys of earlier versions that are no longer in `keys.KEYS` are skipped.

    Raises:
        TrackingError: MLflow cannot be reached.
    """
    return {
        day: {key: value for key, value in run.data.metrics.items() if key in KEYS}
        for day, run in _finished(tracking_uri, experiment)
    }


def published_digests(tracking_uri: str, experiment: str = "modwatch") -> dict[date, str]:
    """Return `DayFacts.digest` of every finished day's run, by day.

    Raises:
        TrackingError: MLflow cannot be reached.
    """
    return {day: run.data.tags["digest"] for day, run in _finished(tracking_uri, experiment)}


def _finished(tracking_uri: str, experiment: str) -> list[tuple[date, "Run"]]:
    """Return the finished days' runs; there may be two of a day after a crash."""
    with connect(tracking_uri) as client:
        runs = runs_tagged(client, experiment_id(client, experiment), _KIND)
    finished = [run for run in runs if run.info.status == "FINISHED"]
    return [(date.fromisoformat(run.data.tags["day"]), run) for run in finished]


def _log_tables(client: "MlflowClient", run_id: str, tables: DayTables) -> None:
    """Log every table that has rows, as JSON for MLflow's table view and as CSV."""
    drift = tables.drift[tables.drift["dt"] == tables.drift["dt"].max()]
    for name, table in {
        "measurements": tables.measurements,
        "window_measurements": tables.window,
        "drift": drift,
        "what_if": tables.what_if,
        "moderator_error": tables.moderator_error,
    }.items():
        if table is not None and (len(table) or name == "measurements"):
            # log_table detects columns of objects in a way that pandas deprecated for strings.
            texts = [column for column in table if not is_numeric_dtype(table[column])]
            shown = table.astype(dict.fromkeys(texts, "str")).astype(dict.fromkeys(texts, object))
            client.log_table(run_id, shown, f"tables/{name}.json")
            client.log_text(run_id, table.to_csv(index=False), f"tables/{name}.csv")
