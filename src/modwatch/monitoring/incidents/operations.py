"""Alerts of no alert rule: a task failed, a due day is not measured, a severe escalation waits.

The alert rules run in the last DAG of the day, so they raise no alert when it does not run. The
heartbeat is therefore checked by a scheduler of its own, such as cron.
"""

import datetime
import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from sqlalchemy import Engine

from modwatch.common.addresses import day_url, overview_url
from modwatch.common.errors import DatabaseError, LakeError, ModwatchError
from modwatch.data.lake.delta import Lake
from modwatch.data.validation.result import CheckStore
from modwatch.monitoring.incidents.delivery import (
    Channels,
    deliver,
    outbox_message,
    post,
    send_directly,
)
from modwatch.monitoring.incidents.messages.alert import (
    Alert,
    heartbeat_alert,
    heartbeat_recovered_alert,
    severe_escalation_alert,
)
from modwatch.monitoring.incidents.store import (
    IncidentChange,
    IncidentRecord,
    Kind,
    failures,
    last_incidents,
    locked,
    save_changes,
)
from modwatch.review.workload import escalations

_log = logging.getLogger(__name__)

_HEARTBEAT, _ESCALATION = "heartbeat", "escalation"
_ONE_DAY = datetime.timedelta(days=1)

#: Time between two looks at the queue.
_PAUSE_SECONDS = 30.0


def report_failure(
    open_database: Callable[[], Engine], channels: Channels, failure: Alert, day: datetime.date
) -> None:
    """Send the alert for a failed task of `day` once; without the database, at every call.

    After `report_repair`, another failure of the same task and day is an alert of its own.

    Raises:
        AlertError: some channel failed.
    """

    def change(last: IncidentRecord | None) -> IncidentChange | None:
        if last and last.is_active:
            return None
        if last is None:
            return _opened(failure, failure.key, since=day, day=day)
        sequence = last.sequence + 1
        again = replace(failure, key=f"{failure.key}/{sequence}")
        return _opened(again, failure.key, since=day, day=day, sequence=sequence)

    try:
        database = open_database()
        _change(database, channels, "failure", failure.key, change)
        deliver(database, channels)
    except DatabaseError:
        send_directly(channels, failure, cause="failure")


def report_repair(database: Engine, channels: Channels, repair: Alert, day: datetime.date) -> bool:
    """Send the alert that a failed task has succeeded; return whether its failure had been sent.

    `repair` has the key of the alert for the failure.

    Raises:
        AlertError: some channel failed; the alert stays pending there.
    """

    def change(last: IncidentRecord | None) -> IncidentChange | None:
        if last is None or not last.is_active:
            return None
        sequence = last.sequence + 1
        alert = replace(repair, key=f"{repair.key}/{sequence}", links=last.links)
        return IncidentChange(alert=alert, record=last.ended_by("recovered", alert, day))

    repaired = _change(database, channels, "failure", repair.key, change)
    if repaired:
        deliver(database, channels)
    return repaired


def _change(
    database: Engine,
    channels: Channels,
    kind: Kind,
    name: str,
    change: Callable[[IncidentRecord | None], IncidentChange | None],
) -> bool:
    """Store what `change` returns for the last incident of a name; return whether it is any."""
    with locked(database, kind) as connection:
        changed = change(last_incidents(connection, kind, name).get(name))
        if changed:
            save_changes(connection, channels, kind, [changed])
    return changed is not None


def _opened(
    alert: Alert, name: str, *, since: datetime.date, day: datetime.date, sequence: int = 1
) -> IncidentChange:
    headline = str(alert.facts["headline"])
    record = IncidentRecord(
        name=name,
        severity="critical",
        since=since,
        opened=day,
        notified_on=day,
        sequence=sequence,
        headline=headline,
        first_headline=headline,
        text=alert.text,
        links=alert.links,
    )
    return IncidentChange(alert=alert, record=record)


@dataclass(frozen=True, kw_only=True)
class Heartbeat:
    """Whether the day that is due is measured."""

    due: datetime.date
    #: The last measured day up to the due one; None: there is none, or the tables cannot be read.
    measured: datetime.date | None

    @property
    def is_late(self) -> bool:
        """Whether the due day is missing."""
        return self.measured != self.due

    @property
    def since(self) -> datetime.date:
        """The first missing day; the due one if no day is measured."""
        return self.measured + _ONE_DAY if self.measured else self.due


