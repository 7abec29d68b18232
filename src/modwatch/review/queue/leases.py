"""Leases: the right of one person to decide one item for a while."""

import datetime as dt
import random
import secrets
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from sqlalchemy import Engine, RowMapping, TextClause, select, text

from modwatch.errors import ItemNotFoundError, LeaseConflictError, QueueError
from modwatch.review.database import at_once
from modwatch.review.digests import digest_of
from modwatch.review.log.labels import stands
from modwatch.review.queue.items import Item, Lease, Opinion
from modwatch.review.queue.lanes import Lanes, load_lanes
from modwatch.review.queue.statements import FREE, HELD, LEASE, LEASE_COLUMNS, LEASE_ESCALATED
from modwatch.review.tables import decision, moderator, review_item

#: Time for a long comment and a cup of tea.
LEASE_LENGTH = dt.timedelta(minutes=10)

#: However often it is extended, nobody holds an item for longer.
LONGEST_HOLD = dt.timedelta(hours=1)

#: Whose turn it is need not be kept from anybody.
_TURNS = random.Random()  # noqa: S311

_LEASE, _LEASE_ESCALATED = text(LEASE), text(LEASE_ESCALATED)

_CLAIM = text(
    f"""
    UPDATE review_item SET
        lease_digest = :digest, leased_by = :moderator_id, claimed_at = now(),
        leased_until = now() + make_interval(secs => CAST(:seconds AS double precision))
    WHERE id = :item_id AND status = :status AND {FREE}
        AND CAST(:moderator_id AS bigint) <> ALL (excluded)
        AND COALESCE(reserved_for, :moderator_id) = :moderator_id
        AND (CAST(:queues AS text[]) IS NULL OR queue = ANY (CAST(:queues AS text[])))
    RETURNING {LEASE_COLUMNS}
    """  # noqa: S608 - our own text
)

_EXTEND = text(
    f"""
    UPDATE review_item SET leased_until = greatest(leased_until, least(
        now() + make_interval(secs => CAST(:seconds AS double precision)),
        claimed_at + make_interval(secs => CAST(:longest AS double precision))
    ))
    WHERE {HELD} RETURNING leased_until
    """  # noqa: S608 - our own text
)

_RELEASE = text(
    f"UPDATE review_item SET lease_digest = NULL, leased_by = NULL, leased_until = NULL "  # noqa: S608
    f"WHERE {HELD} RETURNING id"
)

_RESUME = text(f"SELECT {LEASE_COLUMNS} FROM review_item WHERE {HELD}")  # noqa: S608


def lease(
    engine: Engine,
    moderator_id: int,
    length: dt.timedelta = LEASE_LENGTH,
    *,
    queues: Collection[str] | None = None,
    opt_outs: Collection[str] = (),
    lanes: Lanes | None = None,
) -> Lease | None:
    """Return a lease of the next item for this moderator, or None when there is none.

    Reasons take turns, as often as `lanes` say; within a reason the order is by the promised time,
    drawn nearer by the rank. Only `queues` count, or all when None, and no reason of `opt_outs`.
    Nobody is served what they skipped or labelled before, nor the same comment in another item; a
    second opinion waits for the first label. Concurrent calls never return the same item and never
    wait for each other. A lease that runs out returns by itself.
    """
    turn = {"order": (lanes or load_lanes()).order(_TURNS), "opt_outs": list(opt_outs)}
    return _take(engine, _LEASE, moderator_id, length, queues=queues, **turn)


def lease_escalated(
    engine: Engine,
    moderator_id: int,
    length: dt.timedelta = LEASE_LENGTH,
    *,
    queues: Collection[str] | None = None,
) -> Lease | None:
    """Return a lease of the next item that a lead is to settle, with what others said of it."""
    taken = _take(engine, _LEASE_ESCALATED, moderator_id, length, queues=queues)
    return None if taken is None else _with_opinions(engine, taken)


