"""Amendments of decisions: undo, which reverts a person's last one, and correction of a label.

Nothing in the log changes: an amendment is a decision of its own that refers to the earlier one.
"""

import datetime as dt
import secrets
from collections.abc import Collection

from sqlalchemy import (
    Connection,
    Engine,
    RowMapping,
    all_,
    and_,
    case,
    func,
    literal,
    select,
    update,
)

from modwatch.common.errors import ItemNotFoundError, LeaseConflictError, QueueError
from modwatch.review.digests import digest_of
from modwatch.review.log.decision_log import COLUMNS, Decision, append, entry_of, made_under
from modwatch.review.log.labels import current_decision, in_force
from modwatch.review.queue.items import Lease, storable
from modwatch.review.queue.leases import LEASE_LENGTH, lease_of
from modwatch.review.queue.statements import settle
from modwatch.review.tables import ACTIONABLE_KINDS, decision, review_item

#: How long a decision can be undone; later it can only be corrected.
UNDO_WITHIN = dt.timedelta(minutes=10)

#: The actions that can be undone.
UNDOABLE = ("label", "adjudicate", "skip", "escalate")

_KEY_IN_USE = "the idempotency key belongs to another decision; send a new key"


def undo(
    engine: Engine,
    *,
    moderator_id: int,
    decision_id: int,
    idempotency_key: str,
    within: dt.timedelta = UNDO_WITHIN,
    length: dt.timedelta = LEASE_LENGTH,
) -> Lease:
    """Revert the person's own last decision of an item, and return the item leased to them again.

    The same request again returns the item again, until it is decided. Raises `LeaseConflictError`
    if it is too late or another person has continued with the item, `ItemNotFoundError` if this
    person has no such decision.
    """
    token = secrets.token_urlsafe(24)
    with engine.begin() as connection:
        before = _own(connection, moderator_id, decision_id)
        item = _locked_item(connection, before["item_id"])
        if not _undone_before(connection, before, item, moderator_id, idempotency_key):
            _check_undoable(before, item, within)
            status = _status_before(connection, before, item)
            amendment = entry_of(
                item, action="undo", refers_to=decision_id, outcome=status,
                idempotency_key=idempotency_key, decided_at=item["now"],
            )  # fmt: skip
            append(connection, moderator_id, [amendment])
            _restore(connection, before, item, status)
        return _leased_again(connection, item["id"], moderator_id, token, length)


def correct(
    engine: Engine,
    *,
    moderator_id: int,
    item_id: int,
    label: int,
    version: int,
    idempotency_key: str,
    reason: str,
    others_too: bool = False,
    queues: Collection[str] | None = None,
    **more: str | None,
) -> Decision:
    """Replace the current label of a decided item, and return the correction.

    Moderators correct their own labels, leads everyone's (`others_too`), in `queues` only (None:
    all). `more` may contain `policy_version`, `policy_code` and `note`. Raises `LeaseConflictError`
    if the item is not decided or has changed since `version`, `QueueError` if this person may not
    correct it.
    """
    if label not in (0, 1):
        raise QueueError(f"a label must be 0 or 1, got {label!r}")
    for name, value in {"reason": reason, "idempotency_key": idempotency_key, **more}.items():
        storable(value, name, f"the correction of item {item_id}")
    with engine.begin() as connection:
        item = _locked_item(connection, item_id, queues)
        before = made_under(moderator_id, idempotency_key)
        earlier = connection.execute(before).mappings().one_or_none()
        if earlier is not None:
            return _same_correction(earlier, item_id, label)
        if item["status"] != "decided" or item["version"] != version:
            raise LeaseConflictError(f"item {item_id} has changed; reload it")
        current = connection.execute(current_decision(item_id, *COLUMNS)).mappings().one()
        _check_correctable(current, moderator_id, others_too=others_too)
        correction = entry_of(
            item, action="correct", label=int(label), reason=reason, refers_to=current["id"],
            outcome="decided", idempotency_key=idempotency_key, decided_at=item["now"], **more,
        )  # fmt: skip
        done = append(connection, moderator_id, [correction])
        connection.execute(
            update(review_item).where(review_item.c.id == item_id).values(version=version + 1)
        )
        _exclude(connection, item, moderator_id)
    return done[0]


def _own(connection: Connection, moderator_id: int, decision_id: int) -> RowMapping:
    mine = and_(decision.c.id == decision_id, decision.c.moderator_id == moderator_id)
    row = connection.execute(select(*COLUMNS).where(mine)).mappings().one_or_none()
    if row is None:
        raise ItemNotFoundError(f"you have no decision {decision_id}; reload your day")
    return row


def _locked_item(
    connection: Connection, item_id: int, queues: Collection[str] | None = None
) -> RowMapping:
    """Return an item of `queues`, locked until the transaction ends, and the time as `now`."""
    query = select(review_item, func.now().label("now")).where(review_item.c.id == item_id)
    row = connection.execute(query.with_for_update()).mappings().one_or_none()
    if row is None or (queues is not None and row["queue"] not in queues):
        raise ItemNotFoundError(f"item {item_id} is not in the queue; search for its comment")
    return row


