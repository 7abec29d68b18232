"""What people do about incidents: acknowledge, assign, comment, silence, accept the new normal.

Actions are appended to the review database and never changed. Notes are for the people who run the
installation: they are printed by `modwatch alerts history`, and never logged or sent.
"""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sqlalchemy import Date, Engine, cast, func, insert, select

from modwatch.alerts.causes import Acceptances, active_incident
from modwatch.alerts.delivery import Channels, outbox_message, post
from modwatch.alerts.messages.incidents import accepted_alert
from modwatch.errors import IncidentError
from modwatch.review.outbox import messages as outbox
from modwatch.review.outbox.messages import OutboxMessage
from modwatch.review.tables import alert_action
from modwatch.review.tables import outbox_message as message_table

Kind = Literal["acknowledge", "assign", "comment", "silence", "accept"]

#: Topics whose messages tell of incidents.
TOPICS = ("incident", "annotator_incident", "failure", "heartbeat")

_ACTIVE = ("opened", "escalated", "failed")
_FORGOTTEN_AFTER = datetime.timedelta(days=30)
_ONE_DAY = datetime.timedelta(days=1)
_MAX_NAME, _MAX_NOTE = 80, 1000


@dataclass(frozen=True, kw_only=True)
class Action:
    """One thing that a person did about an incident."""

    #: Name of the incident: its cause, or rule and subject.
    incident: str
    action: Kind
    #: Who did it.
    person: str
    note: str = ""
    #: Of `assign`: who looks into it.
    assignee: str | None = None
    #: Of `silence`: the last day, UTC, on which nothing is sent; a day that is over ends it.
    until: datetime.date | None = None
    #: Of `accept`: the first day on which the present level is the reference.
    day: datetime.date | None = None
    #: Of `accept`: the first day at that level.
    level_since: datetime.date | None = None
    #: When; None before it is stored.
    at: datetime.datetime | None = None


