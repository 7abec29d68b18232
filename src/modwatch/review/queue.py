"""The review queue: lease the next item, decide it or skip it.

`intake` fills it, `decision_log` keeps what was decided, `queue_health` says how long it is. Every
function is one transaction, and the database's clock is the only one that counts.
"""

import datetime as dt
import hashlib
import secrets
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    RowMapping,
    and_,
    func,
    or_,
    select,
    update,
)

from modwatch.errors import ItemNotFoundError, LeaseConflictError, QueueError
from modwatch.review.decision_log import Decision, append, decisions, verify_log
from modwatch.review.eligibility import may_be_served
from modwatch.review.intake import Enqueued, enqueue, retire_second_opinions
from modwatch.review.items import Item, Lease, storable
from modwatch.review.queue_health import QueueAges, QueueCounts, counts, queue_ages
from modwatch.review.tables import decision, review_item, waiting

__all__ = [
    "Enqueued",
    "QueueAges",
    "QueueCounts",
    "counts",
    "decide",
    "decisions",
    "enqueue",
    "lease",
    "queue_ages",
    "resume",
    "retire_second_opinions",
    "skip",
    "verify_log",
]

LONGEST_NOTE = 4_000

#: Time for a long comment and a cup of tea.
LEASE_LENGTH = dt.timedelta(minutes=10)

_LEASED = review_item.c.leased_until > func.now()

_ITEM = (
    review_item.c.id,
    review_item.c.dt,
    review_item.c.comment_id,
    review_item.c.text,
    review_item.c.parent_text,
    review_item.c.language,
    review_item.c.platform,
    review_item.c.version,
)


def lease(engine: Engine, moderator_id: int, length: dt.timedelta = LEASE_LENGTH) -> Lease | None:
    """Return a lease of the next item for this moderator, or None when there is none.

    The next is the first by day and rank that nobody holds and that this moderator has not
    skipped. A second opinion waits for the first label, and for anybody but the person who gave
    it. Concurrent calls never return the same item and never wait for each other. A lease that
    runs out returns by itself.
    """
    token = secrets.token_urlsafe(24)
    next_item = (
        select(review_item.c.id)
        .where(
            waiting,
            or_(review_item.c.leased_until.is_(None), ~_LEASED),
            may_be_served(moderator_id),
        )
        .order_by(review_item.c.dt, review_item.c.rank, review_item.c.id)
        .limit(1)
        .with_for_update(skip_locked=True, of=review_item)
        .scalar_subquery()
    )
    statement = (
        update(review_item)
        .where(review_item.c.id == next_item)
        .values(
            lease_digest=_digest(token),
            leased_by=moderator_id,
            leased_until=func.now() + length,
            claimed_at=func.now(),
        )
        .returning(*_ITEM, review_item.c.claimed_at, review_item.c.leased_until)
    )
    with engine.begin() as connection:
        row = connection.execute(statement).mappings().one_or_none()
    return None if row is None else _lease(row, token)


def resume(engine: Engine, moderator_id: int, item_id: int, lease_token: str) -> Lease | None:
    """Return the lease again if it still holds, as after a reload of a page; None if not."""
    statement = select(*_ITEM, review_item.c.claimed_at, review_item.c.leased_until).where(
        _held(moderator_id, item_id, lease_token)
    )
    with engine.connect() as connection:
        row = connection.execute(statement).mappings().one_or_none()
    return None if row is None else _lease(row, lease_token)


def decide(
    engine: Engine,
    *,
    moderator_id: int,
    item_id: int,
    lease_token: str,
    label: int,
    idempotency_key: str,
    seconds: float | None = None,
    policy_code: str | None = None,
    note: str | None = None,
) -> Decision:
    """Label a leased item (1 toxic, 0 not) and return the decision.

    The same request again, known by its `idempotency_key`, returns the same decision. `seconds` is
    the time from claim to decision unless given. Raises `LeaseConflictError` when the lease is
    another person's, over or used, `ItemNotFoundError` when the item was withdrawn, `QueueError`
    when an argument cannot be.
    """
    if label not in (0, 1):
        raise QueueError(f"a label is 0 or 1, not {label!r}")
    return _settle(
        engine,
        lease_token,
        item_id=item_id,
        moderator_id=moderator_id,
        action="label",
        label=int(label),  # True would be hashed as true, and read back as 1
        policy_code=policy_code,
        note=note,
        seconds=seconds,
        idempotency_key=idempotency_key,
    )