def _undone_before(
    connection: Connection, before: RowMapping, item: RowMapping, moderator_id: int, key: str
) -> bool:
    """Return whether this request was carried out before and the person still has the lease."""
    earlier = connection.execute(made_under(moderator_id, key)).mappings().one_or_none()
    if earlier is None:
        return False
    if earlier["action"] != "undo" or earlier["refers_to"] != before["id"]:
        raise LeaseConflictError(_KEY_IN_USE)
    if item["version"] != earlier["item_version"] + 1 or item["leased_by"] != moderator_id:
        raise _changed(item["id"])
    return True


def _check_undoable(before: RowMapping, item: RowMapping, within: dt.timedelta) -> None:
    if before["action"] not in UNDOABLE:
        raise QueueError(
            f"a decision of action {before['action']} cannot be undone; correct the label instead"
        )
    if item["now"] - before["decided_at"] > within:
        raise LeaseConflictError(
            f"the decision of item {item['id']} can only be undone within "
            f"{within.total_seconds() / 60:.0f} minutes; correct it instead"
        )
    leased = item["leased_until"] is not None and item["leased_until"] > item["now"]
    if leased or item["version"] != before["item_version"] + 1:
        raise _changed(item["id"])
    if item["status"] not in ("waiting", "escalated", "decided"):
        raise LeaseConflictError(
            f"item {item['id']} was withdrawn or dismissed; there is nothing to undo"
        )


def _changed(item_id: int) -> LeaseConflictError:
    return LeaseConflictError(
        f"another person has continued with item {item_id}; correct it instead"
    )


def _restore(connection: Connection, before: RowMapping, item: RowMapping, status: str) -> None:
    """Restore the item to its state before the decision, and block confirmations that it opened."""
    twin = review_item.alias("twin")
    # Whoever reads another item of this comment now must not be served this one.
    readers = select(func.array_agg(twin.c.leased_by)).where(
        twin.c.dt == item["dt"],
        twin.c.comment_id == item["comment_id"],
        twin.c.id != item["id"],
        twin.c.leased_until > func.now(),
    )
    without_me = func.array_remove(review_item.c.excluded, before["moderator_id"])
    connection.execute(
        update(review_item)
        .where(review_item.c.id == item["id"])
        .values(
            status=status,
            severe_due_at=case((literal(status) == "escalated", review_item.c.severe_due_at)),
            version=review_item.c.version + 1,
            excluded=func.array_cat(without_me, readers.scalar_subquery()),
        )
    )
    settle(connection, item["dt"], [item["comment_id"]], but=item["id"])


def _exclude(connection: Connection, item: RowMapping, moderator_id: int) -> None:
    """Serve the item's comment no more to a person who corrected its label.

    A locked item is being leased or decided: the label of somebody who corrected another one
    before does not count, see `log.labels`.
    """
    other = review_item.c
    chosen = (
        select(other.id)
        .where(
            other.dt == item["dt"],
            other.comment_id == item["comment_id"],
            other.id != item["id"],
            other.reserved_for.is_(None),
            literal(moderator_id) != all_(other.excluded),
        )
        .with_for_update(skip_locked=True)
    )
    connection.execute(
        update(review_item)
        .where(other.id.in_(chosen))
        .values(excluded=func.array_append(other.excluded, moderator_id))
    )


def _status_before(connection: Connection, before: RowMapping, item: RowMapping) -> str:
    """Return the item's status before the decision `before`."""
    if before["action"] == "skip":
        return str(item["status"])
    if before["action"] == "label":
        return "waiting"
    if before["action"] == "adjudicate":
        return "escalated"
    # A lead may escalate an item that was escalated already, unless it was routed again since.
    last = select(func.max(decision.c.item_version)).where(
        decision.c.item_id == item["id"], decision.c.id < before["id"]
    )
    if connection.scalar(last) != before["item_version"] - 1:
        return "waiting"
    earlier = select(decision.c.action).where(
        decision.c.item_id == item["id"],
        decision.c.id < before["id"],
        in_force("escalate", "label"),
    )
    actions = connection.scalars(earlier).all()
    escalated = "escalate" in actions or actions.count("label") >= item["labels_wanted"]
    return "escalated" if escalated else "waiting"


def _leased_again(
    connection: Connection, item_id: int, moderator_id: int, token: str, length: dt.timedelta
) -> Lease:
    lease = (
        update(review_item)
        .where(review_item.c.id == item_id)
        .values(
            lease_digest=digest_of(token),
            leased_by=moderator_id,
            leased_until=func.now() + length,
            claimed_at=func.now(),
        )
        .returning(review_item)
    )
    return lease_of(connection.execute(lease).mappings().one(), token)


def _check_correctable(current: RowMapping, moderator_id: int, *, others_too: bool) -> None:
    """Raise `QueueError` unless this person may correct the decision `current`.

    Everyone may correct their own label, of every kind: a rejection would reveal the kind.
    """
    if current["moderator_id"] == moderator_id:
        return
    if not others_too:
        raise QueueError(
            f"the label of item {current['item_id']} is another person's; ask a lead to correct it"
        )
    if current["kind"] not in ACTIONABLE_KINDS:
        raise QueueError(
            f"item {current['item_id']} is a measurement; only the person who labelled it may "
            "correct it"
        )


def _same_correction(earlier: RowMapping, item_id: int, label: int) -> Decision:
    wanted = ("correct", item_id, label)
    if (earlier["action"], earlier["item_id"], earlier["label"]) != wanted:
        raise LeaseConflictError(_KEY_IN_USE)
    return Decision(**earlier)
