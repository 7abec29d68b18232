"""Corrections: replacing the label that stands.

Nothing in the log changes; a correction is a decision of its own that refers to the one before.
"""

from collections.abc import Collection

from sqlalchemy import Connection, Engine, RowMapping, update

from modwatch.errors import ItemNotFoundError, LeaseConflictError, QueueError
from modwatch.review.log.decision_log import COLUMNS, Decision, append, entry_of, made_under
from modwatch.review.log.standing import final_decision
from modwatch.review.queue.amendments import locked_item
from modwatch.review.queue.items import storable
from modwatch.review.tables import review_item

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
