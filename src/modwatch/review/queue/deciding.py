"""Decisions on leased items: label, skip, escalate to a lead, and amendments of them.

An amendment undoes a person's last decision or corrects a label. Nothing in the log changes: it is
a decision of its own that refers to the earlier one.
"""

import datetime as dt
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    Connection,
    Engine,
    RowMapping,
    and_,
    func,
    select,
    text,
    update,
)

from modwatch.common.errors import ItemNotFoundError, LeaseConflictError, QueueError
from modwatch.common.text import ERASED
from modwatch.review.database import DriverSql, at_once, digest_of
from modwatch.review.log.decision_log import COLUMNS, Decision, append, entry_of, made_under
from modwatch.review.log.labels import current_decision
from modwatch.review.queue.items import Lease, storable
from modwatch.review.queue.leases import LEASE_LENGTH, UNDO_WITHIN, conflict, lease_of
from modwatch.review.queue.statements import DECIDE, LONGEST_HOLD, settle
from modwatch.review.tables import ACTIONABLE_KINDS, decision, review_item

LONGEST_NOTE = 4_000

_DECIDE = DriverSql(DECIDE)


@dataclass(frozen=True, kw_only=True)
class Request:
    """The request to record a decision on a leased item."""

    moderator_id: int
    item_id: int
    lease_token: str
    #: Unique per person; the same request again returns the same decision.
    idempotency_key: str
    #: The version of the item that the person read; None: any.
    version: int | None = None
    #: Time spent; None: from claim to decision.
    seconds: float | None = None
    policy_version: str | None = None
    policy_code: str | None = None
    reason: str | None = None
    note: str | None = None
    #: Time within which a severe escalation is due, before all others; None: it is not severe.
    severe_seconds: float | None = None


def decide(engine: Engine, *, label: int, **request: Any) -> Decision:
    """Label a leased item (1 toxic, 0 not) and return the decision; `Request` names the fields.

    An item that several people label waits for the others; if they disagree, or if it was
    escalated, a lead adjudicates it. An item of an audit with confirmations waits for a second
    person if its first label is to be confirmed, and for a third if these disagree. The same
    request again, recognised by its `idempotency_key`, returns the same decision. Raises
    `LeaseConflictError` if the lease is another person's, expired or used, or the item has another
    version, `ItemNotFoundError` if it was withdrawn or dismissed, and `QueueError` for an invalid
    argument.
    """
    if label not in (0, 1):
        raise QueueError(f"a label must be 0 or 1, got {label!r}")
    return _record(engine, "label", int(label), Request(**request))


def skip(engine: Engine, **request: Any) -> Decision:
    """Skip a leased item, which only others are served from now on, as `decide`; for good."""
    return _record(engine, "skip", None, Request(**request))


def escalate(engine: Engine, **request: Any) -> Decision:
    """Escalate a leased item to a lead; otherwise as `decide`."""
    return _record(engine, "escalate", None, Request(**request))


def _record(engine: Engine, action: str, label: int | None, request: Request) -> Decision:
    _check(request)
    digest = digest_of(request.lease_token)
    values = vars(request) | {"action": action, "label": label, "digest": digest}
    rows = at_once(engine, _DECIDE, values)
    if not rows:
        return _replay(engine, values)
    return Decision(**rows[0])


def _replay(engine: Engine, values: dict[str, Any]) -> Decision:
    """Return the decision that this request made before, or raise why there is none."""
    rows = at_once(engine, made_under(values["moderator_id"], values["idempotency_key"]))
    if not rows:
        raise conflict(engine, values["item_id"])
    earlier = rows[0]
    same = ("item_id", "label", "policy_code", "reason", "note")
    action = "label" if earlier["action"] == "adjudicate" else earlier["action"]
    if action != values["action"] or any(earlier[name] != values[name] for name in same):
        raise LeaseConflictError(
            f"the idempotency key for item {values['item_id']} belongs to another decision of "
            "yours; send a new key"
        )
    return Decision(**earlier)


def _check(request: Request) -> None:
    owner = f"the decision of item {request.item_id}"
    for name in ("note", "policy_code", "policy_version", "reason", "idempotency_key"):
        value = storable(getattr(request, name), name, owner)
        if len(value or "") > LONGEST_NOTE:
            raise QueueError(
                f"the {name} of {owner} is longer than {LONGEST_NOTE} characters; shorten it"
            )
    seconds = request.seconds
    if seconds is not None and not 0 <= seconds < float("inf"):
        raise QueueError(f"the seconds of {owner} must be 0 or more, got {seconds}")


