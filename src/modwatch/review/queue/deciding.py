"""What a person does with a leased item: decide it, skip it, or hand it to a lead."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, text

from modwatch.errors import LeaseConflictError, QueueError
from modwatch.review.database import at_once
from modwatch.review.digests import digest_of
from modwatch.review.log.decision_log import Decision, made_under
from modwatch.review.queue.items import storable
from modwatch.review.queue.leases import conflict
from modwatch.review.queue.statements import ANSWERED, DECIDE

LONGEST_NOTE = 4_000

_DECIDE = text(DECIDE)

#: What of a decision only the request says.
_REQUESTED = tuple(name for name in Decision.__dataclass_fields__ if name not in ANSWERED)


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a person does with a leased item."""

    moderator_id: int
    item_id: int
    lease_token: str
    #: Any string of the person's own: the same request again returns the same decision.
    idempotency_key: str
    #: The version of the item that was read; None: whichever.
    version: int | None = None
    #: From claim to decision, unless given.
    seconds: float | None = None
    policy_version: str | None = None
    policy_code: str | None = None
    reason: str | None = None
    note: str | None = None


def decide(engine: Engine, *, label: int, **request: Any) -> Decision:
    """Label a leased item (1 toxic, 0 not) and return the decision; `Request` names the fields.

    An item that wants several labels waits for the others; when they disagree, or when it was
    escalated, the label of a lead settles it. The same request again, known by its
    `idempotency_key`, returns the same decision. Raises `LeaseConflictError` when the lease is
    another person's, over or used, or the item has another version, `ItemNotFoundError` when it
    was withdrawn, `QueueError` when an argument cannot be.
    """
    if label not in (0, 1):
        raise QueueError(f"a label is 0 or 1, not {label!r}")
    return _settle(engine, "label", int(label), Request(**request))


def skip(engine: Engine, **request: Any) -> Decision:
    """Give a leased item back, for others only; return the decision to do so. As `decide`."""
    return _settle(engine, "skip", None, Request(**request))


def escalate(engine: Engine, **request: Any) -> Decision:
    """Hand a leased item to a lead; return the decision to do so. As `decide`."""
    return _settle(engine, "escalate", None, Request(**request))


def _settle(engine: Engine, action: str, label: int | None, request: Request) -> Decision:
    _check(request)
    values = {name: getattr(request, name) for name in Request.__dataclass_fields__}
    values |= {"action": action, "label": label, "digest": digest_of(values.pop("lease_token"))}
    rows = at_once(engine, _DECIDE, values)
    if not rows:
        return _replay(engine, values)
    return Decision(**{name: values[name] for name in _REQUESTED}, **rows[0])


def _replay(engine: Engine, values: dict[str, Any]) -> Decision:
    """Return the decision that this request made before, or say why there is none."""
    rows = at_once(engine, made_under(values["moderator_id"], values["idempotency_key"]), {})
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
            raise QueueError(f"the {name} of {owner} is longer than {LONGEST_NOTE}; shorten it")
    seconds = request.seconds
    if seconds is not None and not 0 <= seconds < float("inf"):
        raise QueueError(f"the seconds of {owner} are {seconds}; send none, or a number from 0 on")
