"""Evaluates the alert rules over the trailing days, and notifies receivers of what changed.

The functions may be run again after a crash, and at the same time: no message is sent twice.
"""

import datetime
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import pyarrow as pa
from sqlalchemy import Connection, Engine

from modwatch.common.days import trailing
from modwatch.data.lake.delta import Lake
from modwatch.data.lake.schemas import ALERTS
from modwatch.data.validation.profiles import seasonal_volumes
from modwatch.data.validation.result import CheckStore
from modwatch.monitoring.incidents.actions import acceptances, silenced
from modwatch.monitoring.incidents.causes import Cause, evaluate_rules
from modwatch.monitoring.incidents.delivery import Channels
from modwatch.monitoring.incidents.messages.incidents import ActiveAlert, most_severe_first
from modwatch.monitoring.incidents.metrics import (
    ANNOTATOR_METRICS,
    annotator_values,
    metric_values,
    with_usual_volumes,
)
from modwatch.monitoring.incidents.rules import AlertRule
from modwatch.monitoring.incidents.store import (
    IncidentChange,
    IncidentRecord,
    Kind,
    failures,
    last_incidents,
    locked,
    save_changes,
    save_evaluation,
)
from modwatch.review.empty_days import declared_empty
from modwatch.review.queue.metrics import days_since_routed
from modwatch.statistics.drift.seasons import Calendar

_log = logging.getLogger(__name__)

_ONE_DAY = datetime.timedelta(days=1)

#: Days that are read: a streak which ends in the window, and the level before a change.
_LOOK_BACK = 60 * _ONE_DAY

#: Days before an active incident that are read, however long it lasts: the level before it.
_BEFORE_CHANGE = 30 * _ONE_DAY

#: Days of comparisons of groups of moderators that are read: two of them at least.
_COMPARISONS = 56 * _ONE_DAY

#: Pages to link from an alert about a day, by name.
Links = Callable[[datetime.date], Mapping[str, str]]

#: Metrics of the segment that explains a change.
_SEGMENTS = ("segment_flagged", "segment_prob")

#: Features that depend on the scores of a day.
_ABOUT_SCORES = {"prob", "uncertainty", "flagged"}


def evaluate(
    lake: Lake,
    checks: CheckStore,
    database: Engine,
    day: datetime.date,
    *,
    rules: Sequence[AlertRule],
    channels: Channels,
    calendar: Calendar,
    window_days: int,
    links: Links,
) -> int:
    """Evaluate the rules up to `day` and post the alerts that follow; return how many are new.

    Days after `day` that were evaluated before are evaluated again. The active alerts of each day
    of the window are written to the table `alerts`. `links` is called only for new alerts.
    """
    daily = [rule for rule in rules if rule.metric not in ANNOTATOR_METRICS]
    with locked(database, "incident") as connection:
        known = last_incidents(connection, "incident")
        today = _last_day(lake, "estimates", day, known)
        active = [record.since - _BEFORE_CHANGE for record in known.values() if record.is_active]
        first = min([today - _LOOK_BACK, *active])
        # A message on the failed task has said why the day was rejected, or has no rows.
        failed = {record.since for record in failures(database, first)}
        values = [
            value
            for value in metric_values(lake, checks, first, today)
            if value.metric != "checks_rejected" or value.day not in failed
        ]
        causes, changes = evaluate_rules(
            daily,
            with_usual_volumes(
                values,
                seasonal_volumes(lake, first, today),
                {*declared_empty(database, first, today), *failed},
                calendar,
            ),
            known,
            today,
            window_days=window_days,
            accepted=acceptances(database),
            routed=days_since_routed(database, first, today),
        )
        changes = [with_segment(lake, change) for change in changes]
        new = _save(connection, channels, "incident", changes, links)
        told = last_incidents(connection, "incident")
        _write_alerts(lake, trailing(today, window_days), causes, daily, told)
        save_evaluation(connection, "incident", today, _newest(causes, today))
    _log_evaluation(day, today, len(changes))
    return new


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
    weekly = [rule for rule in rules if rule.metric in ANNOTATOR_METRICS]
    with locked(database, "annotator_incident") as connection:
        known = last_incidents(connection, "annotator_incident")
        today = _last_day(lake, "annotator_groups", day, known)
        values = annotator_values(lake, today - _COMPARISONS, today)
        accepted = acceptances(database)
        causes, changes = evaluate_rules(weekly, values, known, today, accepted=accepted)
        new = _save(connection, channels, "annotator_incident", changes, links)
        save_evaluation(connection, "annotator_incident", today, _newest(causes, today))
    _log_evaluation(day, today, len(changes))
    return new


