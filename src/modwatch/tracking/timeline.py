"""One long-lived MLflow run whose step is the day, so that MLflow's charts show time."""

import logging
import math
from typing import TYPE_CHECKING

from modwatch.errors import MetricInputError
from modwatch.tracking.client import (
    DESCRIPTION_TAG,
    Point,
    Rows,
    connect,
    experiment_id,
    log_points,
    points_of,
    published_points,
    retire_others,
    runs_tagged,
)
from modwatch.tracking.description import describe_timeline
from modwatch.tracking.keys import check_key_count

if TYPE_CHECKING:
    from mlflow import MlflowClient

_log = logging.getLogger(__name__)

_KIND = {"kind": "timeline"}


def publish_timeline(rows: Rows, *, tracking_uri: str, experiment: str = "modwatch") -> str:
    """Bring the timeline up to date with `rows`; return the id of its run.

    MLflow cannot change a metric point. New points are appended; if a published value changed or
    is gone (labels come late), a new run is written and then the old one is deleted. Called again
    with the same rows, it changes nothing. The step counts days from the first day of `rows`.

    Args:
        rows: finite values by day and metric key, at most `keys.MAX_KEYS` keys over all days.
        tracking_uri: URL of MLflow.
        experiment: name of the experiment, created if it does not exist.

    Raises:
        MetricInputError: there are no values, one is not finite, or there are too many keys.
        TrackingError: MLflow cannot be reached, or another process replaced the run meanwhile.
    """
    _validate(rows)
    wanted = points_of(rows, first=min(rows))
    with connect(tracking_uri) as client:
        in_experiment = experiment_id(client, experiment)
        run_id, missing = appendable_run(client, in_experiment, rows, wanted)
        if run_id is None:
            run_id = start_timeline(client, in_experiment, rows)
        if missing:
            _log_page(client, run_id, rows)
            log_points(client, run_id, missing, first=min(rows))
            client.set_terminated(run_id)
        retire_others(client, in_experiment, _KIND, keep=run_id)
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
    for run in runs_tagged(client, experiment, _KIND | {"first_day": min(rows).isoformat()}):
        run_id = str(run.info.run_id)
        published = published_points(client, run_id)
        if run.info.status == "FINISHED" and published <= wanted:
            return run_id, wanted - published
    return None, wanted


def start_timeline(client: "MlflowClient", experiment: str, rows: Rows) -> str:
    """Return the id of a new, unfinished timeline run."""
    tags = _KIND | {"first_day": min(rows).isoformat()}
    return str(client.create_run(experiment, tags=tags, run_name="timeline").info.run_id)


def _log_page(client: "MlflowClient", run_id: str, rows: Rows) -> None:
    """Log description and figure, before the points: after a crash, both are written again."""
    # Imports matplotlib, which takes a second: not when a DAG file is parsed.
    from modwatch.tracking.figures.style import DPI
    from modwatch.tracking.figures.timeline import timeline_figure

    client.set_tag(run_id, DESCRIPTION_TAG, describe_timeline(min(rows), max(rows), len(rows)))
    client.set_tag(run_id, "last_day", max(rows).isoformat())
    figure = timeline_figure(rows)
    client.log_figure(run_id, figure, "figures/timeline.png", save_kwargs={"dpi": DPI})


def _validate(rows: Rows) -> None:
    values = [value for row in rows.values() for value in row.values()]
    if not values:
        raise MetricInputError("The timeline has no values; publish a day first.")
    if not all(math.isfinite(value) for value in values):
        raise MetricInputError("A value of the timeline is not finite; leave such values out.")
    check_key_count(key for row in rows.values() for key in row)
