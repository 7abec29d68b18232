"""The timeline run in MLflow: one point a day for each count, and a page with all figures.

Its step is the day, so that MLflow's charts show time.
"""

import hashlib
import logging
from collections.abc import Mapping, Sequence

from modwatch.common.mlflow_client import (
    DESCRIPTION_TAG,
    artifact_url,
    connect,
    experiment_id,
    is_whole,
    log_points,
    log_texts,
    points_of,
    replacing_run,
    retire_others,
    runs_tagged,
)
from modwatch.monitoring.incidents.rules import AlertRule
from modwatch.monitoring.publishing.days import Day
from modwatch.monitoring.publishing.keys import COUNTED
from modwatch.monitoring.publishing.timeline_charts import Charts
from modwatch.monitoring.publishing.timeline_page import timeline_page

_log = logging.getLogger(__name__)

#: The artifact of the run with its page.
TIMELINE_PAGE = "timeline.html"

_TIMELINE = {"kind": "timeline"}


def publish_timeline(
    days: Sequence[Day],
    rules: Sequence[AlertRule],
    charts: Mapping[str, Charts],
    *,
    tracking_uri: str,
    experiment: str = "modwatch",
) -> str:
    """Publish the timeline in place of an earlier one, unless it is the same; return its run's id.

    MLflow cannot change a metric point, and labels come late: a timeline that changed is written
    anew. MLflow charts what is counted; the page has the estimates, the bounds of the alert
    `rules`, the models, the incidents and further `charts`. The step counts days from the
    first of at least one day.

    Raises:
        TrackingError: MLflow cannot be reached, or another process replaced the run meanwhile.
    """
    rows = {
        day.day: {key: figure.value for key, figure in day.figures.items() if key in COUNTED}
        for day in days
    }
    first, last = min(rows), max(rows)
    points, page = points_of(rows, first=first), timeline_page(days, rules, charts)
    content = repr((first, last, sorted(points), page))
    tags = {"digest": hashlib.sha256(content.encode()).hexdigest()}
    with connect(tracking_uri) as client:
        number = experiment_id(client, experiment)
        same = filter(is_whole, runs_tagged(client, number, _TIMELINE | tags))
        if run := next(same, None):
            run_id = str(run.info.run_id)
            retire_others(client, number, _TIMELINE, keep=run_id)
            return run_id
        with replacing_run(client, number, _TIMELINE, name="timeline", day=last) as run_id:
            client.log_text(run_id, page, TIMELINE_PAGE)
            link = "Artifacts, `timeline.html`"
            if tracking_uri.startswith(("http://", "https://")):
                link = f"[Timeline](<{artifact_url(tracking_uri, number, run_id, TIMELINE_PAGE)}>)"
            tags[DESCRIPTION_TAG] = (
                f"{link}: estimates with intervals, thresholds, models, incidents.\n\n**{first} to "
                f"{last}**, {len(rows)} day{'s' * (len(rows) != 1)}; one point per day, updated "
                "while labels come in. The charts of this run show counts only, which have no "
                "intervals."
            )
            log_texts(client, run_id, params={}, tags=tags)
            log_points(client, run_id, points, first=first)
    _log.info(
        "The timeline in MLflow is replaced.",
        extra={"event": "tracking.timeline_published", "days": len(rows)},
    )
    return run_id
