"""The decision feed: what the webhooks post, for platforms that rather ask.

`relay` makes the events; a cursor says how far somebody has read.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, select

from modwatch.errors import QueueError
from modwatch.review.outbox.decision_events import TOPIC
from modwatch.review.tables import outbox_message

#: Most events of one page.
LONGEST_PAGE = 1_000

_CURSOR = re.compile(r"after:(0|[1-9][0-9]{0,17})", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class FeedPage:
    """A piece of the feed."""

    #: The payloads, oldest first; `docs/webhooks.md` names their fields.
    events: tuple[Mapping[str, Any], ...]
    #: What to ask with next, also when there was nothing.
    next_cursor: str


def feed(engine: Engine, after: str | None = None, limit: int = 100) -> FeedPage:
    """Return the first `limit` (1 to 1000) events after the cursor `after`, None for the beginning.

    What follows a cursor never changes, but for what is added at the end. Fresh to the last call of
    `relay_decisions`. Raises `QueueError` for a cursor that this feed never gave.
    """
    if not 1 <= limit <= LONGEST_PAGE:
        raise QueueError(f"a page of the feed has 1 to {LONGEST_PAGE} events, not {limit}")
    last = _read_cursor(after)
    # Relays take turns, so the ids of this topic become visible in their order.
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
        found = _CURSOR.fullmatch(written)
    except (binascii.Error, UnicodeError):
        found = None
    # Of several ways to write the same, ours only.
    if found is None or _write_cursor(int(found[1])) != cursor:
        raise QueueError(
            "this cursor is none of the decision feed; send the one of the last page, or none to "
            "begin at the beginning"
        )
    return int(found[1])
