"""The decision feed: the events that the webhook posts, for platforms that poll instead.

`decision_events` creates the events; a cursor marks how far a reader has come.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, select

from modwatch.common.errors import QueueError
from modwatch.review.outbox.decision_events import TOPIC
from modwatch.review.tables import outbox_message

#: Maximum number of events per page.
LONGEST_PAGE = 1_000

_CURSOR = re.compile(r"after:(0|[1-9][0-9]{0,17})", re.ASCII)


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
    last = _read_cursor(after)
    # `relay_decisions` runs one at a time, so ids of this topic become visible in order.
    following = (
        select(outbox_message.c.id, outbox_message.c.payload)
        .where(outbox_message.c.topic == TOPIC, outbox_message.c.id > last)
        .order_by(outbox_message.c.id)
        .limit(limit)
    )
    with engine.connect() as connection:
        rows = connection.execute(following).all()
    return FeedPage(
        events=tuple(row.payload for row in rows),
        next_cursor=_write_cursor(rows[-1].id if rows else last),
    )


def _write_cursor(last: int) -> str:
    return base64.urlsafe_b64encode(f"after:{last}".encode()).decode().rstrip("=")


def _read_cursor(cursor: str | None) -> int:
    if cursor is None:
        return 0
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        written = base64.b64decode(padded, altchars=b"-_", validate=True).decode("ascii")
        match = _CURSOR.fullmatch(written)
    except (binascii.Error, UnicodeError):
        match = None
    # Only the canonical encoding is valid.
    if match is None or _write_cursor(int(match[1])) != cursor:
        raise QueueError(
            "the cursor is not one of the decision feed; send the one of the last page, or none to "
            "start from the beginning"
        )
    return int(match[1])
