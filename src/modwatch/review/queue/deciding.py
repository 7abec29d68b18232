"""Decisions on leased items: label, skip, or escalate to a lead."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine

from modwatch.common.errors import LeaseConflictError, QueueError
from modwatch.review.database import DriverSql, at_once
from modwatch.review.digests import digest_of
from modwatch.review.log.decision_log import Decision, made_under
from modwatch.review.queue.items import storable
from modwatch.review.queue.leases import conflict
from modwatch.review.queue.statements import DECIDE

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
    """Skip a leased item, which only others are served from now on; otherwise as `decide`."""
    return _record(engine, "skip", None, Request(**request))


def escalate(engine: Engine, **request: Any) -> Decision:
    """Escalate a leased item to a lead; otherwise as `decide`."""
    return _record(engine, "escalate", None, Request(**request))


def _record(engine: Engine, action: str, label: int | None, request: Request) -> Decision:
    _check(request)
    values = {name: getattr(request, name) for name in Request.__dataclass_fields__}
    values |= {"action": action, "label": label, "digest": digest_of(values.pop("lease_token"))}
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