def claim(
    engine: Engine,
    moderator_id: int,
    item_id: int,
    length: dt.timedelta = LEASE_LENGTH,
    *,
    queues: Collection[str] | None = None,
    escalated_only: bool = False,
) -> Lease | None:
    """Return a lease of one item; None if it is held, settled, or not for this person.

    `escalated_only`: an item that waits for a lead, instead of one that waits for anybody. Whoever
    settles one is told what others said, so it is for the callers to see that leads alone ask.
    """
    status = "escalated" if escalated_only else "waiting"
    more = {"item_id": item_id, "status": status}
    taken = _take(engine, _CLAIM, moderator_id, length, queues=queues, **more)
    return None if taken is None else _with_opinions(engine, taken)


def resume(engine: Engine, moderator_id: int, item_id: int, lease_token: str) -> Lease | None:
    """Return the lease again if it still holds, as after a reload of a page; None if not."""
    rows = at_once(engine, _RESUME, _held(moderator_id, item_id, lease_token))
    return _with_opinions(engine, lease_of(rows[0], lease_token)) if rows else None


def extend(
    engine: Engine,
    moderator_id: int,
    item_id: int,
    lease_token: str,
    length: dt.timedelta = LEASE_LENGTH,
) -> dt.datetime:
    """Hold an item for `length` from now, and return until when: at most an hour since the claim.

    Raises `LeaseConflictError` or `ItemNotFoundError` when the lease does not hold.
    """
    held = _held(moderator_id, item_id, lease_token)
    times = {"seconds": length.total_seconds(), "longest": LONGEST_HOLD.total_seconds()}
    rows = at_once(engine, _EXTEND, held | times)
    if not rows:
        raise conflict(engine, item_id)
    until: dt.datetime = rows[0]["leased_until"]
    return until


def release(engine: Engine, moderator_id: int, item_id: int, lease_token: str) -> bool:
    """Give a leased item back undecided; return False if the lease did not hold any more."""
    return bool(at_once(engine, _RELEASE, _held(moderator_id, item_id, lease_token)))


def conflict(engine: Engine, item_id: int) -> QueueError:
    """Return why a lease of this item does not hold."""
    rows = at_once(engine, select(review_item.c.status).where(review_item.c.id == item_id), {})
    status = rows[0]["status"] if rows else None
    if status in (None, "withdrawn", "closed"):
        return ItemNotFoundError(
            f"item {item_id} was withdrawn or never queued; lease the next one"
        )
    return LeaseConflictError(
        f"the lease of item {item_id} is not yours, has run out or was used, or the item has "
        "changed; lease the next one"
    )


def lease_of(row: RowMapping, token: str) -> Lease:
    """Return the lease by `token` that a row of `review_item` tells of."""
    return Lease(
        item=Item(**{name: row[name] for name in Item.__dataclass_fields__}),
        token=token,
        claimed_at=row["claimed_at"],
        expires_at=row["leased_until"],
    )


def _take(
    engine: Engine,
    statement: TextClause,
    moderator_id: int,
    length: dt.timedelta,
    *,
    queues: Collection[str] | None,
    **more: object,
) -> Lease | None:
    token = secrets.token_urlsafe(24)
    values = {
        "moderator_id": moderator_id,
        "digest": digest_of(token),
        "seconds": length.total_seconds(),
        "queues": None if queues is None else list(queues),
    }
    rows = at_once(engine, statement, values | more)
    return lease_of(rows[0], token) if rows else None


def _held(moderator_id: int, item_id: int, lease_token: str) -> dict[str, Any]:
    return {"moderator_id": moderator_id, "item_id": item_id, "digest": digest_of(lease_token)}


def _with_opinions(engine: Engine, lease: Lease) -> Lease:
    """Return `lease` with what others said of the item, if a lead is to settle it."""
    said = (
        select(
            moderator.c.pseudonym,
            decision.c.action,
            decision.c.label,
            decision.c.policy_code,
            decision.c.reason,
            decision.c.note,
        )
        .join(moderator, moderator.c.id == decision.c.moderator_id)
        .join(review_item, review_item.c.id == decision.c.item_id)
        .where(
            decision.c.item_id == lease.item.id,
            review_item.c.status == "escalated",
            stands("label", "escalate"),
        )
        .order_by(decision.c.id)
    )
    return replace(lease, opinions=tuple(Opinion(**row) for row in at_once(engine, said, {})))
