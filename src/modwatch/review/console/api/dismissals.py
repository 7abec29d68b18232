"""Dismiss many waiting items at once, without decisions, and restore them."""

import datetime as dt
from typing import Annotated

from fastapi import APIRouter, BackgroundTasks, HTTPException
from pydantic import BaseModel, Field

from modwatch.review.console.api import RecordId
from modwatch.review.console.request_context import ContextDep, LeadDep
from modwatch.review.console.schemas import RecordSchema, RequestSchema, error_responses
from modwatch.review.people import Moderator
from modwatch.review.policy.tree import check_reason
from modwatch.review.queue import dismissal
from modwatch.review.queue.dismissal import MOST_IDS, Criteria, Dismissal
from modwatch.review.queue.items import LONGEST_ID

router = APIRouter(
    prefix="/api/v1/lead/closings", tags=["lead"], responses=error_responses(401, 403, 503)
)

_Word = Annotated[str, Field(min_length=1, max_length=200)]
_CommentId = Annotated[str, Field(min_length=1, max_length=LONGEST_ID)]


class CriteriaRequest(RequestSchema):
    """Which waiting items to dismiss: those that match every field that is set."""

    queue: _Word | None = None
    reason: _Word | None = Field(None, description="Why they were sent.")
    language: _Word | None = None
    platform: _Word | None = None
    first_day: dt.date | None = None
    last_day: dt.date | None = None
    queued_before: dt.datetime | None = Field(None, description="With its time zone.")
    comment_ids: Annotated[tuple[_CommentId, ...], Field(max_length=MOST_IDS)] | None = None

    @property
    def criteria(self) -> Criteria:
        """The criteria as the queue takes them."""
        return Criteria(**self.model_dump())


class MatchingSchema(BaseModel):
    """Number of items that match now."""

    matching: int


class ClosingRequest(RequestSchema):
    """A dismissal; a conflict if the number of matching items has changed since the count."""

    criteria: CriteriaRequest
    reason: _Word = Field(description="One of the policy's reasons for the action `close`.")
    expected: Annotated[int, Field(ge=1, le=2**63 - 1, description="As returned by the count.")]


class ClosingSchema(RecordSchema):
    """Progress of a dismissal."""

    id: int
    criteria: Criteria
    reason: str
    matched: int
    closed: int
    state: str = Field(description="closing, closed, bringing back or brought back")
    started_at: dt.datetime
    finished_at: dt.datetime | None
    cancelled_at: dt.datetime | None


class ClosingsSchema(BaseModel):
    """The latest dismissals, newest first."""

    closings: list[ClosingSchema]


@router.post("/count", responses=error_responses(413, 422))
def count_matching(
    request: CriteriaRequest, context: ContextDep, person: LeadDep
) -> MatchingSchema:
    """Return how many items match; nothing changes."""
    check_queue_access(person, request.criteria)
    return MatchingSchema(matching=dismissal.matching(context.engine, request.criteria))


@router.get("")
def read_closings(context: ContextDep, person: LeadDep) -> ClosingsSchema:
    """Return the latest dismissals."""
    return ClosingsSchema(closings=dismissals_of(context, person))


@router.post("", status_code=202, responses=error_responses(409, 413, 422))
def start_closing(
    request: ClosingRequest, context: ContextDep, person: LeadDep, after: BackgroundTasks
) -> ClosingSchema:
    """Dismiss the matching items in the background; follow the progress by the id."""
    criteria = request.criteria.criteria
    check_queue_access(person, criteria)
    check_reason(context.options.policy, "close", request.reason)
    started = dismissal.start(context.engine, person.id, criteria, request.reason, request.expected)
    after.add_task(dismissal.resume, context.engine, started.id)
    return ClosingSchema.model_validate(started)


@router.get("/{closing_id}", responses=error_responses(404, 422))
def read_closing(closing_id: RecordId, context: ContextDep, person: LeadDep) -> ClosingSchema:
    """Return the progress of a dismissal."""
    return ClosingSchema.model_validate(dismissal_of(context, person, closing_id))


@router.post("/{closing_id}/resume", status_code=202, responses=error_responses(404, 422))
def resume_closing(
    closing_id: RecordId, context: ContextDep, person: LeadDep, after: BackgroundTasks
) -> ClosingSchema:
    """Resume a dismissal whose process died; idempotent."""
    closing = dismissal_of(context, person, closing_id)
    after.add_task(dismissal.resume, context.engine, closing_id)
    return ClosingSchema.model_validate(closing)


@router.post("/{closing_id}/cancel", status_code=202, responses=error_responses(404, 422))
def cancel_closing(
    closing_id: RecordId, context: ContextDep, person: LeadDep, after: BackgroundTasks
) -> ClosingSchema:
    """Cancel a running or finished dismissal: all its items return to the queue."""
    dismissal_of(context, person, closing_id)
    closing = dismissal.stop(context.engine, person.id, closing_id)
    after.add_task(dismissal.resume, context.engine, closing_id)
    return ClosingSchema.model_validate(closing)


def check_queue_access(person: Moderator, criteria: Criteria) -> None:
    """Raise 403 if a lead of some queues would dismiss items of others."""
    if person.queues is not None and criteria.queue not in person.queues:
        raise HTTPException(403, "choose one of your own queues")


def dismissals_of(context: ContextDep, person: Moderator) -> list[Dismissal]:
    """Return the latest dismissals in this lead's queues."""
    every, mine = dismissal.latest(context.engine), person.queues
    return [each for each in every if mine is None or each.criteria.queue in mine]


def dismissal_of(context: ContextDep, person: Moderator, closing_id: int) -> Dismissal:
    """Return a dismissal in this lead's queues; 403 for one in others."""
    closing = dismissal.progress(context.engine, closing_id)
    check_queue_access(person, closing.criteria)
    return closing
