"""What people do about incidents: acknowledge, silence, accept the new normal.

Actions are appended to the history of an incident and never changed. Notes are for the people who
run the installation: they are printed by `modwatch alerts history`, and never logged or sent.
"""

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from sqlalchemy import (
    ColumnElement,
    Connection,
    Date,
    Engine,
    Row,
    Text,
    cast,
    func,
    insert,
    literal,
    or_,
    select,
)
from sqlalchemy.dialects.postgresql import distinct_on

from modwatch.common.errors import IncidentError
from modwatch.monitoring.incidents.causes import Acceptances
from modwatch.monitoring.incidents.delivery import Channels
from modwatch.monitoring.incidents.messages.incidents import accepted_alert
from modwatch.monitoring.incidents.rules import SEVERITIES
from modwatch.monitoring.incidents.store import (
    IncidentChange,
    Kind,
    last_incidents,
    locked,
    save_changes,
)
from modwatch.review.empty_days import declare_empty
from modwatch.review.tables import incident, incident_event

ActionKind = Literal["acknowledge", "silence", "accept", "repair"]

#: The kinds of incidents that have a level.
_WITH_LEVEL = ("incident", "annotator_incident")

_TODAY = cast(func.timezone("UTC", func.now()), Date)
_FORGOTTEN_AFTER = datetime.timedelta(days=30)
_ONE_DAY = datetime.timedelta(days=1)
#: How long before an incident the level that it leaves as the new normal may have begun.
_LONGEST_LEVEL = datetime.timedelta(days=31)
_MAX_NAME, _MAX_NOTE = 80, 1000
#: A longer silence is a mistyped date, or a rule that should be disabled.
_LONGEST_SILENCE = datetime.timedelta(days=90)


@dataclass(frozen=True, kw_only=True)
class Action:
    """One thing that a person did about an incident."""

    #: Name or number of the incident.
    incident: str
    action: ActionKind
    #: Who did it.
    person: str
    note: str = ""
    #: Of `silence`: the last day, UTC, on which nothing is sent; a day that is over ends it.
    until: datetime.date | None = None
    #: Of `accept`: the first day on which the present level is the reference.
    day: datetime.date | None = None
    #: Of `accept`: the first day at that level.
    level_since: datetime.date | None = None