def due_day(now: datetime.datetime, hour: int) -> datetime.date:
    """Return the last day that should be measured: by `hour` UTC, the day before.

    Args:
        now: any time zone; clock changes of it make no difference.
        hour: 0 to 23, UTC.

    >>> noon = datetime.datetime(2026, 3, 12, 12, tzinfo=datetime.UTC)
    >>> due_day(noon, 12).day, due_day(noon, 13).day
    (11, 10)
    """
    utc = now.astimezone(datetime.UTC)
    return utc.date() - (_ONE_DAY if utc.hour >= hour else 2 * _ONE_DAY)


def check_heartbeat(
    lake: Lake,
    checks: CheckStore,
    open_database: Callable[[], Engine],
    channels: Channels,
    *,
    now: datetime.datetime,
    hour: int,
    airflow_url: str,
) -> Heartbeat:
    """Alert once when the due day is not measured, and once when it is; return what was found.

    Without the database the alert is sent at every call, and stored nowhere. `airflow_url` is where
    people look; it is not opened. The due day's validation page is linked if `checks` has one.

    Raises:
        AlertError: some channel failed.
    """
    found = _look(lake, due_day(now, hour))
    links = _links(airflow_url, found, pages_of(checks, airflow_url, found.due))

    def change(last: IncidentRecord | None) -> IncidentChange | None:
        active = last if last and last.is_active else None
        if found.is_late == (active is not None):
            return None
        sequence = last.sequence + 1 if last else 1
        if active:
            recovered = heartbeat_recovered_alert(
                active.since, active.headline, found.due, sequence, links
            )
            ended = active.ended_by("recovered", recovered, found.due)
            return IncidentChange(alert=recovered, record=ended)
        causes = [failed.headline for failed in failures(database, found.since)]
        alert = heartbeat_alert(
            found.due, found.since, found.measured, hour, sequence, links, causes
        )
        return _opened(alert, _HEARTBEAT, since=found.since, day=found.due, sequence=sequence)

    try:
        database = open_database()
        _change(database, channels, "heartbeat", _HEARTBEAT, change)
        deliver(database, channels)
    except DatabaseError:
        if not found.is_late:
            raise
        alert = heartbeat_alert(found.due, found.since, found.measured, hour, 1, links)
        send_directly(channels, alert, cause=_HEARTBEAT)
    return found


def _look(lake: Lake, due: datetime.date) -> Heartbeat:
    try:
        known = [day for day in lake.days("estimates") if day <= due]
    except LakeError:
        known = []
    return Heartbeat(due=due, measured=max(known, default=None))


def pages_of(checks: CheckStore, airflow_url: str, day: datetime.date) -> dict[str, str]:
    """Return the pages on which to look into a day: Modwatch's, and that of its validation."""
    links = {"Modwatch": overview_url(airflow_url)}
    with suppress(LakeError):
        if checks.read_page(day) is not None:
            links["validation"] = day_url(airflow_url, day, "validation")
    return links


def _links(airflow_url: str, found: Heartbeat, of_day: Mapping[str, str]) -> dict[str, str]:
    links = {**of_day, "Airflow": f"{airflow_url.rstrip('/')}/dags/score_comments/runs"}
    if found.measured:
        links["MLflow"] = day_url(airflow_url, found.measured, "mlflow")
    return links


def alert_severe_escalations(database: Engine, channels: Channels, page: str) -> int:
    """Post an alert for each severe escalation that waits or is overdue; return how many are new.

    `page` is where a lead resolves them. The same call again posts nothing twice.

    Raises:
        AlertError: some channel failed; its alerts stay pending.
    """
    alerts = [
        (
            severe_escalation_alert(
                escalation.item_id, escalation.severe_due_at, escalation.overdue, page
            ),
            escalation.dt,
        )
        for escalation in escalations(database)
        if escalation.severe_due_at is not None
    ]
    new = sum(
        post(database, channels, outbox_message(alert, day, topic=_ESCALATION))
        for alert, day in alerts
    )
    if alerts:
        deliver(database, channels)
    return new


def watch_escalations(
    database: Engine, channels: Channels, page: str, stop: threading.Event
) -> None:
    """Alert of severe escalations until `stop` is set; errors are logged, and tried again."""
    while not stop.wait(_PAUSE_SECONDS):
        try:
            alert_severe_escalations(database, channels, page)
        except ModwatchError as exc:
            _log.warning(
                "Severe escalations could not be alerted of: %s.",
                exc,
                extra={"event": "alerts.escalations_failed"},
            )
