"""The form and the tasks of `monitor_disagreement`."""

import datetime
from pathlib import Path
from typing import Any

from airflow.sdk import Param, task

from modwatch.installation import open_resources
from modwatch.pipeline import daily, opinions
from modwatch.pipeline.airflow.questions import field

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


@task
def collect_annotations(params: Any = None, data_interval_end: Any = None, ti: Any = None) -> int:
    """Copy the labels of the review queue; return how many there are."""
    if params["file"]:
        return 0
    with open_resources() as resources:
        return opinions.collect_annotations(
            resources, _last(params, data_interval_end or ti.start_date)
        )


@task
def publish_opinions(params: Any = None, data_interval_end: Any = None, ti: Any = None) -> int:
    """Publish the report to MLflow; return how many labels it is made of."""
    with open_resources() as resources:
        if params["file"]:
            return opinions.publish_file(resources, Path(params["file"]), params["groups"])
        return opinions.publish_opinions(
            resources, _last(params, data_interval_end or ti.start_date)
        )


@task
def measure_blindness(params: Any = None, data_interval_end: Any = None, ti: Any = None) -> int:
    """Publish whether measurements are recognisable; return how many kinds of them are."""
    if params["file"]:
        return 0
    with open_resources() as resources:
        return opinions.measure_blindness(
            resources, _last(params, data_interval_end or ti.start_date)
        )


@task
def raise_alerts(params: Any = None, data_interval_end: Any = None, ti: Any = None) -> int:
    """Post the alerts that follow from the groups of moderators; return how many are new."""
    if params["file"]:
        return 0
    with open_resources() as resources:
        return opinions.raise_alerts(resources, _last(params, data_interval_end or ti.start_date))


@task
def deliver_alerts(params: Any = None, data_interval_end: Any = None, ti: Any = None) -> int:
    """Send the alerts that are pending on any channel; return how many were sent."""
    with open_resources() as resources:
        return daily.deliver_alerts(resources, _last(params, data_interval_end or ti.start_date))


def _last(params: Any, moment: datetime.datetime) -> datetime.date:
    """Return the last day of a report: that of the form, or the Sunday before."""
    given = params["last"]
    return datetime.date.fromisoformat(given) if given else opinions.last_sunday(moment)