@dataclass(frozen=True, kw_only=True)
class OpenIncident:
    """An incident that receivers see as active, and what people have done about it."""

    name: str
    headline: str
    severity: str
    since: datetime.date
    opened: datetime.date
    #: Where most of a change of the scores is, as a sentence; empty: nowhere, or no such change.
    segment: str = ""
    #: The text of the last message, and the pages that it links, by name.
    text: str = ""
    links: Mapping[str, str] = field(default_factory=dict)
    acknowledged_by: str | None = None
    assignee: str | None = None
    silent_until: datetime.date | None = None


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line of the history of incidents: a message or an action."""

    at: datetime.datetime
    incident: str
    #: The event of a message, or the kind of an action.
    what: str
    #: Title of the message, or person and note.
    text: str


def record(database: Engine, action: Action) -> None:
    """Store an action.

    Raises:
        IncidentError: the incident is not active, or a name or note is empty, too long, or has
            control characters.
    """
    _checked("person", action.person, _MAX_NAME)
    if action.assignee is not None:
        _checked("assignee", action.assignee, _MAX_NAME)
    if action.note or action.action == "comment":
        _checked("note", action.note, _MAX_NOTE)
    _last_message(database, action.incident)
    columns = {name: getattr(action, name) for name in action.__dataclass_fields__ if name != "at"}
    with database.begin() as connection:
        connection.execute(insert(alert_action).values(columns))


def accept(
    database: Engine,
    channels: Channels,
    incident: str,
    *,
    person: str,
    note: str,
    day: datetime.date,
    level_since: datetime.date | None = None,
) -> None:
    """Accept the present level as the new normal: it ends the incident, and receivers are told.

    From the day after `day`, the last that was evaluated, changes are measured from the level since
    `level_since` (default: the beginning of the incident); a rule on a level opens again only after
    a good value.

    Raises:
        IncidentError: the incident is not active, the note is missing, or `level_since` is later
            than `day`.
    """
    _checked("note", note, _MAX_NOTE)
    last = _last_message(database, incident)
    active = active_incident(last)
    if active is None or last.topic not in ("incident", "annotator_incident"):
        raise IncidentError(f"{incident!r} has no level to accept; acknowledge or silence it")
    since, effective = level_since or active.since, max(day, active.opened) + _ONE_DAY
    if since >= effective:
        raise IncidentError(f"--level-since {since} is later than {day}, the last evaluated day")
    record(
        database,
        Action(
            incident=incident,
            action="accept",
            person=person,
            note=note,
            day=effective,
            level_since=since,
        ),
    )
    sequence, links = last.sequence + 1, last.payload.get("links", {})
    alert = accepted_alert(last.payload["facts"], incident, since, sequence, person, links)
    message = outbox_message(
        alert, max(day, last.dt), topic=last.topic, series=incident, sequence=sequence
    )
    post(database, channels, message)


def acceptances(database: Engine) -> Acceptances:
    """Return what people have accepted as the new normal, by incident."""
    found: dict[str, list[tuple[datetime.date, datetime.date]]] = {}
    for each in _actions(database, "accept"):
        if each.day and each.level_since:
            found.setdefault(each.incident, []).append((each.day, each.level_since))
    return found


def silenced(database: Engine) -> dict[str, datetime.date]:
    """Return the incidents of which nothing is sent today, UTC, with the last such day."""
    latest = {each.incident: each.until for each in _actions(database, "silence")}
    today = _today(database)
    return {name: until for name, until in latest.items() if until and until >= today}


def _today(database: Engine) -> datetime.date:
    with database.connect() as connection:
        today: datetime.date = connection.execute(
            select(cast(func.timezone("UTC", func.now()), Date))
        ).scalar_one()
    return today


def open_incidents(database: Engine) -> list[OpenIncident]:
    """Return the incidents that receivers see as active, the oldest first.

    A failed task that nobody repaired is left out after 30 days.
    """
    silent, actions = silenced(database), _actions(database)
    oldest = _today(database) - _FORGOTTEN_AFTER
    found = [
        _open_incident(name, last, actions, silent.get(name))
        for topic in TOPICS
        for name, last in outbox.latest(database, topic).items()
        if last.payload["facts"]["event"] in _ACTIVE and (topic != "failure" or last.dt >= oldest)
    ]
    return sorted(found, key=lambda each: (each.since, each.name))


def history(database: Engine, incident: str | None = None) -> list[Entry]:
    """Return the messages and actions of all incidents or one, in order of time."""
    table = message_table.c
    query = select(table.created_at, table.series, table.payload).where(table.topic.in_(TOPICS))
    if incident is not None:
        query = query.where(table.series == incident)
    with database.connect() as connection:
        told = [_told(row) for row in connection.execute(query.order_by(table.id))]
    done = [_done(each) for each in _actions(database) if incident in (None, each.incident)]
    return sorted([*told, *done], key=lambda entry: entry.at)


def _told(row: Any) -> Entry:
    payload = row.payload
    what, title = payload["facts"]["event"], payload["title"]
    return Entry(at=row.created_at, incident=row.series, what=what, text=title)


def _done(action: Action) -> Entry:
    assert action.at is not None  # noqa: S101 - it is stored
    parts = [
        f"by {action.person}",
        f"to {action.assignee}" if action.assignee else "",
        f"until {action.until}" if action.until else "",
        f"level since {action.level_since}, from {action.day}" if action.day else "",
    ]
    text = ", ".join(filter(None, parts)) + (f": {action.note}" if action.note else "")
    return Entry(at=action.at, incident=action.incident, what=action.action, text=text)


def _open_incident(
    name: str, last: OutboxMessage, actions: Sequence[Action], until: datetime.date | None
) -> OpenIncident:
    facts = last.payload["facts"]
    day = datetime.date.fromisoformat
    opened = day(facts["opened"]) if facts.get("opened") else last.dt
    mine = [
        each for each in actions if each.incident == name and each.at and each.at.date() >= opened
    ]
    severity = facts.get("severity", "critical")
    return OpenIncident(
        name=name,
        headline=facts.get("headline") or last.payload["title"].removeprefix(f"[{severity}] "),
        severity=severity,
        since=day(facts["since"]) if facts.get("since") else last.dt,
        opened=opened,
        segment=(facts.get("segment") or {}).get("sentence", ""),
        text=last.payload["text"],
        links=last.payload.get("links", {}),
        acknowledged_by=_last(each.person for each in mine if each.action == "acknowledge"),
        assignee=_last(each.assignee for each in mine if each.action == "assign"),
        silent_until=until,
    )


def _last(names: Iterable[str | None]) -> str | None:
    return ([None, *names])[-1]


def _actions(database: Engine, action: Kind | None = None) -> list[Action]:
    query = select(alert_action).order_by(alert_action.c.id)
    if action is not None:
        query = query.where(alert_action.c.action == action)
    names = [name for name in Action.__dataclass_fields__ if name != "at"]
    with database.connect() as connection:
        return [
            Action(**{name: getattr(row, name) for name in names}, at=row.created_at)
            for row in connection.execute(query)
        ]


def _last_message(database: Engine, incident: str) -> OutboxMessage:
    """Return the last message of an active incident."""
    for topic in TOPICS:
        last = outbox.latest_of(database, topic, incident)
        if last and last.payload["facts"]["event"] in _ACTIVE:
            return last
    raise IncidentError(
        f"no incident {incident!r} is active; `modwatch alerts list` names those that are"
    )


def _checked(what: str, text: str, most: int) -> None:
    if not text.strip() or len(text) > most or not text.isprintable():
        raise IncidentError(
            f"the {what} must have 1 to {most} characters on one line; shorten or correct it"
        )