def skip(
    engine: Engine,
    *,
    moderator_id: int,
    item_id: int,
    lease_token: str,
    idempotency_key: str,
    seconds: float | None = None,
    note: str | None = None,
) -> Decision:
    """Give a leased item back, for others only; return the decision to do so. As `decide`."""
    return _settle(
        engine,
        lease_token,
        item_id=item_id,
        moderator_id=moderator_id,
        action="skip",
        label=None,
        policy_code=None,
        note=note,
        seconds=seconds,
        idempotency_key=idempotency_key,
    )


def _settle(engine: Engine, lease_token: str, **request: Any) -> Decision:
    _check(request)
    with engine.begin() as connection:
        item = connection.execute(_release(request, lease_token)).one_or_none()
        if item is None:
            return _replay(connection, request)
        seconds = request["seconds"]
        if seconds is None:
            seconds = max(0.0, (item.decided_at - item.claimed_at).total_seconds())
        done = append(
            connection,
            {
                **request,
                "seconds": float(seconds),
                "dt": item.dt,
                "comment_id": item.comment_id,
                "kind": item.kind,
                "item_version": item.version - 1,
                "decided_at": item.decided_at,
            },
        )
        if done is None:  # raising takes the release back
            raise LeaseConflictError(_key_reused(request))
    return done


def _release(request: dict[str, Any], lease_token: str) -> Any:
    """Return the statement that ends the lease; it touches no row unless the lease holds."""
    return (
        update(review_item)
        .where(_held(request["moderator_id"], request["item_id"], lease_token))
        .values(
            status="decided" if request["action"] == "label" else "waiting",
            lease_digest=None,
            leased_by=None,
            leased_until=None,
            version=review_item.c.version + 1,
        )
        .returning(
            review_item.c.dt,
            review_item.c.comment_id,
            review_item.c.kind,
            review_item.c.version,
            review_item.c.claimed_at,
            func.now().label("decided_at"),
        )
    )


def _replay(connection: Connection, request: dict[str, Any]) -> Decision:
    """Return the decision that this request made before, or say why there is none."""
    earlier = (
        connection.execute(
            select(decision).where(
                decision.c.moderator_id == request["moderator_id"],
                decision.c.idempotency_key == request["idempotency_key"],
            )
        )
        .mappings()
        .one_or_none()
    )
    if earlier is None:
        raise _conflict(connection, request["item_id"])
    if any(earlier[name] != request[name] for name in ("item_id", "action", "label", "note")):
        raise LeaseConflictError(_key_reused(request))
    return Decision(**earlier)


def _conflict(connection: Connection, item_id: int) -> QueueError:
    status = connection.scalar(select(review_item.c.status).where(review_item.c.id == item_id))
    if status in (None, "withdrawn"):
        return ItemNotFoundError(
            f"item {item_id} was withdrawn or never queued; lease the next one"
        )
    return LeaseConflictError(
        f"the lease of item {item_id} is not yours, has run out or was used; lease the next one"
    )


def _key_reused(request: dict[str, Any]) -> str:
    return (
        f"the idempotency key for item {request['item_id']} belongs to another decision of yours; "
        "send a new key"
    )


def _check(request: dict[str, Any]) -> None:
    owner = f"the decision of item {request['item_id']}"
    for name in ("note", "policy_code", "idempotency_key"):
        storable(request[name], name, owner)
        if len(request[name] or "") > LONGEST_NOTE:
            raise QueueError(f"the {name} of {owner} is longer than {LONGEST_NOTE}; shorten it")
    seconds = request["seconds"]
    if seconds is not None and not 0 <= seconds < float("inf"):
        raise QueueError(f"the seconds of {owner} are {seconds}; send none, or a number from 0 on")


def _held(moderator_id: int, item_id: int, lease_token: str) -> ColumnElement[bool]:
    return and_(
        review_item.c.id == item_id,
        waiting,
        review_item.c.leased_by == moderator_id,
        review_item.c.lease_digest == _digest(lease_token),
        _LEASED,
    )


def _lease(row: RowMapping, token: str) -> Lease:
    return Lease(
        item=Item(**{column.name: row[column.name] for column in _ITEM}),
        token=token,
        claimed_at=row["claimed_at"],
        expires_at=row["leased_until"],
    )


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()
