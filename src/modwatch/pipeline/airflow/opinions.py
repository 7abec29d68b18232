"""The form and the tasks of `monitor_disagreement`."""

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import Param, task

from modwatch.installation import open_resources
from modwatch.pipeline import daily, opinions
from modwatch.pipeline.airflow.questions import field

if TYPE_CHECKING:
    from modwatch.installation.resources import Resources

#: Empty by schedule.
FORM: dict[str, Param] = {
    "last": field(
        "string", "Last day", "A Sunday. Default: the last one before the run.", format="date"
    ),
    "file": field(
        "string",
        "File",
        "CSV, TSV, JSON lines or Parquet with the columns item, annotator, label and, "
        "if known, time and prob. Default: the labels of the review queue.",
        maxLength=1000,
    ),
    "groups": field(
        "array",
        "Groups",
        "Of the file: columns with attributes of annotators; several joined by commas "
        "are intersections.",
        default=[],
        items={"type": "string"},
    ),
}


def _task(
    step: Callable[["Resources", datetime.date], int],
    of_file: Callable[["Resources", Any], int] | None = lambda *_: 0,
) -> Any:
    """Return the task of a step of `pipeline.opinions`; `of_file` takes its place for a file."""

    @task(task_id=step.__name__)  # type: ignore[untyped-decorator]
    def run(params: Any = None, data_interval_end: Any = None, ti: Any = None) -> int:
        with open_resources() as resources:
            if params["file"] and of_file:
                return of_file(resources, params)
            return step(resources, _last(params, data_interval_end or ti.start_date))

    return run


def _publish_file(resources: "Resources", params: Any) -> int:
    return opinions.publish_file(resources, Path(params["file"]), params["groups"])


collect_annotations = _task(opinions.collect_annotations)
publish_opinions = _task(opinions.publish_opinions, _publish_file)
measure_blindness = _task(opinions.measure_blindness)
raise_alerts = _task(opinions.raise_alerts)
deliver_alerts = _task(daily.deliver_alerts, None)


def _last(params: Any, moment: datetime.datetime) -> datetime.date:
    """Return the last day of a report: that of the form, or the Sunday before."""
    given = params["last"]
    return datetime.date.fromisoformat(given) if given else opinions.last_sunday(moment)
