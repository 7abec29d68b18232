"""The table `incident`: what receivers know of each incident, and what was found of it last.

It is written in the transaction that stores the messages. `locked` lets one process at a time
change the incidents of a kind, so that two evaluations send no message twice.
"""

import datetime
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

from sqlalchemy import Connection, Engine, bindparam, func, insert, select, update
from sqlalchemy.dialects.postgresql import distinct_on

from modwatch.monitoring.incidents.delivery import Channels, outbox_message, store_messages
from modwatch.monitoring.incidents.incidents import Incident
from modwatch.monitoring.incidents.messages.alert import Alert
from modwatch.monitoring.incidents.rules import Severity
from modwatch.review.tables import incident, incident_event

#: Incidents of rules on days, of rules on groups of moderators, of failed tasks, and of days that
#: are not measured. Those of groups of moderators have days of their own: those on which labels
#: were given, which may be years after those of the comments.
Kind = Literal["incident", "annotator_incident", "failure", "heartbeat"]

Outcome = Literal["recovered", "withdrawn", "accepted"]


@dataclass(frozen=True, kw_only=True)
class IncidentRecord:
    """What receivers know of an incident: a row of the table `incident`."""

    #: Its row; None before it is stored.
    id: int | None = None
    name: str
    severity: Severity
    #: First day, and the day on which it opened.
    since: datetime.date
    opened: datetime.date
    #: `since` and `opened` of the incidents of its rules, by rule and subject.
    members: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    #: The rule and subject that the last message leads with; empty where there is no rule.
    rule: str = ""
    subject: str = ""
    #: Day, number, headline, text and links of the last message, and the headline of the first.
    notified_on: datetime.date
    sequence: int = 1
    headline: str
    first_headline: str
    text: str
    links: Mapping[str, str] = field(default_factory=dict)
    #: Where most of a change is, as a sentence.
    segment: str = ""
    #: The day of its end, and how it ended; None while it is active.
    ended: datetime.date | None = None
    outcome: Outcome | None = None

    @property
    def is_active(self) -> bool:
        """Whether receivers see it as active."""
        return self.ended is None

    @property
    def incident(self) -> Incident | None:
        """The incident if receivers see it as active, else None."""
        if not self.is_active:
            return None
        return Incident(since=self.since, opened=self.opened, severity=self.severity)

    def overlaps(self, other: Incident) -> bool:
        """Return whether an incident of the same cause was active on a day of this one."""
        last = datetime.date.max
        return other.opened < (self.ended or last) and self.opened < (other.recovered or last)

    def ended_by(self, outcome: Outcome, alert: Alert, day: datetime.date) -> "IncidentRecord":
        """Return the record after a message of its end."""
        return replace(
            self,
            notified_on=day,
            sequence=self.sequence + 1,
            text=alert.text,
            links=alert.links,
            ended=day,
            outcome=outcome,
        )

    def member_incidents(self) -> Iterator[tuple[str, Incident]]:
        """Yield the incidents of its rules that receivers see as active, by rule and subject."""
        for name, member in self.members.items() if self.is_active else ():
            since, opened = map(datetime.date.fromisoformat, (member["since"], member["opened"]))
            yield name, Incident(since=since, opened=opened, severity=self.severity)


@dataclass(frozen=True, kw_only=True)
class IncidentChange:
    """A change of an incident that receivers are notified of."""

    alert: Alert
    #: The incident after the change.
    record: IncidentRecord

    @property
    def event(self) -> str:
        """opened | failed | escalated | recovered | withdrawn | accepted."""
        return str(self.alert.facts["event"])


_COLUMNS = tuple(name for name in IncidentRecord.__dataclass_fields__ if name != "id")

#: What may change after an incident has opened.
_CHANGING = tuple(name for name in _COLUMNS if name not in ("name", "opened", "first_headline"))

_UPDATE = (
    update(incident)
    .where(incident.c.id == bindparam("row"))
    .values({name: bindparam(f"new_{name}") for name in _CHANGING})
)


@contextmanager
def locked(database: Engine, kind: Kind) -> Iterator[Connection]:
    """Yield a transaction in which no other process changes incidents of this kind."""
    with database.begin() as connection:
        connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(kind, 0))))
        yield connection


def last_incidents(
    connection: Connection, kind: Kind, name: str | None = None
) -> dict[str, IncidentRecord]:
    """Return the last incident of each name, or of one, whether it is active or over."""
    mine = incident.c
    last = (
        select(*(mine[column] for column in ("id", *_COLUMNS)))
        .ext(distinct_on(mine.name))
        .where(mine.kind == kind, *([mine.name == name] if name else []))
        .order_by(mine.name, mine.id.desc())
    )
    return {row["name"]: IncidentRecord(**row) for row in connection.execute(last).mappings()}


def failures(database: Engine, first: datetime.date) -> list[IncidentRecord]:
    """Return the failed tasks of days from `first` on that were not repaired, by day."""
    with database.connect() as connection:
        known = last_incidents(connection, "failure").values()
    active = (record for record in known if record.is_active and record.since >= first)
    return sorted(active, key=lambda record: (record.since, record.id))


def save_changes(
    connection: Connection, channels: Channels, kind: Kind, changes: Sequence[IncidentChange]
) -> int:
    """Store changes and their messages; return how many messages are new."""
    records = [change.record for change in changes]
    # First, because an incident of the same name may have opened since.
    known = [
        # Its parameters may not have the names of columns.
        {"row": record.id, **{f"new_{name}": getattr(record, name) for name in _CHANGING}}
        for record in records
        if record.id is not None
    ]
    if known:
        connection.execute(_UPDATE, known)
    ids = {}
    new = [
        {"kind": kind, **{name: getattr(record, name) for name in _COLUMNS}}
        for record in records
        if record.id is None
    ]
    if new:
        opened = insert(incident).returning(incident.c.name, incident.c.id)
        ids = {row.name: row.id for row in connection.execute(opened, new)}
    events = [
        {
            "incident_id": change.record.id or ids[change.record.name],
            "event": change.event,
            "title": change.alert.title,
        }
        for change in changes
    ]
    if events:
        connection.execute(insert(incident_event), events)
    messages = [
        outbox_message(
            change.alert,
            change.record.notified_on,
            topic=kind,
            series=change.record.name,
            sequence=change.record.sequence,
        )
        for change in changes
    ]
    return store_messages(connection, channels, messages)


def save_evaluation(
    connection: Connection,
    kind: Kind,
    day: datetime.date,
    found: Mapping[str, tuple[str, str]],
) -> None:
    """Store the headline and the value that an evaluation found, by name of an active incident."""
    mine = incident.c
    changed = (
        update(incident)
        .where(mine.kind == kind, mine.name == bindparam("of"), mine.ended.is_(None))
        .values(
            evaluated=bindparam("on"),
            newest_headline=bindparam("new_headline"),
            newest_value=bindparam("new_value"),
        )
    )
    rows = [
        {"of": name, "on": day, "new_headline": headline, "new_value": value}
        for name, (headline, value) in found.items()
    ]
    if rows:
        connection.execute(changed, rows)
