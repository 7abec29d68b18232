"""The runs in MLflow that are published whole: one per day and per report.

Publishing one again replaces its run.
"""

import logging
from collections.abc import Mapping, Sequence
from datetime import date
from types import MappingProxyType
from typing import TYPE_CHECKING

import pandas as pd
from pandas.api.types import is_numeric_dtype

from modwatch.common.mlflow_client import (
    DESCRIPTION_TAG,
    artifact_url,
    connect,
    experiment_id,
    is_whole,
    log_figures,
    log_points,
    log_texts,
    points_of,
    remove_run,
    replacing_run,
    runs_tagged,
)
from modwatch.common.text import neutral_csv
from modwatch.monitoring.publishing.content import DayTables
from modwatch.monitoring.publishing.days import Day
from modwatch.monitoring.publishing.description import day_tags, describe_day
from modwatch.monitoring.publishing.keys import check_key_count

if TYPE_CHECKING:
    from mlflow import MlflowClient

_log = logging.getLogger(__name__)

#: The experiment of all runs about groups.
GROUP_EXPERIMENT = "modwatch-groups"

_DAY = {"kind": "day"}

_CHECK_PAGE = "checks.html"


def publish_day(
    day: Day,
    tables: DayTables | None,
    *,
    check_page: str | None = None,
    links: Mapping[str, str] = MappingProxyType({}),
    tracking_uri: str,
    experiment: str = "modwatch",
) -> str:
    """Publish the run of a day in place of an earlier one; return its id.

    The run is named and tagged with the day. Its metrics are the day's figures; everything else
    goes to the artifacts `tables/` and `figures/`, and the HTML of `check_page` to `checks.html`.
    `tables` is None for a day without estimates. The run of a day that was rejected or failed,
    or that has a critical alert, is marked failed. `links` are pages to link, by name.

    Raises:
        TrackingError: MLflow cannot be reached, or another process replaced the run meanwhile.
    """
    # Imports matplotlib, which takes a second: not when a DAG file is parsed.
    from modwatch.monitoring.publishing.figures import day_figures

    figures = {} if tables is None else day_figures(tables, day)
    named = _DAY | {"day": day.day.isoformat()}
    metrics = {key: figure.value for key, figure in day.figures.items()}
    with connect(tracking_uri) as client:
        in_experiment = experiment_id(client, experiment)
        with replacing_run(
            client, in_experiment, named, name=named["day"], day=day.day, failed=day.is_bad
        ) as run_id:
            points = points_of({day.day: metrics}, first=day.day)
            log_points(client, run_id, points, first=day.day)
            page = _log_check_page(client, run_id, check_page, (tracking_uri, in_experiment))
            description = describe_day(day, tables, {**page, **links})
            tags = day_tags(day, tables) | {DESCRIPTION_TAG: description}
            log_texts(client, run_id, params=_params(day), tags=tags)
            if tables is not None:
                _log_tables(client, run_id, tables)
                log_figures(client, run_id, figures)
    _log.info(
        "The day's run in MLflow is replaced.",
        extra={"event": "tracking.day_published", "dt": named["day"], "status": day.status},
    )
    return run_id


def outdated_days(
    days: Sequence[Day], *, tracking_uri: str, experiment: str = "modwatch"
) -> list[Day]:
    """Return the days that have not exactly one whole run in MLflow, written from this result.

    Raises:
        TrackingError: MLflow cannot be reached.
    """
    with connect(tracking_uri) as client:
        runs = runs_tagged(client, experiment_id(client, experiment), _DAY)
    written: dict[str, list[str | None]] = {}
    for run in filter(is_whole, runs):
        written.setdefault(run.data.tags["day"], []).append(run.data.tags.get("digest"))
    return [day for day in days if written.get(day.day.isoformat()) != [day.digest]]


def remove_days(
    before: date, *, tracking_uri: str, experiment: str = "modwatch", dry_run: bool = False
) -> int:
    """Remove the runs of earlier days with their files; return how many there are.

    Raises:
        TrackingError: MLflow cannot be reached.
    """
    with connect(tracking_uri) as client:
        runs = runs_tagged(client, experiment_id(client, experiment), _DAY)
        old = [run for run in runs if run.data.tags["day"] < before.isoformat()]
        for run in () if dry_run else old:
            remove_run(client, run)
    return len(old)


def _params(day: Day) -> dict[str, str]:
    if not day.is_measured:
        return {}
    return {
        "model_version": day.model_version,
        "strategy": day.strategy,
        "review_fraction": repr(day.review_fraction),
    }


def _log_check_page(
    client: "MlflowClient", run_id: str, html: str | None, at: tuple[str, str]
) -> dict[str, str]:
    """Log the validation page, if there is one; return its link `at` that MLflow and experiment."""
    if html is None:
        return {}
    client.log_text(run_id, html, _CHECK_PAGE)
    if not at[0].startswith(("http://", "https://")):  # a folder, which has no pages
        return {}
    return {"Validation page": artifact_url(*at, run_id, _CHECK_PAGE)}


def _log_tables(client: "MlflowClient", run_id: str, tables: DayTables) -> None:
    """Log every table that has rows, as JSON for MLflow's table view and as CSV."""
    for name, table in {
        "estimates": pd.concat([tables.window, tables.estimates, tables.window_own, tables.own]),
        "drift": tables.drift,
        "what_if": tables.what_if,
        "assumption_checks": tables.assumption_checks,
        "challenger": tables.challenger,
        "comment_groups": tables.comment_groups,
    }.items():
        if table is not None and (len(table) or name == "estimates"):
            # log_table detects columns of objects in a way that pandas deprecated for strings.
            texts = [column for column in table if not is_numeric_dtype(table[column])]
            shown = table.astype(dict.fromkeys(texts, "str")).astype(dict.fromkeys(texts, object))
            client.log_table(run_id, shown, f"tables/{name}.json")
            client.log_text(run_id, neutral_csv(table), f"tables/{name}.csv")


def publish_report(
    name: str,
    *,
    day: date,
    metrics: Mapping[str, float],
    tags: Mapping[str, str],
    description: str,
    page: str,
    tables: Mapping[str, pd.DataFrame],
    tracking_uri: str,
) -> str:
    """Publish the run of a report about annotations in place of an earlier one; return its id.

    The run is dated and tagged with `day`. `page` (HTML) becomes `report.html`, the tables CSV
    files.

    Raises:
        TrackingError: MLflow cannot be reached, or another process replaced the run meanwhile.
        MetricInputError: there are too many metrics.
    """
    check_key_count(metrics)
    named = {"kind": "report", "report": name}
    with connect(tracking_uri) as client:
        in_experiment = experiment_id(client, GROUP_EXPERIMENT)
        with replacing_run(client, in_experiment, named, name=name, day=day) as run_id:
            more = {"day": day.isoformat(), DESCRIPTION_TAG: description}
            log_texts(client, run_id, params={}, tags={**tags, **more})
            log_points(client, run_id, points_of({day: dict(metrics)}, first=day), first=day)
            client.log_text(run_id, page, "report.html")
            for title, table in tables.items():
                client.log_text(run_id, neutral_csv(table), f"tables/{title}.csv")
    return run_id
