"""Undo: taking back what was just done.

Nothing in the log changes; an amendment is a decision of its own that refers to the one before.
"""

import datetime as dt
import secrets
from collections.abc import Collection

from sqlalchemy import Connection, Engine, RowMapping, and_, func, or_, select, update

from modwatch.errors import ItemNotFoundError, LeaseConflictError, QueueError
from modwatch.review.digests import digest_of
from modwatch.review.log.decision_log import COLUMNS, Decision, append, entry_of, made_under
from modwatch.review.log.labels import final_decision, stands
from modwatch.review.queue.items import Lease, storable
from modwatch.review.queue.leases import LEASE_LENGTH, lease_of
from modwatch.review.tables import decision, review_item

#: A decision can be undone for so long; afterwards it can be corrected.
UNDO_WITHIN = dt.timedelta(minutes=10)

#: What can be undone.
UNDOABLE = ("label", "adjudicate", "skip", "escalate")


def undo(
    engine: Engine,
    *,
    moderator_id: int,
    decision_id: int,
    idempotency_key: str,
    within: dt.timedelta = UNDO_WITHIN,
    length: dt.timedelta = LEASE_LENGTH,
) -> Lease:
    """Take back one's own last decision of an item, and return the item leased to decide it anew.

    The same request again returns the item once more, as long as it is not decided. Raises
    `LeaseConflictError` when it is too late or somebody went on with the item, `ItemNotFoundError`
    when there is no such decision of this person.
    """
    token = secrets.token_urlsafe(24)
    with engine.begin() as connection:
        before = _own(connection, moderator_id, decision_id)
        item = locked_item(connection, before["item_id"])
        if not _undone_before(connection, before, item, moderator_id, idempotency_key):
            _refuse_late_undo(before, item, within)
            amendment = entry_of(
                item, action="undo", refers_to=decision_id,
                idempotency_key=idempotency_key, decided_at=item["now"],
            )  # fmt: skip
            append(connection, moderator_id, [amendment])
            _bring_back(connection, before, item)
        return _leased_again(connection, item["id"], moderator_id, token, length)


def _own(connection: Connection, moderator_id: int, decision_id: int) -> RowMapping:
    row = (
        connection.execute(
            select(*COLUMNS).where(
                decision.c.id == decision_id, decision.c.moderator_id == moderator_id
            )
        )
        .mappings()
        .one_or_none()
    )
    if row is None:
        raise ItemNotFoundError(f"there is no decision {decision_id} of yours; reload your day")
    return row


def locked_item(connection: Connection, item_id: int) -> RowMapping:
    """Return an item, locked until the transaction ends, and the time as `now`."""
    row = (
        connection.execute(
            select(review_item, func.now().label("now"))
            .where(review_item.c.id == item_id)
            .with_for_update()
        )
        .mappings()
        .one_or_none()
    )
    if row is None:
        raise ItemNotFoundError(f"item {item_id} was never queued; search for its comment")
    return row


def _undone_before(
    connection: Connection, before: RowMapping, item: RowMapping, moderator_id: int, key: str
) -> bool:
    """Return whether this request was carried out before, and its lease is still the person's."""
    earlier = connection.execute(made_under(moderator_id, key)).mappings().one_or_none()
    if earlier is None:
        return False
    if earlier["action"] != "undo" or earlier["refers_to"] != before["id"]:
        raise LeaseConflictError("the idempotency key belongs to another decision; send a new key")
    if item["version"] != earlier["item_version"] + 1 or item["leased_by"] != moderator_id:
        raise LeaseConflictError(_gone_on(item["id"]))
    return True


def _refuse_late_undo(before: RowMapping, item: RowMapping, within: dt.timedelta) -> None:
    if before["action"] not in UNDOABLE:
        raise QueueError(f"a decision to {before['action']} cannot be undone; correct the label")
    if item["now"] - before["decided_at"] > within:
        raise LeaseConflictError(
            f"the decision of item {item['id']} can be undone for "
            f"{within.total_seconds() / 60:.0f} minutes only; correct it instead"
        )
    leased = item["leased_until"] is not None and item["leased_until"] > item["now"]
    if leased or item["version"] != before["item_version"] + 1:
        raise LeaseConflictError(_gone_on(item["id"]))
    if item["status"] not in ("waiting", "escalated", "decided"):
        raise LeaseConflictError(f"item {item['id']} was given up; there is nothing to undo")


def _gone_on(item_id: int) -> str:
    return f"somebody went on with item {item_id} since; correct it instead"


