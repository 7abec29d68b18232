"""Lease the next item, hold it, decide it, take that back."""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Header, Response

from modwatch.errors import LeaseConflictError
from modwatch.review import queue
from modwatch.review.console.api import IdempotencyKey, ItemId
from modwatch.review.console.choices import NEVER_LEFT_OUT, preferences_of
from modwatch.review.console.desk import Desk, DeskDep, ReviewerDep, refuse_without
from modwatch.review.console.shapes import (
    CorrectionRequest,
    DecisionRequest,
    DecisionShape,
    ExpiryShape,
    LeaseRequest,
    LeaseShape,
    LeasesShape,
    LeaseTokenRequest,
    refusals,
)
from modwatch.review.log.decision_log import Decision
from modwatch.review.people import Moderator
from modwatch.review.policy.tree import check, check_reason
from modwatch.review.queue import amendments
from modwatch.review.queue.items import Lease

router = APIRouter(prefix="/api/v1", tags=["queue"], responses=refusals(401, 403, 503))

LeaseToken = Annotated[
    str, Header(alias="X-Lease-Token", min_length=1, max_length=200, description="Of the lease.")
]


@router.post(
    "/leases",
    status_code=201,
    response_model=LeaseShape | LeasesShape,
    responses={204: {"description": "Nothing waits for you."}, **refusals(413, 422)},
)
def lease_next(
    desk: DeskDep, person: ReviewerDep, request: Annotated[LeaseRequest | None, Body()] = None
) -> Response | LeaseShape | LeasesShape:
    """Lease the next item, or with `count` the next few."""
    request = request or LeaseRequest()
    if request.escalated:
        refuse_without(person, "lead")
    found = lease_for(desk, person, request.count or 1, escalated=request.escalated)
    if not found:
        return Response(status_code=204)
    shapes = [LeaseShape.model_validate(each) for each in found]
    return shapes[0] if request.count is None else LeasesShape(leases=shapes)


@router.get("/items/{item_id}/lease", responses=refusals(404, 409, 422))
def resume_lease(
    item_id: ItemId, desk: DeskDep, person: ReviewerDep, lease_token: LeaseToken
) -> LeaseShape:
    """Return the lease again if it still holds."""
    found = queue.resume(desk.engine, person.id, item_id, lease_token)
    if found is None:
        raise LeaseConflictError(
            f"the lease of item {item_id} is over or not yours; lease the next one"
        )
    return LeaseShape.model_validate(found)


@router.put("/items/{item_id}/lease", responses=refusals(404, 409, 413, 422))
def extend_lease(
    item_id: ItemId, request: LeaseTokenRequest, desk: DeskDep, person: ReviewerDep
) -> ExpiryShape:
    """Hold the item on: a heartbeat, good for at most an hour since the claim."""
    until = queue.extend(
        desk.engine, person.id, item_id, request.lease_token, desk.options.lease_length
    )
    return ExpiryShape(expires_at=until)


@router.delete("/items/{item_id}/lease", status_code=204, responses=refusals(422))
def release_lease(
    item_id: ItemId, desk: DeskDep, person: ReviewerDep, lease_token: LeaseToken
) -> None:
    """Give the item back undecided; a lease that does not hold is given back already."""
    queue.release(desk.engine, person.id, item_id, lease_token)


@router.post("/items/{item_id}/decisions", status_code=201, responses=refusals(404, 409, 413, 422))
def decide_item(
    item_id: ItemId,
    request: DecisionRequest,
    idempotency_key: IdempotencyKey,
    desk: DeskDep,
    person: ReviewerDep,
) -> DecisionShape:
    """Decide a leased item; the same key again returns the same decision."""
    done = settle(desk, person, item_id, request, idempotency_key)
    return DecisionShape.model_validate(done)


@router.post("/decisions/{decision_id}/undo", status_code=201, responses=refusals(404, 409, 422))
def undo_decision(
    decision_id: ItemId, idempotency_key: IdempotencyKey, desk: DeskDep, person: ReviewerDep
) -> LeaseShape:
    """Take back one's own decision of the last minutes, and lease the item to decide it anew."""
    lease = amendments.undo(
        desk.engine,
        moderator_id=person.id,
        decision_id=decision_id,
        idempotency_key=idempotency_key,
        length=desk.options.lease_length,
    )
    return LeaseShape.model_validate(lease)


@router.post(
    "/items/{item_id}/corrections", status_code=201, responses=refusals(404, 409, 413, 422)
)
def correct_item(
    item_id: ItemId,
    request: CorrectionRequest,
    idempotency_key: IdempotencyKey,
    desk: DeskDep,
    person: ReviewerDep,
) -> DecisionShape:
    """Replace the label that stands: one's own, or for a lead anybody's."""
    required = desk.options.require_code and request.label == 1
    check(desk.policy, request.label, request.policy_code, required=required)
    check_reason(desk.policy, "correct", request.reason)
    done = amendments.correct(
        desk.engine,
        moderator_id=person.id,
        item_id=item_id,
        others_too=person.may("lead"),
        queues=person.queues,
        idempotency_key=idempotency_key,
        policy_version=desk.policy.version,
        **request.model_dump(),
    )
    return DecisionShape.model_validate(done)


def lease_for(desk: Desk, person: Moderator, count: int, *, escalated: bool = False) -> list[Lease]:
    """Return leases of at most `count` next items for `person`, by their queues and choices."""
    common: dict[str, Any] = {"length": desk.options.lease_length, "queues": person.queues}
    opt_outs = set(preferences_of(person.preferences).opt_outs) - NEVER_LEFT_OUT
    found: list[Lease] = []
    for _ in range(count):
        lease = (
            queue.lease_escalated(desk.engine, person.id, **common)
            if escalated
            else queue.lease(desk.engine, person.id, opt_outs=opt_outs, lanes=desk.lanes, **common)
        )
        if lease is None:
            break
        found.append(lease)
    return found


def settle(
    desk: Desk, person: Moderator, item_id: int, request: DecisionRequest, key: str
) -> Decision:
    """Carry out `request` and return the decision; codes and reasons must be of the policy."""
    common: dict[str, Any] = {
        "moderator_id": person.id,
        "item_id": item_id,
        "idempotency_key": key,
        **request.model_dump(include={"lease_token", "version", "seconds", "reason", "note"}),
    }
    if request.reason is not None:
        check_reason(desk.policy, request.action, request.reason)
    if request.label is None:
        does = queue.skip if request.action == "skip" else queue.escalate
        return does(desk.engine, policy_version=desk.policy.version, **common)
    required = desk.options.require_code and request.label == 1
    check(desk.policy, request.label, request.policy_code, required=required)
    return queue.decide(
        desk.engine,
        label=request.label,
        policy_version=desk.policy.version,
        policy_code=request.policy_code,
        **common,
    )
