"""Turns the decision log into messages to the platform, one for each change of an outcome.

`deliveries` sends them, `feed` hands them out to whoever asks. Only people's review
counts: what is labelled to measure people (retests, gold, audits, second opinions) is told to
nobody. Nor is what people wrote, or who they are.
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date
from typing import Any

from sqlalchemy import (
    BigInteger,
    Connection,
    Engine,
    Row,
    Text,
    cast,
    func,
    insert,
    literal,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import distinct_on

from modwatch.errors import DatabaseError
from modwatch.review.tables import (
    decision,
    outbox_cursor,
    outbox_message,
    review_item,
)
from modwatch.review.tables.base import TransactionId

#: Actions that can change an outcome; `close` and `reopen` are about items without one.
DECISIVE = ("label", "adjudicate", "correct", "undo")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One row of the log, as far as outcomes go."""

    id: int
    #: Which transaction wrote it: with `id`, its place in the order in which the log is followed.
    transaction: int
    item_id: int
    #: How many people are to label the item.
    labels_wanted: int
    moderator_id: int
    #: label | adjudicate | correct | undo
    action: str
    label: int | None
    policy_version: str | None
    policy_code: str | None
    #: The decision that this one takes back or replaces.
    refers_to: int | None
    decided_at: dt.datetime

    @property
    def place(self) -> tuple[int, int]:
        """Where the log holds it for those who follow."""
        return self.transaction, self.id


def outcome(entries: Iterable[Entry]) -> Entry | None:
    """Return the decision that stands of one comment, None if none does.

    `entries` are all decisive rows of its items; of two items the one decided last counts.
    """
    items = defaultdict[int, list[Entry]](list)
    for entry in entries:
        items[entry.item_id].append(entry)
    standing = (_of_item(sorted(rows, key=lambda row: row.id)) for rows in items.values())
    return max((entry for entry in standing if entry), key=lambda entry: entry.id, default=None)


def _of_item(entries: Iterable[Entry]) -> Entry | None:
    """Return the decision that stands of one item, whose rows come in their order."""
    labels, stands = dict[int, Entry](), None
    for entry in entries:
        if entry.action == "label":
            labels[entry.moderator_id] = entry
            stands = entry if _settled(labels, entry) else None
        elif entry.action == "undo":
            labels = {who: row for who, row in labels.items() if row.id != entry.refers_to}
            stands = None if stands and stands.id == entry.refers_to else stands
        else:
            stands = entry
    return stands


def _settled(labels: dict[int, Entry], last: Entry) -> bool:
    """Return whether the last label was the last wanted, and all agree."""
    agree = all(entry.label == last.label for entry in labels.values())
    return last.labels_wanted == 1 or (len(labels) >= last.labels_wanted and agree)


TOPIC = "decision"

#: Of the payload; a new one only when a receiver could misread the old.
SCHEMA_VERSION = 1

#: Items whose outcome the platform acts on.
KINDS = ("review", "imported")

#: The comment that a message is about.
Comment = tuple[date, str]

# Relays take turns, so what a channel has is everything up to some message; what follows was made
# by a relay that did not know of the channel, or just now.
_ADDRESS = text(
    """
    INSERT INTO outbox_delivery (message_id, channel)
    SELECT id, :channel FROM outbox_message
    WHERE topic = :topic AND id > COALESCE((
        SELECT message.id FROM outbox_message message
        JOIN outbox_delivery ON message_id = message.id AND channel = :channel
        WHERE message.topic = :topic ORDER BY message.id DESC LIMIT 1
    ), 0)
    ORDER BY id
    """
)

Categories = Callable[[str], str | None]


def relay_decisions(
    engine: Engine,
    channels: Collection[str],
    *,
    category_of: Categories = lambda _: None,
    batch: int = 1_000,
    go_on: Callable[[], bool] = lambda: True,
) -> int:
    """Return how many messages were made of what is new in the decision log, for these channels.

    A channel gets every message, also those made before it was first named. Each row of the log is
    looked at exactly once, and only when no transaction is open that may still write a row before
    it. `go_on` is asked before every `batch` rows but the first. `category_of` gives the DSA
    category of a policy code. Raises `DatabaseError` when the log was moved to a server that counts
    transactions anew.
    """
    told, more = 0, True
    while more:
        with engine.begin() as connection:
            rows = _unread(connection, _turn(connection), batch)
            told += _tell(connection, rows, category_of)
            _advance(connection, rows)
            for channel in channels:
                connection.execute(_ADDRESS, {"channel": channel, "topic": TOPIC})
        more = len(rows) == batch and go_on()
    if told >= batch:
        # So many at once make the planner's figures wrong until autovacuum comes by.
        with engine.begin() as connection:
            connection.execute(text("ANALYZE outbox_message, outbox_delivery"))
    return told


def _turn(connection: Connection) -> Row[Any]:
    """Return the cursor, locked: relays take turns."""
    connection.execute(
        postgresql.insert(outbox_cursor)
        .values(topic=TOPIC, transaction_id="0", decision_id=0)
        .on_conflict_do_nothing()
    )
    mine = select(outbox_cursor).where(outbox_cursor.c.topic == TOPIC).with_for_update()
    cursor = connection.execute(mine).one()
    ahead = literal(cursor.transaction_id, TransactionId()) >= _snapshot("pg_snapshot_xmax")
    if connection.scalar(select(ahead)):
        raise DatabaseError(
            "the decision log comes from a server that had counted more transactions, so what is "
            "new in it cannot be told; stop this server, set its count beyond "
            f"{cursor.transaction_id} (pg_resetwal -x, -e) and start it again"
        )
    return cursor


