"""Evaluates the alert rules over the trailing days, and posts an alert for each transition.

The functions may be run again after a crash: what was posted is not posted again.
"""

import datetime
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlalchemy import Engine

from modwatch.alerts.delivery import Channels, outbox_message, post
from modwatch.alerts.incidents import (
    Incident,
    MetricValue,
    reconciled_incidents,
    transitions,
    watched,
)
from modwatch.alerts.messages import (
    ActiveAlert,
    describe_value,
    incident_alert,
    most_severe_first,
    series_name,
    unwatched_alert,
)
from modwatch.alerts.metrics import ANNOTATOR_METRICS, annotator_values, metric_values
from modwatch.alerts.rules import AlertRule
from modwatch.days import trailing
from modwatch.lake.delta import Lake
from modwatch.lake.schemas import ALERTS
from modwatch.quality.store import CheckStore
from modwatch.review.outbox import messages as outbox
from modwatch.review.outbox.messages import OutboxMessage

_log = logging.getLogger(__name__)

_TOPIC = "incident"

#: Incidents of groups of moderators have days of their own: those on which labels were given, which
#: may be years after those of the comments.
_ANNOTATOR_TOPIC = "annotator_incident"

_ONE_DAY = datetime.timedelta(days=1)

#: Days before the window that are read too, so that a streak which ends in it is seen whole.
_LOOK_BACK = 28 * _ONE_DAY

#: Pages to link from an alert about a day, by name.
Links = Callable[[datetime.date], Mapping[str, str]]


@dataclass(frozen=True, kw_only=True)
class _Series:
    """The values that one rule watches for one subject, and the incidents in them."""

    rule: AlertRule
    subject: str
    values: Sequence[MetricValue]
    incidents: Sequence[Incident]

    @property
    def name(self) -> str:
        return series_name(self.rule.name, self.subject)

    def on(self, day: datetime.date) -> MetricValue | None:
        return next((value for value in self.values if value.day == day), None)


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
) -> int:
    """Evaluate the rules up to `day` and post the alerts that follow; return how many are new.

    Days after `day` that were evaluated before are evaluated again. The active alerts of each day
    of the window are written to the table `alerts`. `links` is called only for new alerts.
    """
    last = outbox.latest(database, _TOPIC)
    today = _last_day(lake, "measurements", day, last)
    window = trailing(today, window_days)
    values = metric_values(lake, checks, window[0] - _LOOK_BACK, today)
    daily = [rule for rule in rules if rule.metric not in ANNOTATOR_METRICS]
    watching = [each for rule in daily for each in _series(rule, values, today, last)]
    for past in window:
        _write_active(lake, past, watching)
    new = _new_messages(watching, last, today, topic=_TOPIC)
    _log.info(
        "Alert rules evaluated.",
        extra={"event": "alerts.evaluated", "dt": str(day), "until": str(today), "new": len(new)},
    )
    return sum(post(database, channels, _linked(message, links)) for message in new)


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
    values = annotator_values(lake, today - 2 * _LOOK_BACK, today)
    weekly = [rule for rule in rules if rule.metric in ANNOTATOR_METRICS]
    watching = [each for rule in weekly for each in _series(rule, values, today, last)]
    new = _new_messages(watching, last, today, topic=_ANNOTATOR_TOPIC)
    _log.info(
        "Alert rules on groups of moderators evaluated.",
        extra={"event": "alerts.evaluated", "dt": str(day), "until": str(today), "new": len(new)},
    )
    return sum(post(database, channels, _linked(message, links)) for message in new)


def active_alerts(rows: pa.Table) -> tuple[ActiveAlert, ...]:
    """Return one day's rows of the table `alerts` as alerts, the most severe first."""
    renamed = rows.drop_columns(["dt"]).rename_columns({"words": "description"})
    return most_severe_first(ActiveAlert(**row) for row in renamed.to_pylist())


def _last_day(
    lake: Lake, table: str, day: datetime.date, last: Mapping[str, OutboxMessage]
) -> datetime.date:
    """Return the last day that was evaluated: stopping earlier would withdraw later incidents."""
    # Not the last day with drift: a mistyped date may have left drift years ahead.
    measured = lake.days(table)[-1:]
    return max([day, *measured, *(message.dt for message in last.values())])


def _series(
    rule: AlertRule,
    values: Sequence[MetricValue],
    today: datetime.date,
    last: Mapping[str, OutboxMessage],
) -> Iterator[_Series]:
    settled = today - rule.settle_days * _ONE_DAY
    for subject, series in watched(rule, [each for each in values if each.day <= settled]).items():
        active = _active_incident(last.get(series_name(rule.name, subject)))
        incidents = reconciled_incidents(rule, series, active)
        yield _Series(rule=rule, subject=subject, values=series, incidents=incidents)


def _active_incident(last: OutboxMessage | None) -> Incident | None:
    """Return the incident that receivers see as active, from the last message to them."""
    if last is None or last.payload["facts"]["event"] != "opened":
        return None
    since = datetime.date.fromisoformat(last.payload["facts"]["since"])
    return Incident(since=since, opened=last.dt)


def _new_messages(
    watching: Sequence[_Series],
    last: Mapping[str, OutboxMessage],
    today: datetime.date,
    *,
    topic: str,
) -> list[OutboxMessage]:
    """Return the messages of a topic that follow its `last` ones."""
    new = [
        message for each in watching for message in _alerts(each, last.get(each.name), today, topic)
    ]
    unwatched = last.keys() - {each.name for each in watching}
    return new + [
        message for name in sorted(unwatched) for message in _withdrawn(last[name], today)
    ]


def _alerts(
    series: _Series, last: OutboxMessage | None, today: datetime.date, topic: str
) -> Iterator[OutboxMessage]:
    """Yield a message for each transition of a series after the message `last`."""
    active = _active_incident(last)
    current = series.on(active.opened) if active else None
    changes = transitions(active, series.incidents, today=today, current=current)
    for sequence, transition in enumerate(changes, last.sequence + 1 if last else 1):
        alert = incident_alert(series.rule, series.subject, transition, sequence)
        yield outbox_message(
            alert, transition.day, topic=topic, series=series.name, sequence=sequence
        )


def _withdrawn(last: OutboxMessage, today: datetime.date) -> Iterator[OutboxMessage]:
    """Yield a message if an incident is active whose rule was removed or has no data any more."""
    if active := _active_incident(last):
        facts, sequence = last.payload["facts"], last.sequence + 1
        alert = unwatched_alert(facts["rule"], facts["subject"], active.since, sequence)
        yield outbox_message(alert, today, topic=last.topic, series=last.series, sequence=sequence)


def _linked(message: OutboxMessage, links: Links) -> OutboxMessage:
    return replace(message, payload={**message.payload, "links": dict(links(message.dt))})


def _write_active(lake: Lake, day: datetime.date, watching: Sequence[_Series]) -> None:
    """Write the alerts that were active at the end of `day`, unless the table has them already."""
    rows = [
        {
            "dt": day,
            "rule": series.rule.name,
            "subject": series.subject,
            "severity": series.rule.severity,
            "since": incident.since,
            "words": describe_value(series.rule, value) if (value := series.on(day)) else "",
        }
        for series in watching
        for incident in series.incidents
        if incident.is_active_on(day)
    ]
    if rows != lake.table("alerts", day).to_pylist():
        lake.replace("alerts", day, [pa.RecordBatch.from_pylist(rows, schema=ALERTS)])
