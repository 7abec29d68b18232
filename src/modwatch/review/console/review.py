"""Lease, decide, undo and correct items."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Header, Response
from pydantic import BaseModel, ConfigDict, Field, model_validator

from modwatch.common.errors import TooManyLeasesError
from modwatch.review.console.preferences import MANDATORY_REASONS, preferences_of
from modwatch.review.console.request_context import (
    Context,
    ContextDep,
    ReviewerDep,
    Session,
    check_scopes,
)
from modwatch.review.console.schemas import (
    Code,
    IdempotencyKey,
    Note,
    RecordId,
    RecordSchema,
    RequestSchema,
    Token,
    error_responses,
)
from modwatch.review.log.decision_log import Decision
from modwatch.review.people.accounts import Moderator
from modwatch.review.policy.tree import check, check_reason
from modwatch.review.queue import deciding, leases
from modwatch.review.queue.items import Lease, Opinion


class ItemSchema(RecordSchema):
    """A comment to decide; nothing of it tells why, when and for which day it was queued."""

    id: int = Field(description="In no order.")
    text: str = Field(repr=False)
    parent_text: str | None = Field(repr=False)
    shown: dict[str, Any] = Field(
        repr=False,
        description="Values of other columns, such as `language`; in `others` those in which "
        "comments differ; in `hidden`, of escalated items only, those that leads see.",
    )
    version: int


class LeaseSchema(RecordSchema):
    """The right to decide one item until `expires_at`."""

    item: ItemSchema
    token: str = Field(repr=False, description="Required to decide.")
    claimed_at: datetime
    expires_at: datetime
    opinions: tuple[Opinion, ...] = Field(description="Of an escalated item.")


class LeaseRequest(RequestSchema):
    """Which item to lease; without a body, the next one."""

    escalated: bool = Field(False, description="Lease an escalated item; for leads.")


class ExpirySchema(BaseModel):
    """When a lease expires."""

    expires_at: datetime


class DecisionRequest(RequestSchema):
    """A label for a leased item, a skip or an escalation."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"lease_token": "…", "action": "label", "label": 1, "policy_code": "threat"},
                {"lease_token": "…", "action": "skip", "reason": "language"},
            ]
        }
    )

    lease_token: Token
    action: Literal["label", "skip", "escalate"] = "label"
    label: Literal[0, 1] | None = Field(
        None, description="1 toxic, 0 not toxic; only with the action `label`."
    )
    policy_code: Code = None
    reason: Annotated[
        str | None,
        Field(max_length=60, description="Of the policy: why it is skipped or escalated."),
    ] = None
    note: Note = None
    version: Annotated[
        int | None, Field(ge=1, le=2**31 - 1, description="As read; a changed item is a conflict.")
    ] = None
    seconds: Annotated[
        float | None,
        Field(
            ge=0,
            le=86_400,
            allow_inf_nan=False,
            description="Time spent on it; default: since the claim.",
        ),
    ] = None

    @model_validator(mode="after")
    def _label_fits_action(self) -> "DecisionRequest":
        if (self.action == "label") != (self.label is not None):
            raise ValueError("`label` is required with the action `label`, and invalid with others")
        if self.action != "label" and self.policy_code is not None:
            raise ValueError("`policy_code` is only valid with the action `label`")
        return self


class DecisionSchema(RecordSchema):
    """A decision in the log."""

    id: int
    item_id: int
    action: str
    label: int | None
    policy_version: str | None
    policy_code: str | None
    reason: str | None
    seconds: float | None
    refers_to: int | None
    decided_at: datetime


api = APIRouter(prefix="/api/v1", tags=["queue"], responses=error_responses(401, 403, 503))


@api.post(
    "/leases",
    status_code=201,
    response_model=LeaseSchema,
    responses={204: {"description": "No items are available."}, **error_responses(413, 422, 429)},
)
def lease_next(
    context: ContextDep, person: ReviewerDep, request: Annotated[LeaseRequest | None, Body()] = None
) -> Response | Lease:
    """Lease the next item.

    The lease's token is returned only here; deciding and extending require it.
    """
    request = request or LeaseRequest()
    if request.escalated:
        check_scopes(person, "lead")
    leased = lease_for(context, person, 1, escalated=request.escalated)
    return leased[0] if leased else Response(status_code=204)