def _snapshot(edge: str) -> Any:
    return getattr(func, edge)(func.pg_current_snapshot(), type_=TransactionId())


def _unread(connection: Connection, cursor: Row[Any], batch: int) -> Sequence[Row[Any]]:
    """Return the next rows of the log before which nothing can be written any more."""
    place = tuple_(decision.c.transaction_id, decision.c.id)
    last = tuple_(
        cast(literal(cursor.transaction_id, Text), TransactionId()),
        cast(literal(cursor.decision_id), BigInteger),
    )
    following = (
        select(
            decision.c.id,
            decision.c.transaction_id,
            decision.c.dt,
            decision.c.comment_id,
            decision.c.kind,
            decision.c.action,
            decision.c.decided_at,
        )
        .where(place > last, decision.c.transaction_id < _snapshot("pg_snapshot_xmin"))
        .order_by(decision.c.transaction_id, decision.c.id)
        .limit(batch)
    )
    return list(connection.execute(following))


def _advance(connection: Connection, rows: Sequence[Row[Any]]) -> None:
    if rows:
        last = {"transaction_id": rows[-1].transaction_id, "decision_id": rows[-1].id}
        connection.execute(update(outbox_cursor).where(outbox_cursor.c.topic == TOPIC).values(last))


def _tell(connection: Connection, rows: Sequence[Row[Any]], category_of: Categories) -> int:
    """Keep a message for each of `rows` that changes an outcome; return how many."""
    decisive = [row for row in rows if row.kind in KINDS and row.action in DECISIVE]
    if not decisive:
        return 0
    comments = sorted({(row.dt, row.comment_id) for row in decisive})
    histories = _histories(connection, comments)
    told = _last_told(connection, comments)
    messages = []
    for row in decisive:
        comment = (row.dt, row.comment_id)
        place = (int(row.transaction_id), row.id)
        stands = outcome(entry for entry in histories[comment] if entry.place <= place)
        event = _event(told.get(comment), stands)
        if event:
            payload = _payload(row, event, stands, told.get(comment), category_of)
            told[comment] = payload
            messages.append(_message(row.dt, payload))
    if messages:
        # In their order: the feed hands them out by their ids.
        ordered = insert(outbox_message).returning(
            outbox_message.c.id, sort_by_parameter_order=True
        )
        connection.execute(ordered, messages)
    return len(messages)


def _histories(connection: Connection, comments: list[Comment]) -> Mapping[Comment, list[Entry]]:
    """Return all decisive rows of each comment."""
    item = review_item.c
    names = {field.name for field in fields(Entry)} - {"transaction", "labels_wanted"}
    rows = connection.execute(
        select(
            *(decision.c[name] for name in sorted(names)),
            item.labels_wanted,
            decision.c.transaction_id,
            item.dt,
            item.comment_id,
        )
        .join(review_item, item.id == decision.c.item_id)
        .where(
            tuple_(item.dt, item.comment_id).in_(comments),
            item.kind.in_(KINDS),
            decision.c.action.in_(DECISIVE),
        )
    ).mappings()
    found = defaultdict[Comment, list[Entry]](list)
    for row in rows:
        values = {name: row[name] for name in (*names, "labels_wanted")}
        entry = Entry(transaction=int(row["transaction_id"]), **values)
        found[row["dt"], row["comment_id"]].append(entry)
    return found


def _last_told(connection: Connection, comments: list[Comment]) -> dict[Comment, Mapping[str, Any]]:
    """Return the last payload about each comment."""
    series = {_series(*comment): comment for comment in comments}
    last = (
        select(outbox_message.c.series, outbox_message.c.payload)
        .ext(distinct_on(outbox_message.c.series))
        .where(outbox_message.c.topic == TOPIC, outbox_message.c.series.in_(list(series)))
        .order_by(outbox_message.c.series, outbox_message.c.sequence.desc())
    )
    return {series[row.series]: row.payload for row in connection.execute(last)}


def _event(last: Mapping[str, Any] | None, stands: Entry | None) -> str:
    """Return what the platform has to hear; an empty text: nothing."""
    stood = last is not None and last["event"] != "withdrawn"
    if stands is None:
        return "withdrawn" if stood else ""
    if last is None or not stood:
        return "decided"
    same = all(
        last[name] == getattr(stands, name) for name in ("label", "policy_version", "policy_code")
    )
    return "" if same else "changed"


def _payload(
    row: Row[Any],
    event: str,
    stands: Entry | None,
    last: Mapping[str, Any] | None,
    category_of: Categories,
) -> dict[str, Any]:
    code = stands.policy_code if stands else None
    return {
        "schema_version": SCHEMA_VERSION,
        "event": event,
        "comment_id": row.comment_id,
        "dt": row.dt.isoformat(),
        "label": stands.label if stands else None,
        "policy_version": stands.policy_version if stands else None,
        "policy_code": code,
        "dsa_category": category_of(code) if code is not None else None,
        "decided_at": row.decided_at.isoformat(),
        "decision_id": row.id,
        "sequence": last["sequence"] + 1 if last else 1,
    }


def _series(day: date, comment_id: str) -> str:
    return f"{day}/{comment_id}"


def _message(day: date, payload: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "key": f"decision-{payload['decision_id']}",
        "topic": TOPIC,
        "series": _series(day, payload["comment_id"]),
        "sequence": payload["sequence"],
        "dt": day,
        "payload": payload,
    }
