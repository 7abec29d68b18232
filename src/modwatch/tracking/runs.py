"""One MLflow run a day. Publishing a day again replaces its run."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import date, timedelta
from typing import TYPE_CHECKING

from modwatch.alerts.messages import alert_tag
from modwatch.tracking.client import connect, experiment_id, retire_others, runs_tagged
from modwatch.tracking.description import describe_day
from modwatch.tracking.effects import drift_status
from modwatch.tracking.facts import DayFacts, DayPictures, DayTables
from modwatch.tracking.keys import KEYS, checked, day_metrics, known
from modwatch.tracking.links import artifact_url
from modwatch.tracking.points import log_points, midnight_ms, points_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from mlflow import MlflowClient
    from mlflow.entities import Run

_log = logging.getLogger(__name__)

_KIND = {"kind": "day"}
_NOTE = "mlflow.note.content"  # MLflow shows this tag as the description
_CHECK_PAGE = "checks.html"
_ONE_DAY = timedelta(days=1)


def publish_day(
    day: date,
    *,
    tables: DayTables,
    facts: DayFacts,
    pictures: DayPictures,
    check_page: str | None = None,
    tracking_uri: str,
    experiment: str = "modwatch",
) -> str:
    """Return the id of the day's run, which from now on is the only one of that day.

    The run is named and tagged with the day. The new run is written whole before the old one is
    deleted: whoever looks sees the one or the other. After a crash in between, the next call
    removes what was left.

    Metrics are those of `keys.day_metrics`; everything else goes to the artifacts `tables/` and
    `figures/`, and the HTML of `check_page` to `checks.html`.

    Raises:
        TrackingError: MLflow cannot be reached, or another process replaced the run meanwhile.
        MetricInputError: a column of a table is missing.
    """
    tags = _KIND | {"day": day.isoformat()}
    from modwatch.tracking.figures import day_figures

    tables = _checked(tables)
    metrics = day_metrics(tables, facts)
    with connect(tracking_uri) as client:
        in_experiment = experiment_id(client, experiment)
        run_id = start_day(client, in_experiment, day)
        if check_page is not None:
            client.log_text(run_id, check_page, _CHECK_PAGE)
            if tracking_uri.startswith(("http://", "https://")):  # else there are no pages
                page = artifact_url(tracking_uri, in_experiment, run_id, _CHECK_PAGE)
                facts = replace(facts, check_page_url=facts.check_page_url or page)
        _log_words(client, run_id, day, tables, facts)
        log_points(client, run_id, points_of({day: metrics}, first=day), first=day)
        _log_tables(client, run_id, tables)
        _log_figures(client, run_id, day_figures(day, tables, facts, pictures))
        client.set_terminated(run_id, end_time=midnight_ms(day + _ONE_DAY))
        retire_others(client, in_experiment, tags, keep=run_id)
    _log.info(
        "The day's run in MLflow is replaced.",
        extra={"event": "tracking.day_published", "dt": day.isoformat(), "keys": len(metrics)},
    )
    return run_id


def _checked(tables: DayTables) -> DayTables:
    """Return the tables with plain floats in their estimates."""
    return replace(
        tables,
        measurements=checked(tables.measurements),
        window=checked(tables.window),
        day_before=checked(tables.day_before),
        window_before=checked(tables.window_before),
    )


def published_days(tracking_uri: str, experiment: str = "modwatch") -> dict[date, dict[str, float]]:
    """Return the metrics of every finished day's run, by day: rows for `publish_timeline`.

    Metrics that are none of `keys.KEYS` any more, in runs of an earlier version, are left out.

    Raises:
        TrackingError: MLflow cannot be reached.
    """
    return {
        day: {key: value for key, value in run.data.metrics.items() if key in KEYS}
        for day, run in _finished(tracking_uri, experiment)
    }


def published_digests(tracking_uri: str, experiment: str = "modwatch") -> dict[date, str]:
    """Return what every finished day's run was made of, `DayFacts.digest`, by day.

    Raises:
        TrackingError: MLflow cannot be reached.
    """
    return {day: run.data.tags["digest"] for day, run in _finished(tracking_uri, experiment)}


def _finished(tracking_uri: str, experiment: str) -> list[tuple[date, "Run"]]:
    """Return the finished days' runs; of two of a day, as after a crash, the later one last."""
    with connect(tracking_uri) as client:
        runs = runs_tagged(client, experiment_id(client, experiment), _KIND)
    finished = [run for run in runs if run.info.status == "FINISHED"]
    finished.sort(key=lambda run: (run.data.tags["day"], run.data.tags.get("published_at", "")))
    return [(date.fromisoformat(run.data.tags["day"]), run) for run in finished]


def start_day(client: "MlflowClient", experiment: str, day: date) -> str:
    """Return the id of a new, unfinished run of the day.

    It starts at the day's midnight, so that MLflow lists the days in order of day, whenever they
    were computed.
    """
    tags = _KIND | {"day": day.isoformat()}
    run = client.create_run(
        experiment, start_time=midnight_ms(day), tags=tags, run_name=day.isoformat()
    )
    return str(run.info.run_id)


def _log_words(
    client: "MlflowClient", run_id: str, day: date, tables: DayTables, facts: DayFacts
) -> None:
    from mlflow.entities import Param, RunTag

    tags = _status(tables, facts) | {_NOTE: describe_day(day, tables, facts)}
    params = {
        "model_version": facts.model_version,
        "strategy": facts.strategy,
        "review_fraction": repr(facts.review_fraction),
    }
    client.log_batch(
        run_id,
        params=[Param(*item) for item in params.items()],
        tags=[RunTag(*item) for item in tags.items()],
    )


def _status(tables: DayTables, facts: DayFacts) -> dict[str, str]:
    """Return the tags that an ops engineer sorts and filters the list of runs by."""
    missing = int((~known(tables.measurements)).sum())
    tags = {
        "digest": facts.digest,
        "checks": facts.checks,
        "labels": "complete" if facts.labelled >= facts.routed else "incomplete",
        "estimates": f"{missing} insufficient" if missing else "ok",
        "window": f"{facts.pooled_days} of {facts.window_days} days",
        "drift": drift_status(tables.drift)[0],
        "alerts": alert_tag(facts.alerts),
    }
    if facts.published_at is not None:
        tags["published_at"] = facts.published_at.isoformat(timespec="seconds")
    return tags


def _log_tables(client: "MlflowClient", run_id: str, tables: DayTables) -> None:
    """Log every table that has rows, as JSON for MLflow's table view and as CSV."""
    from pandas.api.types import is_numeric_dtype

    drift = tables.drift[tables.drift["dt"] == tables.drift["dt"].max()]
    for name, table in {
        "measurements": tables.measurements,
        "window_measurements": tables.window,
        "drift": drift,
        "what_if": tables.what_if,
        "moderator_error": tables.moderator_error,
    }.items():
        if table is not None and (len(table) or name == "measurements"):
            # log_table looks for columns of objects in a way that pandas deprecated for strings.
            words = [column for column in table if not is_numeric_dtype(table[column])]
            shown = table.astype(dict.fromkeys(words, "str")).astype(dict.fromkeys(words, object))
            client.log_table(run_id, shown, f"tables/{name}.json")
            client.log_text(run_id, table.to_csv(index=False), f"tables/{name}.csv")


def _log_figures(client: "MlflowClient", run_id: str, figures: Mapping[str, "Figure"]) -> None:
    from modwatch.tracking.style import DPI

    for name, figure in figures.items():
        client.log_figure(run_id, figure, f"figures/{name}.png", save_kwargs={"dpi": DPI})
