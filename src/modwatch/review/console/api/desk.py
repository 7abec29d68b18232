"""What everybody at the desk may read: the queue, and the policy."""

from datetime import date
from typing import Annotated, Any

from fastapi import APIRouter, Depends

from modwatch.review import queue
from modwatch.review.console.desk import DeskDep, PersonDep, require
from modwatch.review.console.shapes import AgesShape, CountsShape, QueueShape, refusals
from modwatch.review.people import Moderator

router = APIRouter(prefix="/api/v1", tags=["queue"], responses=refusals(401, 503))

QueueReaderDep = Annotated[Moderator, Depends(require("queue:read"))]


@router.get("/queue", responses=refusals(403, 422))
def read_queue(
    desk: DeskDep,
    person: QueueReaderDep,  # noqa: ARG001 - it is who may
    day: date | None = None,
) -> QueueShape:
    """Return how many items stand where, of one day or of all, and how long they have waited."""
    return QueueShape(
        counts=CountsShape.model_validate(queue.counts(desk.engine, day)),
        ages=AgesShape.model_validate(queue.queue_ages(desk.engine)),
    )


@router.get("/policy")
def read_policy(desk: DeskDep, person: PersonDep) -> dict[str, Any]:  # noqa: ARG001
    """Return what people decide by: version, codes, and the reasons of each action."""
    return {**desk.policy.content, "digest": desk.policy.digest}
