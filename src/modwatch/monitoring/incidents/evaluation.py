"""Evaluates the alert rules over the trailing days, and posts an alert for each transition.

The functions may be run again after a crash: what was posted is not posted again.
"""

import datetime
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from sqlalchemy import Engine

from modwatch.common.days import trailing
from modwatch.data.lake.delta import Lake
from modwatch.data.lake.schemas import ALERTS
from modwatch.data.validation.store import CheckStore
from modwatch.data.validation.volumes import seasonal_volumes
from modwatch.monitoring.incidents.actions import acceptances, silenced
from modwatch.monitoring.incidents.causes import Cause, active_incident, evaluate_rules
from modwatch.monitoring.incidents.delivery import Channels, post_all
from modwatch.monitoring.incidents.messages.incidents import (
    ActiveAlert,
    most_severe_first,
)
from modwatch.monitoring.incidents.metrics import (
    ANNOTATOR_METRICS,
    annotator_values,
    metric_values,
)
from modwatch.monitoring.incidents.rules import AlertRule
from modwatch.monitoring.incidents.segments import (
    FallenIn,
    leading_segment,
    with_segment,
)
from modwatch.review.outbox import messages as outbox
from modwatch.review.outbox.messages import OutboxMessage
from modwatch.review.queue.metrics import days_since_routed

_log = logging.getLogger(__name__)

_TOPIC = "incident"

#: Incidents of groups of moderators have days of their own: those on which labels were given, which
#: may be years after those of the comments.
_ANNOTATOR_TOPIC = "annotator_incident"

_ONE_DAY = datetime.timedelta(days=1)

#: Days that are read: a streak which ends in the window, and the level before a change.
_LOOK_BACK = 60 * _ONE_DAY

#: Days before an active incident that are read, however long it lasts: the level before it.
_BEFORE_CHANGE = 30 * _ONE_DAY

#: Days of comparisons of groups of moderators that are read: two of them at least.
_COMPARISONS = 56 * _ONE_DAY

#: Pages to link from an alert about a day, by name.
Links = Callable[[datetime.date], Mapping[str, str]]


def evaluate(
    lake: Lake,
    checks: CheckStore,
    database: Engine,
    day: datetime.date,
    *,
    rules: Sequence[AlertRule],
    channels: Channels,
    window_days: int,
    links: Links,
    fallen_in: FallenIn | None = None,
) -> int:
    """Evaluate the rules up to `day` and post the alerts that follow; return how many are new.

    Days after `day` that were evaluated before are evaluated again. The active alerts of each day
    of the window are written to the table `alerts`. `links` is called only for new alerts, and
    `fallen_in` only for those of a fall of accuracy.
    """
    last = outbox.latest(database, _TOPIC)
    today = _last_day(lake, "measurements", day, last)
    daily = [rule for rule in rules if rule.metric not in ANNOTATOR_METRICS]
    since = [each.since for message in last.values() if (each := active_incident(message))]
    first = min([today - _LOOK_BACK, *(each - _BEFORE_CHANGE for each in since)])
    values = metric_values(lake, checks, first, today)
    causes, new = evaluate_rules(
        daily,
        values,
        last,
        today,
        topic=_TOPIC,
        window_days=window_days,
        accepted=acceptances(database),
        volumes=seasonal_volumes(lake, first, today),
        routed=days_since_routed(database, first, today),
    )
    metrics = {rule.name: rule.metric for rule in daily}
    window = trailing(today, window_days)
    kept = _kept_alerts(lake, window[0], window[-1])
    for past in window:
        _write_active(lake, past, causes, metrics, kept.get(past, []))
    _log.info(
        "Alert rules evaluated.",
        extra={"event": "alerts.evaluated", "dt": str(day), "until": str(today), "new": len(new)},
    )
    return _posted(database, channels, [with_segment(lake, each, fallen_in) for each in new], links)


def evaluate_annotators(
    lake: Lake,
    database: Engine,
    day: datetime.date,
    *,
    rules: Sequence[AlertRule],
    channels: Channels,
    links: Links,
) -> int:
    """Evaluate the rules on groups of moderators up to `day`; return how many alerts are new.

    They are compared every fourth week: an incident is active until the next comparison at least.
    """
    last = outbox.latest(database, _ANNOTATOR_TOPIC)
    today = _last_day(lake, "annotator_groups", day, last)
    values = annotator_values(lake, today - _COMPARISONS, today)
    weekly = [rule for rule in rules if rule.metric in ANNOTATOR_METRICS]
    accepted = acceptances(database)
    _, new = evaluate_rules(weekly, values, last, today, topic=_ANNOTATOR_TOPIC, accepted=accepted)
    _log.info(
        "Alert rules on groups of moderators evaluated.",
        extra={"event": "alerts.evaluated", "dt": str(day), "until": str(today), "new": len(new)},
    )
    return _posted(database, channels, new, links)


def active_alerts(rows: pa.Table) -> tuple[ActiveAlert, ...]:
    """Return one day's rows of the table `alerts` as alerts, the most severe first."""
    renamed = rows.drop_columns(["dt"]).rename_columns({"words": "description"})
    # Days of earlier versions have no headlines.
    known = ({name: value for name, value in row.items() if value} for row in renamed.to_pylist())
    empty = {"subject": "", "description": ""}
    return most_severe_first(ActiveAlert(**(empty | row)) for row in known)


def _last_day(
    lake: Lake, table: str, day: datetime.date, last: Mapping[str, OutboxMessage]
) -> datetime.date:
    """Return the last day that was evaluated: stopping earlier would withdraw later incidents."""
    # Not the last day with drift: a mistyped date may have left drift years ahead.
    measured = lake.days(table)[-1:]
    return max([day, *measured, *(message.dt for message in last.values())])


def _posted(
    database: Engine, channels: Channels, new: Sequence[OutboxMessage], links: Links
) -> int:
    """Post messages, except of silenced incidents, which are due when the silence is over."""
    silent = silenced(database)
    heard = [message for message in new if message.series not in silent]
    return post_all(database, channels, [_linked(message, links) for message in heard])


def _linked(message: OutboxMessage, links: Links) -> OutboxMessage:
    return replace(message, payload={**message.payload, "links": dict(links(message.dt))})


def _kept_alerts(
    lake: Lake, first: datetime.date, last: datetime.date
) -> dict[datetime.date, list[dict[str, Any]]]:
    """Return the rows of the table `alerts` by day."""
    kept: dict[datetime.date, list[dict[str, Any]]] = {}
    for batch in lake.read_between("alerts", first, last):
        for row in batch.to_pylist():
            kept.setdefault(row["dt"], []).append(row)
    return kept


def _write_active(
    lake: Lake,
    day: datetime.date,
    causes: Sequence[Cause],
    metrics: Mapping[str, str],
    kept: Sequence[Mapping[str, Any]],
) -> None:
    """Write the alerts that were active at the end of `day`, unless they are the `kept` rows.

    `metrics` are those of the rules, by name.
    """
    rows = []
    for alert in filter(None, (cause.alert_on(day) for cause in causes)):
        segment = leading_segment(lake, day, metrics[alert.rule], alert.subject)
        rows.append(
            {
                "dt": day,
                "rule": alert.rule,
                "subject": alert.subject,
                "severity": alert.severity,
                "since": alert.since,
                "words": alert.description,
                "headline": alert.headline,
                "segment": segment and segment["sentence"],
            }
        )
    if rows != kept:
        lake.replace("alerts", day, [pa.RecordBatch.from_pylist(rows, schema=ALERTS)])