@api.put("/items/{item_id}/lease", responses=error_responses(404, 409, 422))
def extend_lease(
    item_id: RecordId,
    context: ContextDep,
    person: ReviewerDep,
    lease_token: Annotated[str, Header(alias="X-Lease-Token", min_length=1, max_length=200)],
) -> ExpirySchema:
    """Extend the lease (heartbeat), up to an hour after the claim."""
    until = leases.extend(context.engine, person.id, item_id, lease_token)
    return ExpirySchema(expires_at=until)


@api.post(
    "/items/{item_id}/decisions",
    status_code=201,
    response_model=DecisionSchema,
    responses=error_responses(404, 409, 413, 422, 429),
)
def decide_item(
    item_id: RecordId,
    request: DecisionRequest,
    idempotency_key: IdempotencyKey,
    context: ContextDep,
    person: ReviewerDep,
) -> Decision:
    """Decide a leased item; the same key again returns the same decision."""
    common: dict[str, Any] = {
        "moderator_id": person.id,
        "item_id": item_id,
        "idempotency_key": idempotency_key,
        "policy_version": context.options.policy.version,
        **request.model_dump(include={"lease_token", "version", "seconds", "reason", "note"}),
    }
    if request.reason is not None:
        check_reason(context.options.policy, request.action, request.reason)
    if request.label is None:
        severe = context.options.lanes.severe.seconds(request.reason)
        if request.action == "escalate" and severe is not None:
            return deciding.escalate(context.engine, severe_seconds=severe, **common)
        act = deciding.skip if request.action == "skip" else deciding.escalate
        with context.hourly_limit.turn(person.id, request.action, idempotency_key):
            return act(context.engine, **common)
    _check_code(context, request.label, request.policy_code)
    return deciding.decide(
        context.engine, label=request.label, policy_code=request.policy_code, **common
    )


def undo_decision(context: Context, person: Moderator, decision_id: int, key: str) -> Lease:
    """Undo a person's own recent label or escalation, and lease them the item again."""
    take = partial(
        deciding.undo,
        context.engine,
        moderator_id=person.id,
        decision_id=decision_id,
        idempotency_key=key,
    )
    with context.hourly_limit.turn(person.id, "undo", key):
        return context.lease_limit.within(person.id, take)


def lease_for(
    context: Context, person: Moderator, count: int, *, escalated: bool = False
) -> list[Lease]:
    """Return leases of at most `count` next items for `person`, by their queues and opt-outs.

    Raises `TooManyLeasesError` if they may not have even one.
    """
    lease_next: Callable[..., Lease | None] = leases.lease_escalated
    if not escalated:
        opt_outs = set(preferences_of(person.preferences).opt_outs) - MANDATORY_REASONS
        lease_next = partial(leases.lease, opt_outs=opt_outs, lanes=context.options.lanes)
    take = partial(lease_next, context.engine, person.id, queues=person.queues)
    leased: list[Lease] = []
    for _ in range(count):
        try:
            lease = context.lease_limit.within(person.id, take)
        except TooManyLeasesError:
            if not leased:
                raise
            break
        if lease is None:
            break
        leased.append(lease)
    return leased


def correct(
    session: Session,
    item_id: int,
    *,
    key: str,
    label: int,
    version: int,
    reason: str,
    policy_code: str | None = None,
    note: str | None = None,
    others_too: bool = False,
) -> None:
    """Replace the current label of a decided item, read at `version`.

    Only one's own, unless `others_too`. Raises `QueueError` for a code or reason that the policy
    lacks.
    """
    _check_code(session.context, label, policy_code)
    check_reason(session.policy, "correct", reason)
    deciding.correct(
        session.engine,
        moderator_id=session.person.id,
        item_id=item_id,
        idempotency_key=key,
        others_too=others_too,
        queues=session.person.queues,
        policy_version=session.policy.version,
        label=label,
        version=version,
        reason=reason,
        policy_code=policy_code,
        note=note,
    )


def _check_code(context: Context, label: int, code: str | None) -> None:
    check(context.options.policy, label, code, required=context.options.require_code and label == 1)