def _bring_back(connection: Connection, before: RowMapping, item: RowMapping) -> None:
    """Let the item stand as before the decision; its second opinion waits for the label again."""
    back = _status_before(connection, before, item)
    twin = review_item.alias("twin")
    same_comment = and_(
        twin.c.dt == item["dt"], twin.c.comment_id == item["comment_id"], twin.c.id != item["id"]
    )
    # Whoever reads the twin right now shall not meet the comment again here.
    readers = select(func.array_agg(twin.c.leased_by)).where(
        same_comment, twin.c.leased_until > func.now()
    )
    without_me = func.array_remove(review_item.c.excluded, before["moderator_id"])
    connection.execute(
        update(review_item)
        .where(review_item.c.id == item["id"])
        .values(
            status=back,
            version=review_item.c.version + 1,
            excluded=func.array_cat(without_me, readers.scalar_subquery()),
        )
    )
    free = or_(review_item.c.leased_until.is_(None), review_item.c.leased_until <= func.now())
    connection.execute(
        update(review_item)
        .where(
            review_item.c.dt == item["dt"],
            review_item.c.comment_id == item["comment_id"],
            review_item.c.kind == "second_opinion",
            review_item.c.status == "waiting",
            item["kind"] == "review",
            free,
        )
        .values(status="blocked")
    )


def _status_before(connection: Connection, before: RowMapping, item: RowMapping) -> str:
    """Return where the item stood when `before` was decided."""
    if before["action"] == "skip":
        status: str = item["status"]
        return status
    if before["action"] == "label":
        return "waiting"
    if before["action"] == "adjudicate":
        return "escalated"
    # A lead may hand on what a lead was asked already, unless it was routed again in between.
    last = select(func.max(decision.c.item_version)).where(
        decision.c.item_id == item["id"], decision.c.id < before["id"]
    )
    if connection.scalar(last) != before["item_version"] - 1:
        return "waiting"
    earlier = select(decision.c.action).where(
        decision.c.item_id == item["id"],
        decision.c.id < before["id"],
        stands("escalate", "label"),
    )
    said = connection.scalars(earlier).all()
    asked = "escalate" in said or said.count("label") >= item["labels_wanted"]
    return "escalated" if asked else "waiting"


def _leased_again(
    connection: Connection, item_id: int, moderator_id: int, token: str, length: dt.timedelta
) -> Lease:
    row = (
        connection.execute(
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
        .mappings()
        .one()
    )
    return lease_of(row, token)


#: What a lead may correct; the others are for comparing what people say by themselves. Everybody
#: may correct their own, of all kinds alike: a refusal would tell of what kind an item was.
_CORRECTABLE = ("review", "imported")


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
    """Replace the label that stands of a decided item, and return the correction.

    A moderator corrects their own, a lead everybody's (`others_too`), in `queues` alone (None:
    all). `more` may hold `policy_version`, `policy_code` and `note`. Raises `LeaseConflictError`
    when the item is not decided or has changed since `version`, `QueueError` when this person may
    not.
    """
    if label not in (0, 1):
        raise QueueError(f"a label is 0 or 1, not {label!r}")
    for name, value in {"reason": reason, "idempotency_key": idempotency_key, **more}.items():
        storable(value, name, f"the correction of item {item_id}")
    with engine.begin() as connection:
        item = _item_of(connection, item_id, queues)
        before = made_under(moderator_id, idempotency_key)
        earlier = connection.execute(before).mappings().one_or_none()
        if earlier is not None:
            return _same_correction(earlier, item_id, label)
        stands = _standing(connection, item, version)
        _refuse_foreign(stands, moderator_id, others_too=others_too)
        correction = entry_of(
            item, action="correct", label=int(label), reason=reason, refers_to=stands["id"],
            idempotency_key=idempotency_key, decided_at=item["now"], **more,
        )  # fmt: skip
        done = append(connection, moderator_id, [correction])
        connection.execute(
            update(review_item).where(review_item.c.id == item_id).values(version=version + 1)
        )
    return done[0]


def _item_of(connection: Connection, item_id: int, queues: Collection[str] | None) -> RowMapping:
    item = locked_item(connection, item_id)
    if queues is not None and item["queue"] not in queues:
        raise ItemNotFoundError(f"item {item_id} was never queued; search for its comment")
    return item


def _refuse_foreign(stands: RowMapping, moderator_id: int, *, others_too: bool) -> None:
    if stands["moderator_id"] == moderator_id:
        return
    if not others_too:
        raise QueueError(f"the label of item {stands['item_id']} is another person's; ask a lead")
    if stands["kind"] not in _CORRECTABLE:
        raise QueueError(f"item {stands['item_id']} compares what people say; its label is final")


def _standing(connection: Connection, item: RowMapping, version: int) -> RowMapping:
    """Return the decision whose label stands; refuse if the item is not what the person saw."""
    if item["status"] != "decided" or item["version"] != version:
        raise LeaseConflictError(f"item {item['id']} has changed since; reload it")
    return connection.execute(final_decision(item["id"], *COLUMNS)).mappings().one()


def _same_correction(earlier: RowMapping, item_id: int, label: int) -> Decision:
    wanted = ("correct", item_id, label)
    if (earlier["action"], earlier["item_id"], earlier["label"]) != wanted:
        raise LeaseConflictError("the idempotency key belongs to another decision; send a new key")
    return Decision(**earlier)