#: The actions that can be undone. Not a skip: others go on with the item, unless it is reserved.
UNDOABLE = ("label", "adjudicate", "escalate")

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
    if it is too late, the person would hold the item for more than an hour since they first leased
    it, or another person has continued with it, `ItemNotFoundError` if this person has no such
    decision.
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
                idempotency_key=idempotency_key,
            )  # fmt: skip
            append(connection, moderator_id, [amendment])
            connection.execute(_RESTORE, {**item, "person": moderator_id, "before": status})
            settle(connection, item["dt"], [item["comment_id"]], but=item["id"])
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
            outcome="decided", idempotency_key=idempotency_key, **more,
        )  # fmt: skip
        done = append(connection, moderator_id, [correction])
        connection.execute(
            update(review_item).where(review_item.c.id == item_id).values(version=version + 1)
        )
        connection.execute(_EXCLUDE, {**item, "person": moderator_id})
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
            f"a decision of action {before['action']} cannot be undone; correct the label, if any"
        )
    if item["now"] - before["decided_at"] > within:
        raise LeaseConflictError(
            f"the decision of item {item['id']} can only be undone within "
            f"{within.total_seconds() / 60:.0f} minutes; correct it instead"
        )
    if item["claimed_at"] is not None and item["now"] >= item["claimed_at"] + LONGEST_HOLD:
        raise LeaseConflictError(
            f"item {item['id']} was leased more than an hour ago, the longest that one person may "
            "hold it; correct the label instead"
        )
    leased = item["leased_until"] is not None and item["leased_until"] > item["now"]
    if leased or item["version"] != before["item_version"] + 1:
        raise _changed(item["id"])
    if item["status"] not in ("waiting", "escalated", "decided") or item["text"] == ERASED:
        raise LeaseConflictError(
            f"item {item['id']} was withdrawn or dismissed; there is nothing to undo"
        )


def _changed(item_id: int) -> LeaseConflictError:
    return LeaseConflictError(
        f"another person has continued with item {item_id}; correct it instead"
    )


#: Restores an item to its state before a decision. Whoever reads another item of this comment now
#: must not be served this one.
_RESTORE = text(
    """
    UPDATE review_item SET status = :before, version = version + 1,
        severe_due_at = CASE WHEN :before = 'escalated' THEN severe_due_at END,
        excluded = array_remove(excluded, :person) || (
            SELECT array_agg(leased_by) FROM review_item AS sibling
            WHERE sibling.dt = :dt AND sibling.comment_id = :comment_id AND sibling.id <> :id
                AND leased_until > now()
        )
    WHERE id = :id
    """
)

#: Serves the item's comment no more to a person who corrected its label. A locked item is being
#: leased or decided: the label of somebody who corrected another one before does not count, see
#: `log.labels`.
_EXCLUDE = text(
    """
    UPDATE review_item SET excluded = array_append(excluded, :person) WHERE id IN (
        SELECT id FROM review_item
        WHERE dt = :dt AND comment_id = :comment_id AND id <> :id AND reserved_for IS NULL
            AND :person <> ALL (excluded)
        FOR UPDATE SKIP LOCKED
    )
    """
)


def _status_before(connection: Connection, before: RowMapping, item: RowMapping) -> str:
    """Return the item's status before the decision `before`."""
    if before["action"] == "label":
        return "waiting"
    if before["action"] == "adjudicate":
        return "escalated"
    # A lead may escalate an item that was escalated already, unless it was routed again since.
    outcome: str | None = connection.scalar(
        select(decision.c.outcome)
        .where(decision.c.item_id == item["id"], decision.c.id < before["id"])
        .where(decision.c.item_version == before["item_version"] - 1)
        .order_by(decision.c.id.desc())
        .limit(1)
    )
    return outcome or "waiting"


def _leased_again(
    connection: Connection, item_id: int, moderator_id: int, token: str, length: dt.timedelta
) -> Lease:
    lease = (
        update(review_item)
        .where(review_item.c.id == item_id)
        .values(
            lease_digest=digest_of(token),
            leased_by=moderator_id,
            leased_until=func.least(func.now() + length, review_item.c.claimed_at + LONGEST_HOLD),
            claimed_at=func.coalesce(review_item.c.claimed_at, func.now()),
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
