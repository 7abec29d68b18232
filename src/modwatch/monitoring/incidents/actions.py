"""What people do about incidents: acknowledge, assign, comment, silence, accept the new normal.

Actions are appended to the review database and never changed. Notes are for the people who run the
installation: they are printed by `modwatch alerts history`, and never logged or sent.
"""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sqlalchemy import Date, Engine, Row, Select, cast, func, insert, or_, select, true
from sqlalchemy.dialects.postgresql import distinct_on

from modwatch.common.errors import IncidentError
from modwatch.monitoring.incidents.causes import Acceptances, active_incident
from modwatch.monitoring.incidents.delivery import Channels, outbox_message, post
from modwatch.monitoring.incidents.messages.incidents import accepted_alert
from modwatch.monitoring.incidents.rules import SEVERITIES
from modwatch.review.outbox import messages as outbox
from modwatch.review.outbox.messages import OutboxMessage
from modwatch.review.tables import alert_action
from modwatch.review.tables import outbox_message as message_table

Kind = Literal["acknowledge", "assign", "comment", "silence", "accept"]

#: Topics whose messages tell of incidents.
TOPICS = ("incident", "annotator_incident", "failure", "heartbeat")

_OPENING = ("opened", "failed")
_ACTIVE = (*_OPENING, "escalated")
_TODAY = cast(func.timezone("UTC", func.now()), Date)
_LAST_ID = select(func.coalesce(func.max(message_table.c.id), 0)).scalar_subquery()
_FORGOTTEN_AFTER = datetime.timedelta(days=30)
_ONE_DAY = datetime.timedelta(days=1)
#: How long before an incident the level that it leaves as the new normal may have begun.
_LONGEST_LEVEL = datetime.timedelta(days=31)
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


@dataclass(frozen=True, kw_only=True)
class OpenIncident:
    """An incident that receivers see as active, and what people have done about it."""

    name: str
    #: What the last message says; of `current_incidents`, what the newest evaluation says.
    headline: str
    severity: str
    since: datetime.date
    opened: datetime.date
    #: What the message says with which it opened.
    first_headline: str = ""
    #: What the newest evaluation says of the value, and its day; empty and None where it is about
    #: something else, such as a failed task.
    newest_value: str = ""
    evaluated: datetime.date | None = None
    #: Where most of a change of the scores is, as a sentence; empty: nowhere, or no such change.
    segment: str = ""
    #: The text of the last message, and the pages that it links, by name.
    text: str = ""
    links: Mapping[str, str] = field(default_factory=dict)
    acknowledged_by: str | None = None
    assignee: str | None = None
    silent_until: datetime.date | None = None

    @property
    def at_first(self) -> str:
        """The headline with which it opened, if it is another now; else empty."""
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
    """Messages and actions in the order in which they were stored, whatever the clock said."""

    #: The newest, the last one last.
    entries: Sequence[Entry]
    #: How many there are before them.
    earlier: int


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
    columns = {name: getattr(action, name) for name in action.__dataclass_fields__}
    with database.begin() as connection:
        connection.execute(insert(alert_action).values(**columns, after_message=_LAST_ID))


def accept(
    database: Engine,
    channels: Channels,
    incident: str,
    *,
    person: str,
    note: str,
    first: datetime.date,
    day: datetime.date,
    level_since: datetime.date | None = None,
) -> None:
    """Accept the present level as the new normal: it ends the incident, and receivers are told.

    From the day after `day`, the last that was evaluated, changes are measured from the level since
    `level_since` (default: the beginning of the incident); a rule on a level opens again only after
    a good value.

    Raises:
        IncidentError: the incident is not active, the note is missing, or `level_since` is later
            than `day`, before `first`, the first measured day, or more than 31 days before the
            incident.
    """
    _checked("note", note, _MAX_NOTE)
    last = _last_message(database, incident)
    active = active_incident(last)
    if active is None or last.topic not in ("incident", "annotator_incident"):
        raise IncidentError(f"{incident!r} has no level to accept; acknowledge or silence it")
    since, effective = level_since or active.since, max(day, active.opened) + _ONE_DAY
    if since >= effective:
        raise IncidentError(f"--level-since {since} is later than {day}, the last evaluated day")
    if level_since is not None:
        _check_level(level_since, first, active.since)
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
    mine = alert_action.c
    accepted = (
        select(mine.incident, mine.day, mine.level_since)
        .where(mine.action == "accept", mine.day.is_not(None), mine.level_since.is_not(None))
        .order_by(mine.id)
    )
    found: dict[str, list[tuple[datetime.date, datetime.date]]] = {}
    with database.connect() as connection:
        for name, day, level_since in connection.execute(accepted):
            found.setdefault(name, []).append((day, level_since))
    return found


def silenced(database: Engine) -> dict[str, datetime.date]:
    """Return the incidents of which nothing is sent today, UTC, with the last such day."""
    last = _last_actions("silence").subquery()
    lasting = select(last.c.incident, last.c.until).where(last.c.until >= _TODAY)
    with database.connect() as connection:
        return {row.incident: row.until for row in connection.execute(lasting)}


def open_incidents(database: Engine) -> list[OpenIncident]:
    """Return the incidents that receivers see as active: the most severe first, then the oldest.

    A failed task that nobody repaired is left out 30 days after the message.
    """
    silent = silenced(database)
    with database.connect() as connection:
        rows = connection.execute(_last_actions("acknowledge", "assign"))
        handled = {(row.incident, row.action): row for row in rows}
        found = [
            _open_incident(row, handled, silent.get(row.series))
            for row in connection.execute(_active_messages())
        ]
    return sorted(found, key=lambda each: (-SEVERITIES.index(each.severity), each.since, each.name))


