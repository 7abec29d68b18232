"""The alert that nothing ran: a day is not measured although it is due.

The alert rules run in the last DAG of the day and say nothing when it does not run. This check is
for a scheduler of its own, such as cron.
"""

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlalchemy import Engine

from modwatch.common.addresses import day_url, overview_url
from modwatch.common.errors import DatabaseError, LakeError
from modwatch.data.lake.delta import Lake
from modwatch.data.validation.store import CheckStore
from modwatch.monitoring.incidents.delivery import (
    Channels,
    deliver,
    outbox_message,
    post,
    send_directly,
)
from modwatch.monitoring.incidents.messages.operations import (
    heartbeat_alert,
    heartbeat_recovered_alert,
)
from modwatch.review.outbox import messages as outbox

_SERIES = "heartbeat"
_ONE_DAY = datetime.timedelta(days=1)


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
    links = _links(airflow_url, found, validated=_has_page(checks, found.due))
    try:
        database = open_database()
        _post(database, channels, found, hour, links)
        deliver(database, channels)
    except DatabaseError:
        if not found.is_late:
            raise
        send_directly(channels, heartbeat_alert(found.due, found.measured, hour, 1, links))
    return found


def _look(lake: Lake, due: datetime.date) -> Heartbeat:
    try:
        known = [day for day in lake.days("measurements") if day <= due]
    except LakeError:
        known = []
    return Heartbeat(due=due, measured=max(known, default=None))


def _has_page(checks: CheckStore, day: datetime.date) -> bool:
    try:
        return checks.read_page(day) is not None
    except LakeError:
        return False


def _links(airflow_url: str, found: Heartbeat, *, validated: bool) -> dict[str, str]:
    """Return the pages to look at that exist: of the due day, and of the last measured one."""
    links = {
        "Modwatch": overview_url(airflow_url),
        "Airflow": f"{airflow_url.rstrip('/')}/dags/score_comments/runs",
    }
    if validated:
        links["validation"] = day_url(airflow_url, found.due, "validation")
    if found.measured:
        links["MLflow"] = day_url(airflow_url, found.measured, "mlflow")
    return links


def _post(
    database: Engine, channels: Channels, found: Heartbeat, hour: int, links: Mapping[str, str]
) -> None:
    last = outbox.latest_of(database, _SERIES, _SERIES)
    facts = last.payload["facts"] if last else {"event": "recovered"}
    sequence = last.sequence + 1 if last else 1
    if found.is_late == (facts["event"] == "opened"):
        return
    alert = (
        heartbeat_alert(found.due, found.measured, hour, sequence, links)
        if found.is_late
        else heartbeat_recovered_alert(facts, found.due, sequence, links)
    )
    message = outbox_message(alert, found.due, topic=_SERIES, series=_SERIES, sequence=sequence)
    post(database, channels, message)
