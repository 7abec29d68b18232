"""The timeline run in MLflow: one point a day for each metric, and a page with intervals.

Its step is the day, so that MLflow's charts show time. Groups of comments have a timeline in an
experiment of their own.
"""

import hashlib
import logging
import math
import re
from collections.abc import Hashable, Mapping, Sequence, Set
from datetime import date
from typing import TYPE_CHECKING, Any

import pandas as pd

from modwatch.common.columns import grouped
from modwatch.common.errors import MetricInputError
from modwatch.common.mlflow_client import (
    DESCRIPTION_TAG,
    Rows,
    artifact_url,
    connect,
    experiment_id,
    is_whole,
    log_figures,
    log_points,
    log_texts,
    points_of,
    replacing_run,
    retire_others,
    runs_tagged,
)
from modwatch.data.lake.delta import Lake
from modwatch.monitoring.incidents.rules import AlertRule
from modwatch.monitoring.publishing.days import Day
from modwatch.monitoring.publishing.keys import COUNTED, MAX_KEYS, check_key_count, interval_keys
from modwatch.monitoring.publishing.timeline_page import timeline_page
from modwatch.statistics.live.group_estimates import GAP, IDENTITY

if TYPE_CHECKING:
    from mlflow import MlflowClient

_log = logging.getLogger(__name__)

#: The artifact of the run with its page.
TIMELINE_PAGE = "timeline.html"

_TIMELINE = {"kind": "timeline"}

#: The experiment of all runs about groups.
GROUP_EXPERIMENT = "modwatch-groups"

_VALUE = ("value", "low", "high")

_DIFFERENCE = ("difference", "difference_low", "difference_high")

#: Prefix of the keys of a figure, by scope, metric and columns: a value, and the ends of its
#: interval. The mean uncertainty is exact for the day, so that its key has no ends.
_CHARTS = {
    "uncertainty": ("day", "mean_uncertainty", ("value",)),
    "uncertainty_difference": ("day", "mean_uncertainty", _DIFFERENCE),
    "window_accuracy": ("window", "accuracy", _VALUE),
}

#: Attributes whose gap in the coverage of prediction sets has a chart, with both ends.
_GAPS = (*grouped(), IDENTITY)

#: Groups with charts.
_MOST_GROUPS = (MAX_KEYS - 3 * len(_GAPS)) // sum(len(chart[2]) for chart in _CHARTS.values())


def publish_days(
    days: Sequence[Day],
    rules: Sequence[AlertRule],
    *,
    tracking_uri: str,
    experiment: str = "modwatch",
) -> str:
    """Bring the timeline of at least one day up to date; return the id of its run.

    MLflow charts what is counted; the page has the estimates, the bounds of the alert `rules`, the
    models and the incidents.
    """
    rows = {
        day.day: {key: figure.value for key, figure in day.figures.items() if key in COUNTED}
        for day in days
    }
    page = timeline_page(days, rules)
    return publish_timeline(rows, page=page, tracking_uri=tracking_uri, experiment=experiment)


def publish_groups(lake: Lake, *, tracking_uri: str) -> None:
    """Bring the charts of groups of comments up to date; nothing when there are none."""
    table = lake.table("comment_groups", lake.days("comment_groups")).to_pandas()
    if rows := group_points(table):
        publish_timeline(rows, tracking_uri=tracking_uri, experiment=GROUP_EXPERIMENT)