def acknowledged_by(database: Engine, incident: str) -> str | None:
    """Return who acknowledged an incident that is active; None: nobody, or it is not active."""
    found = (each for each in open_incidents(database) if each.name == incident)
    return next((each.acknowledged_by for each in found), None)


def history(database: Engine, incident: str | None = None, *, newest: int = 50) -> History:
    """Return the `newest` messages and actions of all incidents or one.

    Args:
        database: the review database.
        incident: name of an incident; None: all.
        newest: how many to return, from 1.
    """
    message, action, total = message_table.c, alert_action.c, func.count().over().label("total")
    told = select(
        message.id,
        message.series,
        message.created_at,
        message.payload["facts"]["event"].astext.label("event"),
        message.payload["title"].astext.label("title"),
        total,
    ).where(message.topic.in_(TOPICS))
    done = select(alert_action, total)
    if incident is not None:
        told = told.where(message.series == incident)
        done = done.where(action.incident == incident)
    with database.connect() as connection:
        messages = connection.execute(told.order_by(message.id.desc()).limit(newest)).all()
        latest = done.order_by(action.after_message.desc(), action.id.desc()).limit(newest)
        actions = connection.execute(latest).all()
    placed = [
        *(((row.id, 0), _told(row)) for row in messages),
        *(((row.after_message, row.id), _done(row)) for row in actions),
    ]
    entries = [entry for _, entry in sorted(placed, key=lambda each: each[0])][-newest:]
    stored = sum(rows[0].total for rows in (messages, actions) if rows)
    return History(entries=entries, earlier=stored - len(entries))


def _told(row: Row[Any]) -> Entry:
    return Entry(at=row.created_at, incident=row.series, what=row.event, text=row.title)


def _done(row: Row[Any]) -> Entry:
    parts = [
        f"by {row.person}",
        f"to {row.assignee}" if row.assignee else "",
        f"until {row.until}" if row.until else "",
        f"level since {row.level_since}, from {row.day}" if row.day else "",
    ]
    text = ", ".join(filter(None, parts)) + (f": {row.note}" if row.note else "")
    return Entry(at=row.created_at, incident=row.incident, what=row.action, text=text)


def _active_messages() -> Select[Any]:
    """Return the query of the last message of every active incident.

    Its columns `opening` and `first_payload` are the id and the payload of the message with which
    the incident opened.
    """
    message, earlier = message_table.c, message_table.alias()
    last = (
        select(message_table)
        .ext(distinct_on(message.topic, message.series))
        .where(message.topic.in_(TOPICS))
        .order_by(message.topic, message.series, message.sequence.desc())
        .subquery()
    )
    openings = (
        select(earlier)
        .where(earlier.c.topic == last.c.topic, earlier.c.series == last.c.series)
        .where(earlier.c.payload["facts"]["event"].astext.in_(_OPENING))
        .order_by(earlier.c.id.desc())
        .limit(1)
        .lateral()
    )
    recent = last.c.created_at > func.now() - _FORGOTTEN_AFTER
    first = openings.c.id.label("opening"), openings.c.payload.label("first_payload")
    return (
        select(last, *first)
        .outerjoin_from(last, openings, true())
        .where(
            last.c.payload["facts"]["event"].astext.in_(_ACTIVE),
            or_(last.c.topic != "failure", recent),
        )
    )


def _last_actions(*kinds: Kind) -> Select[Any]:
    """Return the query of the last action of each of these kinds for every incident."""
    mine = alert_action.c
    return (
        select(alert_action)
        .ext(distinct_on(mine.incident, mine.action))
        .where(mine.action.in_(kinds))
        .order_by(mine.incident, mine.action, mine.after_message.desc(), mine.id.desc())
    )


def _open_incident(
    row: Row[Any], handled: Mapping[tuple[str, str], Row[Any]], until: datetime.date | None
) -> OpenIncident:
    """Return the incident of a row of `_active_messages`.

    What was done about an earlier incident of the same name does not count.
    """
    payload, facts, day = row.payload, row.payload["facts"], datetime.date.fromisoformat
    acknowledged, assigned = (
        done if done and done.after_message >= row.opening else None
        for done in (handled.get((row.series, kind)) for kind in ("acknowledge", "assign"))
    )
    severity = facts.get("severity", "critical")
    return OpenIncident(
        name=row.series,
        headline=_headline(payload),
        first_headline=_headline(row.first_payload) if row.first_payload else "",
        severity=severity,
        since=day(facts["since"]) if facts.get("since") else row.dt,
        opened=day(facts["opened"]) if facts.get("opened") else row.dt,
        segment=(facts.get("segment") or {}).get("sentence", ""),
        text=payload["text"],
        links=payload.get("links", {}),
        acknowledged_by=acknowledged and acknowledged.person,
        assignee=assigned and assigned.assignee,
        silent_until=until,
    )


def _headline(payload: Mapping[str, Any]) -> str:
    """Return the headline of a message, or its title where it has none."""
    facts = payload["facts"]
    severity = facts.get("severity", "critical")
    return str(facts.get("headline") or payload["title"].removeprefix(f"[{severity}] "))


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