def active_alerts(rows: pa.Table) -> tuple[ActiveAlert, ...]:
    """Return one day's rows of the table `alerts` as alerts, the most severe first."""
    stored = rows.drop_columns(["dt"]).to_pylist()
    # What an alert does not have is null.
    known: list[dict[str, Any]] = [{key: row[key] or "" for key in row} for row in stored]
    return most_severe_first(ActiveAlert(**row) for row in known)


def _last_day(
    lake: Lake, table: str, day: datetime.date, known: Mapping[str, IncidentRecord]
) -> datetime.date:
    """Return the last day that was evaluated: stopping earlier would withdraw later incidents."""
    # Not the last day with drift: a mistyped date may have left drift years ahead.
    measured = lake.days(table)[-1:]
    return max([day, *measured, *(record.notified_on for record in known.values())])


def _save(
    connection: Connection,
    channels: Channels,
    kind: Kind,
    changes: Sequence[IncidentChange],
    links: Links,
) -> int:
    """Store changes, except of silenced incidents, which are due when the silence is over."""
    silent = silenced(connection)
    heard = [_linked(change, links) for change in changes if change.record.name not in silent]
    return save_changes(connection, channels, kind, heard)


def _linked(change: IncidentChange, links: Links) -> IncidentChange:
    pages = dict(links(change.record.notified_on))
    return IncidentChange(
        alert=replace(change.alert, links=pages), record=replace(change.record, links=pages)
    )


def _newest(causes: Sequence[Cause], today: datetime.date) -> dict[str, tuple[str, str]]:
    active = ((cause.name, cause.alert_on(today)) for cause in causes)
    return {name: (alert.headline, alert.description) for name, alert in active if alert}


def _log_evaluation(day: datetime.date, today: datetime.date, new: int) -> None:
    _log.info(
        "Alert rules evaluated.",
        extra={"event": "alerts.evaluated", "dt": str(day), "until": str(today), "new": new},
    )


def _write_alerts(
    lake: Lake,
    window: Sequence[datetime.date],
    causes: Sequence[Cause],
    rules: Sequence[AlertRule],
    told: Mapping[str, IncidentRecord],
) -> None:
    """Write the alerts that were active at the end of each day, where they are not written yet."""
    metrics = {rule.name: rule.metric for rule in rules}
    kept: dict[datetime.date, list[dict[str, Any]]] = {day: [] for day in window}
    for row in lake.rows_between("alerts", window[0], window[-1]):
        kept[row["dt"]].append(row)
    for day in window:
        rows = [
            _alert_row(lake, day, alert, metrics[alert.rule])
            for cause in causes
            if (alert := cause.alert_on(day, told.get(cause.name)))
        ]
        if rows != kept[day]:
            lake.replace("alerts", day, [pa.RecordBatch.from_pylist(rows, schema=ALERTS)])


def _alert_row(lake: Lake, day: datetime.date, alert: ActiveAlert, metric: str) -> dict[str, Any]:
    segment = leading_segment(lake, day, metric, alert.subject)
    return {**asdict(alert), "dt": day, "segment": segment and segment["reason"]}


def with_segment(lake: Lake, change: IncidentChange) -> IncidentChange:
    """Return a change with the segment that most of a change of the scores is in.

    The change is returned as it is if the incident ends, is about anything else, or if no segment
    of its day stands out.
    """
    alert, record = change.alert, change.record
    if not record.is_active:
        return change
    facts = alert.facts
    leading = leading_segment(lake, record.notified_on, facts["metric"], facts["subject"])
    if leading is None:
        return change
    sentence = leading["reason"]
    numbers = {name: leading[name] for name in ("n", "reference_n", "low", "high")}
    segment = {"name": leading["feature"], "effect": leading["value"], **numbers}
    segment["sentence"] = sentence
    text = f"{alert.text}\nMost of it: {sentence}."
    return IncidentChange(
        alert=replace(alert, text=text, facts={**alert.facts, "segment": segment}),
        record=replace(record, text=text, segment=sentence),
    )


def leading_segment(
    lake: Lake, day: datetime.date, metric: str, subject: str
) -> dict[str, Any] | None:
    """Return the segment that most of a change of the scores of a day is in, as a row of `DRIFT`.

    Of a change of the flagged share, the one that explains that if there is one, else the one that
    explains the mean score; of other changes of the scores, the other way round. None: no segment
    stands out, or the metric and its subject are about anything else.
    """
    about = {metric, subject.partition(",")[0]}
    if not about & _ABOUT_SCORES:
        return None
    flags = "flagged" in about
    rows = (row for row in lake.table("drift", day).to_pylist() if row["metric"] in _SEGMENTS)
    return min(rows, key=lambda row: (row["metric"] == "segment_prob") == flags, default=None)