@dataclass(frozen=True, kw_only=True)
class OpenIncident:
    """An incident that receivers see as active, and what people have done about it."""

    #: By which people name it.
    number: int
    name: str
    #: What the newest evaluation found, or the last message where there is no evaluation.
    headline: str
    severity: str
    since: datetime.date
    opened: datetime.date
    #: The headline of its first message.
    first_headline: str = ""
    #: The value that the newest evaluation found, and its day; empty and None where the incident is
    #: about something else, such as a failed task.
    newest_value: str = ""
    evaluated: datetime.date | None = None
    #: Where most of a change of the scores is, as a sentence; empty: nowhere, or no such change.
    segment: str = ""
    #: The text of the last message, and the pages that it links, by name.
    text: str = ""
    links: Mapping[str, str] = field(default_factory=dict)
    acknowledged_by: str | None = None
    silent_until: datetime.date | None = None

    @property
    def at_first(self) -> str:
        """The headline of its first message if it differs from the newest one, else empty."""
        return self.first_headline if self.first_headline != self.headline else ""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line of the history of incidents: a message or an action."""

    at: datetime.datetime
    incident: str
    #: The event of a message, or the kind of an action.
    what: str
    #: Title of the message, or person and note.
    text: str


@dataclass(frozen=True, kw_only=True)
class History:
    """Messages and actions in the order in which they were stored."""

    #: The newest, the last one last.
    entries: Sequence[Entry]
    #: How many there are before them.
    earlier: int


def record(database: Engine, action: Action) -> None:
    """Store an action.

    Raises:
        IncidentError: the incident is not active, or a name or note is empty, too long, or has
            control characters, or the silence is longer than 90 days.
    """
    if action.until is not None:
        check_silence(action.until, datetime.datetime.now(datetime.UTC).date())
    _checked("person", action.person, _MAX_NAME)
    if action.note:
        _checked("note", action.note, _MAX_NOTE)
    with database.begin() as connection:
        _store_action(connection, _active(connection, action.incident).id, action)


def check_silence(until: datetime.date, today: datetime.date) -> None:
    """Refuse a silence that lasts longer than 90 days.

    Raises:
        IncidentError: `until` is too far ahead.

    >>> check_silence(datetime.date(2026, 4, 1), datetime.date(2026, 1, 1))
    """
    latest = today + _LONGEST_SILENCE
    if until > latest:
        raise IncidentError(
            f"{until} is more than {_LONGEST_SILENCE.days} days ahead; silence until {latest} at "
            "most, and disable the alert rule if its messages are never wanted"
        )


def repair(
    database: Engine,
    day: datetime.date,
    person: str,
    *,
    run: Callable[[datetime.date, str], str],
    empty: bool = False,
) -> str:
    """Run a day again, and record it with its failed tasks; return what was done, as a sentence.

    Args:
        database: of the incidents.
        day: to run again.
        person: who acts.
        run: runs the day again for a person, and returns what it did, without full stop.
        empty: the person declares that the day has no comments.

    Raises:
        IncidentError: the name is empty, too long, or has control characters; or from `run`.
    """
    _checked("person", person, _MAX_NAME)
    if empty:
        declare_empty(database, day, person)
    said = run(day, person)
    mine = incident.c
    failed = select(mine.id, mine.name).where(
        mine.kind == "failure", mine.since == day, mine.ended.is_(None)
    )
    with database.begin() as connection:
        for row in connection.execute(failed).all():
            action = Action(incident=row.name, action="repair", person=person)
            _store_action(connection, row.id, action)
    return f"{said}{'. It counts as a day without comments' * empty}."


def accept(
    database: Engine,
    channels: Channels,
    name: str,
    *,
    person: str,
    note: str,
    measured: Sequence[datetime.date],
    level_since: datetime.date | None = None,
) -> None:
    """Accept the present level as the new normal: it ends the incident, and receivers are notified.

    From the day after the last of the `measured` days, which are in order, changes are measured
    from the level since `level_since` (default: the beginning of the incident); a rule on a level
    opens again only after a good value.

    Raises:
        IncidentError: the incident is not active, the note is missing, no day is measured, or
            `level_since` is later than the last measured day, before the first, or more than 31
            days before the incident.
    """
    _checked("person", person, _MAX_NAME)
    _checked("note", note, _MAX_NOTE)
    if not measured:
        raise IncidentError("no day is measured: there is no level to accept")
    first, day = measured[0], measured[-1]
    with database.connect() as connection:
        kind: Kind = _active(connection, name).kind
    if kind not in _WITH_LEVEL:
        raise IncidentError(f"{name!r} has no level to accept; acknowledge or silence it")
    with locked(database, kind) as connection:
        row = _active(connection, name)
        name = row.name
        active = last_incidents(connection, kind, name)[name]
        since, effective = level_since or active.since, max(day, active.opened) + _ONE_DAY
        if since >= effective:
            raise IncidentError(
                f"--level-since {since} is later than {day}, the last evaluated day"
            )
        if level_since is not None:
            _check_level(level_since, first, active.since)
        action = Action(
            incident=name,
            action="accept",
            person=person,
            note=note,
            day=effective,
            level_since=since,
        )
        _store_action(connection, row.id, action)
        alert = accepted_alert(active, since, person)
        ended = active.ended_by("accepted", alert, max(day, active.notified_on))
        save_changes(connection, channels, kind, [IncidentChange(alert=alert, record=ended)])


def _check_level(
    level_since: datetime.date, first: datetime.date, incident_since: datetime.date
) -> None:
    """Refuse a level since a day that was not measured, or long before the incident."""
    earliest = max(first, incident_since - _LONGEST_LEVEL)
    if level_since >= earliest:
        return
    reason = (
        f"before {first}, the first measured day"
        if level_since < first
        else f"more than {_LONGEST_LEVEL.days} days before the incident began on {incident_since}"
    )
    raise IncidentError(f"--level-since {level_since} is {reason}; name {earliest} or a later day")


def acceptances(database: Engine) -> Acceptances:
    """Return what people have accepted as the new normal, by incident."""
    mine = incident_event.c
    accepted = (
        select(incident.c.name, mine.day, mine.level_since)
        .join_from(incident_event, incident)
        .where(mine.event == "accept")
        .order_by(mine.id)
    )
    found: dict[str, list[tuple[datetime.date, datetime.date]]] = {}
    with database.connect() as connection:
        for name, day, level_since in connection.execute(accepted):
            found.setdefault(name, []).append((day, level_since))
    return found


def silenced(connection: Connection) -> dict[str, datetime.date]:
    """Return the silenced incidents, with the last day, UTC, on which nothing is sent."""
    mine = incident_event.c
    last = (
        select(incident.c.name, mine.until)
        .join_from(incident_event, incident)
        .ext(distinct_on(incident.c.name))
        .where(mine.event == "silence")
        .order_by(incident.c.name, mine.id.desc())
        .subquery()
    )
    lasting = select(last.c.name, last.c.until).where(last.c.until >= _TODAY)
    return {row.name: row.until for row in connection.execute(lasting)}


def open_incidents(database: Engine) -> list[OpenIncident]:
    """Return the incidents that receivers see as active: the most severe first, then the oldest.

    A failed task that was not repaired is left out 30 days after the message.
    """
    mine = incident_event.c
    recent = incident.c.created_at > func.now() - _FORGOTTEN_AFTER
    active = select(incident).where(
        incident.c.ended.is_(None), or_(incident.c.kind != "failure", recent)
    )
    acknowledged = (
        select(mine.incident_id, mine.person)
        .join_from(incident_event, incident)
        .ext(distinct_on(mine.incident_id))
        .where(mine.event == "acknowledge", incident.c.ended.is_(None))
        .order_by(mine.incident_id, mine.id.desc())
    )
    with database.connect() as connection:
        silent = silenced(connection)
        people = {row.incident_id: row.person for row in connection.execute(acknowledged)}
        found = [
            _open_incident(row, people.get(row.id), silent.get(row.name))
            for row in connection.execute(active)
        ]
    return sorted(
        found, key=lambda found: (-SEVERITIES.index(found.severity), found.since, found.name)
    )


def acknowledged_by(database: Engine, name: str) -> str | None:
    """Return who acknowledged an active incident; None: no one, or it is not active."""
    found = (found for found in open_incidents(database) if name in (found.name, str(found.number)))
    return next((incident.acknowledged_by for incident in found), None)


def history(database: Engine, name: str | None = None, *, newest: int = 50) -> History:
    """Return the `newest` messages and actions of all incidents or one.

    Args:
        database: the review database.
        name: of an incident, or its number; None: all.
        newest: how many to return, from 1.
    """
    mine = incident_event.c
    stored = (
        select(incident_event, incident.c.name, func.count().over().label("total"))
        .join_from(incident_event, incident)
        .where(literal(True) if name is None else _is_named(name))
        .order_by(mine.id.desc())
        .limit(newest)
    )
    with database.connect() as connection:
        rows = connection.execute(stored).all()
    entries = [_entry(row) for row in reversed(rows)]
    return History(entries=entries, earlier=rows[0].total - len(rows) if rows else 0)


def _entry(row: Row[Any]) -> Entry:
    text = row.title
    if text is None:
        parts = [
            f"by {row.person}",
            f"until {row.until}" if row.until else "",
            f"level since {row.level_since}, from {row.day}" if row.day else "",
        ]
        text = ", ".join(filter(None, parts)) + (f": {row.note}" if row.note else "")
    return Entry(at=row.created_at, incident=row.name, what=row.event, text=text)


def _open_incident(
    row: Row[Any], acknowledged_by: str | None, until: datetime.date | None
) -> OpenIncident:
    return OpenIncident(
        number=row.id,
        name=row.name,
        headline=row.newest_headline or row.headline,
        first_headline=row.first_headline,
        severity=row.severity,
        since=row.since,
        opened=row.opened,
        newest_value=row.newest_value or "",
        evaluated=row.evaluated,
        segment=row.segment,
        text=row.text,
        links=row.links,
        acknowledged_by=acknowledged_by,
        silent_until=until,
    )


def _is_named(name: str) -> ColumnElement[bool]:
    """Return the condition of an incident's name or number."""
    mine = incident.c
    return cast(mine.id, Text) == name if name.isdecimal() else mine.name == name


def _active(connection: Connection, name: str) -> Row[Any]:
    mine = incident.c
    active = select(incident).where(_is_named(name), mine.ended.is_(None))
    row = connection.execute(active.limit(1)).first()
    if row is None:
        raise IncidentError(
            f"no incident {name!r} is active; `modwatch alerts list` names those that are"
        )
    return row


def _store_action(connection: Connection, row: int, action: Action) -> None:
    columns = asdict(action)
    del columns["incident"]
    columns["event"] = columns.pop("action")
    connection.execute(insert(incident_event).values(incident_id=row, **columns))


def _checked(what: str, text: str, most: int) -> None:
    if not text.strip() or len(text) > most or not text.isprintable():
        raise IncidentError(
            f"the {what} must have 1 to {most} characters on one line; shorten or correct it"
        )
