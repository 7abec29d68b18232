"""The saved view of the days' runs: one row a day, with the columns that tell whether it is normal.

MLflow keeps a shared view of an experiment as JSON in a tag; a link names the tag.
"""

import json
from datetime import date
from typing import Any

from modwatch.common.errors import TrackingError
from modwatch.common.mlflow_client import (
    connect,
    experiment_id,
    is_whole,
    public_url,
    run_url,
    runs_tagged,
    view_url,
)

#: The name of the saved view.
VIEW = "days"

_TAG = f"mlflow.sharedViewState.{VIEW}"

#: MLflow always shows when a run was created, here the day itself, and the sign of its status: as
#: wide as the sign.
_CREATED = "runDateAndNestInfo"


def days_url(tracking_uri: str, experiment: str = "modwatch") -> str:
    """Return the URL of the saved view, which is saved if it is not there yet.

    Raises:
        TrackingError: MLflow cannot be reached.
    """
    state = json.dumps(_state(), separators=(",", ":"))
    with connect(tracking_uri) as client:
        number = experiment_id(client, experiment)
        if client.get_experiment(number).tags.get(_TAG) != state:
            client.set_experiment_tag(number, _TAG, state)
    return view_url(tracking_uri, number, VIEW)


def day_run_url(tracking_uri: str, day: date) -> str | None:
    """Return the URL of the newest whole run of a day; None: it has none.

    Publishing the day again replaces the run, and this URL.

    Raises:
        TrackingError: MLflow cannot be reached.
    """
    with connect(tracking_uri) as client:
        number = experiment_id(client, "modwatch")
        runs = runs_tagged(client, number, {"kind": "day", "day": day.isoformat()})
    whole = [run.info.run_id for run in runs if is_whole(run)]
    return run_url(tracking_uri, number, whole[0], tab="") if whole else None


def days_address(tracking_uri: str) -> str:
    """Return the URL of the saved view, or that of MLflow's start page while MLflow is down."""
    try:
        return days_url(tracking_uri)
    except TrackingError:
        return public_url(tracking_uri)


def _columns() -> dict[str, int]:
    """Return the tags of a day's run that are columns, left to right, and their widths in pixels.

    The first four are seen at 1440 pixels, next to the assistant that MLflow opens once on a local
    server.
    """
    # Not imported with the module, which `modwatch status` imports: it takes a second.
    from modwatch.monitoring.publishing.days import HEADINGS  # noqa: PLC0415

    return {
        "status": 157,
        "alerts": 140,
        **dict.fromkeys(HEADINGS, 130),
        "comments": 85,
        "labels": 105,
        "checks": 80,
        "window": 105,
    }


def _state() -> dict[str, Any]:
    columns = {f"tags.`{name}`": width for name, width in _columns().items()}
    shown = {"attributes.`Run Name`": 130, **columns, _CREATED: 46}
    return {
        "searchFilter": "tags.kind = 'day'",
        "orderByKey": "attributes.start_time",
        "orderByAsc": False,
        "selectedColumns": [*columns],
        "columnOrder": [*shown],
        "columnWidths": shown,
    }
