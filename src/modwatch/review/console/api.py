"""Version 1 of the API: lease, decide, look at the queue."""

from datetime import date
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Response
from sqlalchemy import text

from modwatch.review import queue
from modwatch.review.console.desk import DeskDep, PersonDep, ReviewerDep
from modwatch.review.console.shapes import (
    AgesShape,
    CountsShape,
    DecisionRequest,
    DecisionShape,
    ErrorShape,
    HealthShape,
    LeaseShape,
    QueueShape,
)
from modwatch.review.decision_log import Decision


def _refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": ErrorShape} for status in statuses}


router = APIRouter(prefix="/api/v1", tags=["queue"], responses=_refusals(401, 503))
probes = APIRouter(tags=["probes"])

ItemId = Annotated[int, Path(ge=1, le=2**63 - 1)]
IdempotencyKey = Annotated[
    str,
    Header(
        min_length=1,
        max_length=200,
        description="Any string of your own, new for each decision; send it again on a retry.",
    ),
]


@router.post(
    "/leases",
    status_code=201,
    response_model=LeaseShape,
    responses={204: {"description": "Nothing waits for you."}, **_refusals(403)},
)
def lease_next(desk: DeskDep, person: ReviewerDep) -> Response | LeaseShape:
    """Lease the next item."""
    lease = queue.lease(desk.engine, person.id, desk.options.lease_length)
    return Response(status_code=204) if lease is None else LeaseShape.model_validate(lease)


@router.post(
    "/items/{item_id}/decisions",
    status_code=201,
    responses=_refusals(403, 404, 409, 413, 422),
)
def decide_item(
    item_id: ItemId,
    request: DecisionRequest,
    idempotency_key: IdempotencyKey,
    desk: DeskDep,
    person: ReviewerDep,
) -> DecisionShape:
    """Decide a leased item; the same key again returns the same decision."""
    return DecisionShape.model_validate(_decide(desk, person.id, item_id, request, idempotency_key))


def _decide(
    desk: DeskDep, person_id: int, item_id: int, request: DecisionRequest, key: str
) -> Decision:
    if request.label is None:
        return queue.skip(
            desk.engine,
            moderator_id=person_id,
            item_id=item_id,
            lease_token=request.lease_token,
            idempotency_key=key,
            seconds=request.seconds,
            note=request.note,
        )
    return queue.decide(
        desk.engine,
        moderator_id=person_id,
        item_id=item_id,
        lease_token=request.lease_token,
        label=request.label,
        idempotency_key=key,
        seconds=request.seconds,
        policy_code=request.policy_code,
        note=request.note,
    )


@router.get("/queue", responses=_refusals(422))
def read_queue(desk: DeskDep, person: PersonDep, day: date | None = None) -> QueueShape:  # noqa: ARG001
    """Return how many items stand where, of one day or of all, and how long they have waited."""
    return QueueShape(
        counts=CountsShape.model_validate(queue.counts(desk.engine, day)),
        ages=AgesShape.model_validate(queue.queue_ages(desk.engine)),
    )


@probes.get("/livez")
def live() -> HealthShape:
    """Return that the process answers."""
    return HealthShape()


@probes.get("/readyz", responses=_refusals(503))
def ready(desk: DeskDep) -> HealthShape:
    """Return that the database answers and holds the tables."""
    with desk.engine.connect() as connection:
        connection.execute(text("SELECT FROM decision LIMIT 1"))
    return HealthShape()
