"""Decision events: messages to the platform, one for each change of a comment's current decision.

`delivery` sends them, and `feed` serves them to platforms that poll. Only reviews and imported
items count: labels that measure people or the model (retests, gold, audits, confirmations) are
never sent, and neither are notes, pseudonyms and texts.

The current decision follows from the log alone, for any moment of the past; the queue stores the
present state in `review_item.status`.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
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

from modwatch.common.errors import DatabaseError, QueueError
from modwatch.review.database import at_once
from modwatch.review.tables import (
    ACTIONABLE_KINDS,
    TransactionId,
    decision,
    outbox_cursor,
    outbox_message,
    review_item,
)

#: Actions that can change the current decision; `close` and `reopen` concern undecided items.
DECISIVE = ("label", "adjudicate", "correct", "undo")


#: A row of the log with the columns from which the current decision follows.
LogEntry = Row[Any]


def current_decision(entries: Iterable[LogEntry]) -> LogEntry | None:
    """Return the current decision of one comment, or None.

    `entries` are all rows of its items with an action of `DECISIVE`. Of each item the last one
    counts, if it left the item decided; of several items the one decided last.
    """
    last = {entry.item_id: entry for entry in sorted(entries, key=lambda entry: entry.id)}
    decided = (entry for entry in last.values() if entry.outcome == "decided")
    return max(decided, key=lambda entry: entry.id, default=None)


TOPIC = "decision"

#: Version of the payload; increases only with changes that receivers could misinterpret.
SCHEMA_VERSION = 1

#: The comment that a message is about.
Comment = tuple[date, str]

# `relay_decisions` runs one at a time, so a channel has all messages up to some id. Later ones are
# new, or were created by a call that did not name the channel.
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
    """Create messages from new rows of the decision log, for these channels; return how many.

    A channel gets every message, also those created before it was first named. Each row of the log
    is read exactly once, and only when no open transaction can still write a row before it. `go_on`
    is called before every batch but the first. `category_of` returns the DSA category of a policy
    code. Raises `DatabaseError` if the log was moved to a server with a lower transaction count.
    """
    created, more = 0, True
    while more:
        with engine.begin() as connection:
            rows = _unread(connection, _turn(connection), batch)
            created += _create_messages(connection, rows, category_of)
            if rows:
                last = {"transaction_id": rows[-1].transaction_id, "decision_id": rows[-1].id}
                cursor = update(outbox_cursor).where(outbox_cursor.c.topic == TOPIC)
                connection.execute(cursor.values(last))
            for channel in channels:
                connection.execute(_ADDRESS, {"channel": channel, "topic": TOPIC})
        more = len(rows) == batch and go_on()
    if created >= batch:
        # Otherwise the planner's statistics are outdated until autovacuum runs.
        with engine.begin() as connection:
            connection.execute(text("SELECT analyze_outbox()"))
    return created


def _turn(connection: Connection) -> Row[Any]:
    """Return the cursor, locked, so that relays run one at a time."""
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
            "the decision log is from a server with a higher transaction count, so new rows cannot "
            f"be recognised; stop this server, set its count above {cursor.transaction_id} "
            "(pg_resetwal -x, -e) and start it again"
        )
    return cursor


def _snapshot(edge: str) -> Any:
    return getattr(func, edge)(func.pg_current_snapshot(), type_=TransactionId())


def _unread(connection: Connection, cursor: Row[Any], batch: int) -> Sequence[Row[Any]]:
    """Return the next rows of the log before which no row can be written any more."""
    place = tuple_(decision.c.transaction_id, decision.c.id)
    last = tuple_(
        cast(literal(cursor.transaction_id, Text), TransactionId()),
        cast(literal(cursor.decision_id), BigInteger),
    )
    names = ("id", "transaction_id", "dt", "comment_id", "kind", "action", "decided_at")
    following = (
        select(*(decision.c[name] for name in names))
        .where(place > last, decision.c.transaction_id < _snapshot("pg_snapshot_xmin"))
        .order_by(decision.c.transaction_id, decision.c.id)
        .limit(batch)
    )
    return list(connection.execute(following))


def _create_messages(
    connection: Connection, rows: Sequence[Row[Any]], category_of: Categories
) -> int:
    """Create a message for each of `rows` that changes a current decision; return how many."""
    decisive = [row for row in rows if row.kind in ACTIONABLE_KINDS and row.action in DECISIVE]
    if not decisive:
        return 0
    comments = sorted({(row.dt, row.comment_id) for row in decisive})
    histories = _histories(connection, comments)
    last_payloads = _last_payloads(connection, comments)
    messages = []
    for row in decisive:
        comment = (row.dt, row.comment_id)
        history = (entry for entry in histories[comment] if _place(entry) <= _place(row))
        current, last = current_decision(history), last_payloads.get(comment)
        if event := _event(last, current):
            message = _message(row, event, current, last, category_of)
            last_payloads[comment] = message["payload"]
            messages.append(message)
    if messages:
        # In this order, because the feed is in order of ids.
        ordered = insert(outbox_message).returning(
            outbox_message.c.id, sort_by_parameter_order=True
        )
        connection.execute(ordered, messages)
    return len(messages)


def _place(entry: LogEntry) -> tuple[int, int]:
    """Return the position in the order in which the log is read."""
    return int(entry.transaction_id), entry.id


def _histories(connection: Connection, comments: list[Comment]) -> Mapping[Comment, list[LogEntry]]:
    """Return all rows of each comment with an action of `DECISIVE`."""
    item = review_item.c
    names = (
        "id", "transaction_id", "item_id", "dt", "comment_id", "label", "policy_version",
        "policy_code", "outcome",
    )  # fmt: skip
    rows = connection.execute(
        select(*(decision.c[name] for name in names))
        .join(review_item, item.id == decision.c.item_id)
        .where(
            tuple_(item.dt, item.comment_id).in_(comments),
            item.kind.in_(ACTIONABLE_KINDS),
            decision.c.action.in_(DECISIVE),
        )
    )
    histories = defaultdict[Comment, list[LogEntry]](list)
    for row in rows:
        histories[row.dt, row.comment_id].append(row)
    return histories


def _last_payloads(
    connection: Connection, comments: list[Comment]
) -> dict[Comment, Mapping[str, Any]]:
    """Return the last payload about each comment."""
    series = {_series(*comment): comment for comment in comments}
    last = (
        select(outbox_message.c.series, outbox_message.c.payload)
        .ext(distinct_on(outbox_message.c.series))
        .where(outbox_message.c.topic == TOPIC, outbox_message.c.series.in_(list(series)))
        .order_by(outbox_message.c.series, outbox_message.c.sequence.desc())
    )
    return {series[row.series]: row.payload for row in connection.execute(last)}


def _event(last: Mapping[str, Any] | None, current: LogEntry | None) -> str:
    """Return the event to send, or an empty string if nothing changed for the platform."""
    was_decided = last is not None and last["event"] != "withdrawn"
    if current is None:
        return "withdrawn" if was_decided else ""
    if last is None or not was_decided:
        return "decided"
    same = all(
        last[name] == getattr(current, name) for name in ("label", "policy_version", "policy_code")
    )
    return "" if same else "changed"


def _message(
    row: Row[Any],
    event: str,
    current: LogEntry | None,
    last: Mapping[str, Any] | None,
    category_of: Categories,
) -> dict[str, Any]:
    code, sequence = current.policy_code if current else None, last["sequence"] + 1 if last else 1
    payload = {
        "schema_version": SCHEMA_VERSION,
        "event": event,
        "comment_id": row.comment_id,
        "dt": row.dt.isoformat(),
        "label": current.label if current else None,
        "policy_version": current.policy_version if current else None,
        "policy_code": code,
        "dsa_category": category_of(code) if code is not None else None,
        "decided_at": row.decided_at.isoformat(timespec="microseconds"),
        "decision_id": row.id,
        "sequence": sequence,
    }
    return {
        "key": f"decision-{row.id}",
        "topic": TOPIC,
        "series": _series(row.dt, row.comment_id),
        "sequence": sequence,
        "dt": row.dt,
        "payload": payload,
    }


def _series(day: date, comment_id: str) -> str:
    return f"{day}/{comment_id}"


#: Maximum number of events per page.
LONGEST_PAGE = 1_000

_CURSOR = re.compile("0|[1-9][0-9]{0,17}")


@dataclass(frozen=True, kw_only=True)
class FeedPage:
    """One page of the feed."""

    #: The payloads, oldest first; `docs/webhooks.md` names their fields.
    events: tuple[Mapping[str, Any], ...]
    #: Cursor of the next request, also if there are no events yet.
    next_cursor: str


def feed(engine: Engine, after: str | None = None, limit: int = 100) -> FeedPage:
    """Return the first `limit` (1 to 1000) events after the cursor `after`; None: from the start.

    The events after a cursor never change, except that new ones are added at the end. Contains the
    events up to the last call of `relay_decisions`. Raises `QueueError` for an invalid cursor.
    """
    if not 1 <= limit <= LONGEST_PAGE:
        raise QueueError(f"the limit of a page must be 1 to {LONGEST_PAGE} events, got {limit}")
    if after is not None and not _CURSOR.fullmatch(after):
        raise QueueError(
            "the cursor is not one of the decision feed; send the one of the last page, or none to "
            "start from the beginning"
        )
    last = int(after or 0)
    # `relay_decisions` runs one at a time, so ids of this topic become visible in order.
    following = (
        select(outbox_message.c.id, outbox_message.c.payload)
        .where(outbox_message.c.topic == TOPIC, outbox_message.c.id > last)
        .order_by(outbox_message.c.id)
        .limit(limit)
    )
    rows = at_once(engine, following)
    return FeedPage(
        events=tuple(row["payload"] for row in rows),
        next_cursor=str(rows[-1]["id"] if rows else last),
    )
