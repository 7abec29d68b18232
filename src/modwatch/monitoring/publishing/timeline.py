"""The long-lived run in MLflow: the timeline over the days.

Its step is the day, so that MLflow's charts show time.
"""

import hashlib
import logging
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from modwatch.common.errors import MetricInputError
from modwatch.common.mlflow_client import (
    DESCRIPTION_TAG,
    Point,
    Rows,
    artifact_url,
    connect,
    experiment_id,
    log_figures,
    log_points,
    points_of,
    published_points,
    retire_others,
    runs_tagged,
)
from modwatch.monitoring.publishing.description import describe_timeline
from modwatch.monitoring.publishing.keys import check_key_count

if TYPE_CHECKING:
    from mlflow import MlflowClient

_log = logging.getLogger(__name__)

#: The artifact of the run with its page, and the tag with the hash of it.
TIMELINE_PAGE = "timeline.html"
_PAGE_TAG = "mlflow.modwatch.page"

_TIMELINE = {"kind": "timeline"}


def publish_timeline(
    rows: Rows, *, page: str | None = None, tracking_uri: str, experiment: str = "modwatch"
) -> str:
    """Bring the timeline up to date with `rows`; return the id of its run.

    MLflow cannot change a metric point. New points are appended; if a published value changed or
    is gone (labels come late), a new run is written and then the old one is deleted. Called again
    with the same rows, it changes nothing. The step counts days from the first day of `rows`.

    Args:
        rows: finite values by day and metric key, at most `keys.MAX_KEYS` keys over all days.
        page: HTML that shows more than MLflow's charts can, kept as `timeline.html`; without one,
            `figures/timeline.png` shows the rows with their intervals.
        tracking_uri: URL of MLflow.
        experiment: name of the experiment, created if it does not exist.

    Raises:
        MetricInputError: there are no values, one is not finite, or there are too many keys.
        TrackingError: MLflow cannot be reached, or another process replaced the run meanwhile.
    """
    _validate_timeline(rows)
    wanted = points_of(rows, first=min(rows))
    with connect(tracking_uri) as client:
        in_experiment = experiment_id(client, experiment)
        run_id, missing = appendable_run(client, in_experiment, rows, wanted)
        if run_id is None:
            run_id = start_timeline(client, in_experiment, rows)
        if missing or (page is not None and _is_new(client, run_id, page)):
            _log_timeline_page(client, run_id, rows, page, (tracking_uri, in_experiment))
            log_points(client, run_id, missing, first=min(rows))
            client.set_terminated(run_id)
        retire_others(client, in_experiment, _TIMELINE, keep=run_id)
    _log.info(
        "The timeline in MLflow is up to date.",
        extra={"event": "tracking.timeline_published", "days": len(rows), "added": len(missing)},
    )
    return run_id


def appendable_run(
    client: "MlflowClient", experiment: str, rows: Rows, wanted: set[Point]
) -> tuple[str | None, set[Point]]:
    """Return the finished timeline run that has only `wanted` points, and those it lacks.

    Without such a run: None, and all of them.
    """
    for run in runs_tagged(client, experiment, _TIMELINE | {"first_day": min(rows).isoformat()}):
        run_id = str(run.info.run_id)
        published = published_points(client, run_id)
        if run.info.status == "FINISHED" and published <= wanted:
            return run_id, wanted - published
    return None, wanted


def start_timeline(client: "MlflowClient", experiment: str, rows: Rows) -> str:
    """Return the id of a new, unfinished timeline run."""
    tags = _TIMELINE | {"first_day": min(rows).isoformat()}
    return str(client.create_run(experiment, tags=tags, run_name="timeline").info.run_id)


def _is_new(client: "MlflowClient", run_id: str, page: str) -> bool:
    tags: Mapping[str, str] = client.get_run(run_id).data.tags
    return tags.get(_PAGE_TAG) != hashlib.sha256(page.encode()).hexdigest()


def _log_timeline_page(
    client: "MlflowClient", run_id: str, rows: Rows, page: str | None, at: tuple[str, str]
) -> None:
    """Log description and page, before the points: after a crash, both are written again."""
    client.set_tag(run_id, "last_day", max(rows).isoformat())
    if page is None:
        text = describe_timeline(min(rows), max(rows), len(rows))
        client.set_tag(run_id, DESCRIPTION_TAG, text)
        _log_timeline_figure(client, run_id, rows)
        return
    url = artifact_url(*at, run_id, TIMELINE_PAGE) if at[0].startswith("http") else ""
    text = describe_timeline(min(rows), max(rows), len(rows), page_url=url)
    client.set_tag(run_id, DESCRIPTION_TAG, text)
    client.log_text(run_id, page, TIMELINE_PAGE)
    client.set_tag(run_id, _PAGE_TAG, hashlib.sha256(page.encode()).hexdigest())


def _log_timeline_figure(client: "MlflowClient", run_id: str, rows: Rows) -> None:
    # Imports matplotlib, which takes a second: not when a DAG file is parsed.
    from modwatch.monitoring.publishing.figures.timeline import timeline_figure

    log_figures(client, run_id, {"timeline": timeline_figure(rows)})


def _validate_timeline(rows: Rows) -> None:
    values = [value for row in rows.values() for value in row.values()]
    if not values:
        raise MetricInputError("The timeline has no values; publish a day first.")
    if not all(math.isfinite(value) for value in values):
        raise MetricInputError("A value of the timeline is not finite; leave such values out.")
    check_key_count(key for row in rows.values() for key in row)
