"""Lease, decide, undo and correct items; state of the queue, and the policy."""

from collections.abc import Callable
from datetime import date, datetime
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Depends, Header, Response
from pydantic import BaseModel, ConfigDict, Field, model_validator

from modwatch.common.errors import LeaseConflictError, TooManyLeasesError
from modwatch.review.console.preferences import MANDATORY_REASONS, preferences_of
from modwatch.review.console.request_context import (
    Context,
    ContextDep,
    ReviewerDep,
    check_scopes,
    require,
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
from modwatch.review.queue import deciding, leases, metrics
from modwatch.review.queue.items import Lease, Opinion
from modwatch.review.queue.metrics import QueueAges


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
    """Which items to lease; without a body, the next item."""

    count: Annotated[int | None, Field(ge=1, le=3)] = Field(
        None, description="Maximum number of leases; if given, the response is a list."
    )
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
        Field(max_length=60, description="Why it is skipped or escalated; see `GET /policy`."),
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


class CorrectionRequest(RequestSchema):
    """A new label for a decided item."""

    label: Literal[0, 1]
    version: Annotated[int, Field(ge=1, le=2**31 - 1, description="Of the item as read.")]
    reason: Annotated[str, Field(min_length=1, max_length=60)]
    policy_code: Code = None
    note: Note = None


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


class CountsSchema(RecordSchema):
    """Number of items by state; each item has one."""

    waiting: int
    leased: int
    decided: int
    withdrawn: int


class QueueSchema(BaseModel):
    """Counts and ages of the queue."""

    counts: CountsSchema
    ages: QueueAges


api = APIRouter(prefix="/api/v1", tags=["queue"], responses=error_responses(401, 403, 503))

LeaseToken = Annotated[
    str, Header(alias="X-Lease-Token", min_length=1, max_length=200, description="Of the lease.")
]


@api.post(
    "/leases",
    status_code=201,
    response_model=LeaseSchema | list[LeaseSchema],
    responses={204: {"description": "No items are available."}, **error_responses(413, 422, 429)},
)
def lease_next(
    context: ContextDep, person: ReviewerDep, request: Annotated[LeaseRequest | None, Body()] = None
) -> Response | Lease | list[Lease]:
    """Lease the next item, or several with `count`.

    The lease's token is returned only here; deciding, extending and releasing require it.
    """
    request = request or LeaseRequest()
    if request.escalated:
        check_scopes(person, "lead")
    leased = lease_for(context, person, request.count or 1, escalated=request.escalated)
    if not leased:
        return Response(status_code=204)
    return leased[0] if request.count is None else leased


@api.get(
    "/items/{item_id}/lease", response_model=LeaseSchema, responses=error_responses(404, 409, 422)
)
def resume_lease(
    item_id: RecordId, context: ContextDep, person: ReviewerDep, lease_token: LeaseToken
) -> Lease:
    """Return the lease if it is still valid."""
    lease = leases.resume(context.engine, person.id, item_id, lease_token)
    if lease is None:
        raise LeaseConflictError(
            f"the lease of item {item_id} has expired or is not yours; lease the next item"
        )
    return lease


@api.put("/items/{item_id}/lease", responses=error_responses(404, 409, 422))
def extend_lease(
    item_id: RecordId, context: ContextDep, person: ReviewerDep, lease_token: LeaseToken
) -> ExpirySchema:
    """Extend the lease (heartbeat), up to an hour after the claim."""
    until = leases.extend(context.engine, person.id, item_id, lease_token)
    return ExpirySchema(expires_at=until)


@api.delete("/items/{item_id}/lease", status_code=204, responses=error_responses(422))
def release_lease(
    item_id: RecordId, context: ContextDep, person: ReviewerDep, lease_token: LeaseToken
) -> None:
    """Release the item without a decision; a no-op for an invalid lease."""
    leases.release(context.engine, person.id, item_id, lease_token)


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


@api.post(
    "/decisions/{decision_id}/undo",
    status_code=201,
    response_model=LeaseSchema,
    responses=error_responses(404, 409, 422, 429),
)
def undo_decision(
    decision_id: RecordId, idempotency_key: IdempotencyKey, context: ContextDep, person: ReviewerDep
) -> Lease:
    """Undo your own recent label or escalation, and lease the item again."""
    take = partial(
        deciding.undo,
        context.engine,
        moderator_id=person.id,
        decision_id=decision_id,
        idempotency_key=idempotency_key,
    )
    with context.hourly_limit.turn(person.id, "undo", idempotency_key):
        return context.lease_limit.within(person.id, take)


@api.post(
    "/items/{item_id}/corrections",
    status_code=201,
    response_model=DecisionSchema,
    responses=error_responses(404, 409, 413, 422),
)
def correct_item(
    item_id: RecordId,
    request: CorrectionRequest,
    idempotency_key: IdempotencyKey,
    context: ContextDep,
    person: ReviewerDep,
) -> Decision:
    """Replace the current label: your own, or as a lead anyone's."""
    anyones = person.may("lead")
    return correct(context, person, item_id, request, idempotency_key, others_too=anyones)


@api.get("/queue", responses=error_responses(422), dependencies=[Depends(require("queue:read"))])
def read_queue(context: ContextDep, day: date | None = None) -> QueueSchema:
    """Return the number of items by state, of one day or of all, and their ages."""
    engine = context.engine
    return QueueSchema(counts=metrics.counts(engine, day), ages=metrics.queue_ages(engine))


@api.get("/policy", dependencies=[Depends(require("review", "decisions:read"))])
def read_policy(context: ContextDep) -> dict[str, Any]:
    """Return the policy: version, codes, and the reasons for each action."""
    return {**context.options.policy.content, "digest": context.options.policy.digest}


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
    context: Context,
    person: Moderator,
    item_id: int,
    request: CorrectionRequest,
    key: str,
    *,
    others_too: bool = False,
) -> Decision:
    """Return the correction; raise `QueueError` for a code or reason that the policy lacks."""
    _check_code(context, request.label, request.policy_code)
    check_reason(context.options.policy, "correct", request.reason)
    return deciding.correct(
        context.engine,
        moderator_id=person.id,
        item_id=item_id,
        idempotency_key=key,
        others_too=others_too,
        queues=person.queues,
        policy_version=context.options.policy.version,
        **request.model_dump(),
    )


def _check_code(context: Context, label: int, code: str | None) -> None:
    check(context.options.policy, label, code, required=context.options.require_code and label == 1)