def publish_timeline(
    rows: Rows, *, page: str | None = None, tracking_uri: str, experiment: str = "modwatch"
) -> str:
    """Publish the timeline in place of an earlier one, unless it is the same; return its run's id.

    MLflow cannot change a metric point, and labels come late: a timeline that changed is written
    anew. The step counts days from the first day of `rows`.

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
    _validate(rows)
    points, last = points_of(rows, first=min(rows)), max(rows)
    content = repr((min(rows), last, sorted(points), page))
    tags = {"digest": hashlib.sha256(content.encode()).hexdigest()}
    with connect(tracking_uri) as client:
        number = experiment_id(client, experiment)
        same = filter(is_whole, runs_tagged(client, number, _TIMELINE | tags))
        if run := next(same, None):
            run_id = str(run.info.run_id)
            retire_others(client, number, _TIMELINE, keep=run_id)
            return run_id
        with replacing_run(client, number, _TIMELINE, name="timeline", day=last) as run_id:
            tags[DESCRIPTION_TAG] = _log_page(client, run_id, rows, page, (tracking_uri, number))
            log_texts(client, run_id, params={}, tags=tags)
            log_points(client, run_id, points, first=min(rows))
    _log.info(
        "The timeline in MLflow is replaced.",
        extra={"event": "tracking.timeline_published", "days": len(rows)},
    )
    return run_id


def _log_page(
    client: "MlflowClient", run_id: str, rows: Rows, page: str | None, at: tuple[str, str]
) -> str:
    """Log the page, or the figure; return the description of the run `at` MLflow and experiment."""
    first, last, days = min(rows), max(rows), f"{len(rows)} day{'s' * (len(rows) != 1)}"
    head = f"**{first} to {last}**, {days}; one point per day, updated while labels come in."
    if page is None:
        # Imports matplotlib, which takes a second: not when a DAG file is parsed.
        from modwatch.monitoring.publishing.figures import timeline_figure

        log_figures(client, run_id, {"timeline": timeline_figure(rows)})
        return (
            f"{head}\n\nStep 0 is {first}. To show dates on the charts: Model metrics, gear, "
            'x-axis "Time (wall)".\n'
            "The same charts with 95 % intervals: Artifacts, `figures/timeline.png`."
        )
    client.log_text(run_id, page, TIMELINE_PAGE)
    link = "Artifacts, `timeline.html`"
    if at[0].startswith(("http://", "https://")):
        link = f"[Timeline](<{artifact_url(*at, run_id, TIMELINE_PAGE)}>)"
    return (
        f"{link}: estimates with intervals, thresholds, models, incidents.\n\n{head} "
        "The charts of this run show counts only, which have no intervals."
    )


def _validate(rows: Rows) -> None:
    values = [value for row in rows.values() for value in row.values()]
    if not values:
        raise MetricInputError("The timeline has no values; publish a day first.")
    if not all(math.isfinite(value) for value in values):
        raise MetricInputError("A value of the timeline is not finite; leave such values out.")
    check_key_count(key for row in rows.values() for key in row)


def group_points(table: pd.DataFrame) -> Rows:
    """Return the values of the largest groups by day and key.

    Keys are `uncertainty/ATTRIBUTE_GROUP`, the mean of p(1−p) of the day,
    `uncertainty_difference/ATTRIBUTE_GROUP`, that mean less the one of all other comments, and
    `window_accuracy/ATTRIBUTE_GROUP`; the ends of intervals are at `interval_keys`. Seven
    groups have keys, which are those with the most comments over all days. `set_coverage_gap/`
    ATTRIBUTE is the gap in the coverage of prediction sets between the groups of an attribute.

    Args:
        table: rows of any days, columns of `lake.schemas.COMMENT_GROUPS`.
    """
    rows = table[table["status"] == "ok"]
    scored = rows[rows["metric"] == "mean_uncertainty"]
    sizes = scored.groupby(["attribute", "group"])["comments"].sum()
    largest = set(sizes.sort_values(ascending=False, kind="stable").index[:_MOST_GROUPS])
    points: dict[date, dict[str, float]] = {}
    for row in rows.sort_values(["dt", "attribute", "group"]).to_dict("records"):
        if found := _points(row, largest):
            points.setdefault(row["dt"], {}).update(found)
    return points


def _points(row: Mapping[Hashable, Any], largest: Set[tuple[str, str]]) -> dict[str, float]:
    """Return the figures of a row by key; none of a smaller group."""
    figure, attribute, group = (row["scope"], row["metric"]), row["attribute"], row["group"]
    found: dict[str, float] = {}
    if row["metric"] == GAP and attribute in _GAPS:
        found |= _estimate(row, f"{GAP}/{attribute}", _VALUE)
    for prefix, (scope, metric, columns) in _CHARTS.items():
        if figure == (scope, metric) and (attribute, group) in largest:
            found |= _estimate(row, f"{prefix}/{_name(attribute)}_{_name(group)}", columns)
    return found


def _estimate(row: Mapping[Hashable, Any], key: str, columns: Sequence[str]) -> dict[str, float]:
    """Return the columns by key: a value alone, or with both ends of its interval."""
    values = zip((key, *interval_keys(key)), columns, strict=False)
    points = {name: float(row[column]) for name, column in values}
    return {name: value for name, value in points.items() if not math.isnan(value)}


def _name(text: str) -> str:
    """Return the text as a part of a key, without characters that MLflow refuses.

    What was left out is told by a number, so that no two groups have one key.

    >>> _name("a_b"), _name("a b")
    ('a_b', 'a_b.c868')
    """
    name = re.sub(r"[^\w.\-]", "_", text)
    if name == text:
        return name
    return f"{name}.{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:4]}"
