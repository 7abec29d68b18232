"""What leads look at, and what only they may do."""

import datetime as dt
from typing import Annotated

from fastapi import APIRouter, BackgroundTasks, Depends, HTTPException, Query
from pydantic import BaseModel, Field

from modwatch.errors import QueueError
from modwatch.review.console.api import ItemId
from modwatch.review.console.desk import DeskDep, require
from modwatch.review.console.shapes import Asked, FromRecord, refusals
from modwatch.review.people import Moderator
from modwatch.review.policy.tree import check_reason
from modwatch.review.quality_control.agreement import (
    AgreementReport,
    GroupAgreement,
    agreement_by_group,
    agreement_report,
)
from modwatch.review.queue import dismissal
from modwatch.review.queue.dismissal import MOST_IDS, Criteria, Dismissal
from modwatch.review.queue.items import LONGEST_ID
from modwatch.review.reporting import workload
from modwatch.review.reporting.workload import Escalation, Grain, Holding, LaneState, Throughput

router = APIRouter(prefix="/api/v1/lead", tags=["lead"], responses=refusals(401, 403, 503))

LeadDep = Annotated[Moderator, Depends(require("lead"))]

#: One answer of `throughput` covers so many days.
MOST_DAYS = 92

#: Beyond these, calendars end and sums with them fail.
_FIRST_DAY, _LAST_DAY = dt.date(2000, 1, 1), dt.date(2200, 1, 1)

_Word = Annotated[str, Field(min_length=1, max_length=200)]
_CommentId = Annotated[str, Field(min_length=1, max_length=LONGEST_ID)]


class LanesShape(BaseModel):
    """Where items stand and how old they are, by queue and reason; ages in seconds."""

    lanes: list[LaneState]


class HoldingsShape(BaseModel):
    """What is held now."""

    holdings: list[Holding]


class EscalationsShape(BaseModel):
    """What a lead is to settle."""

    escalations: list[Escalation]


class ThroughputShape(BaseModel):
    """Who did how much."""

    rows: list[Throughput]


class ReleaseRequest(Asked):
    """Whose leases end: all of them, or that of one item."""

    moderator_id: Annotated[int, Field(ge=1, le=2**63 - 1)]
    item_id: Annotated[int, Field(ge=1, le=2**63 - 1)] | None = None


class ReleasedShape(BaseModel):
    """How many items went back."""

    released: int


class CriteriaRequest(Asked):
    """Which waiting items to give up: those that fit every field that is set."""

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
        """The same for `closing`."""
        return Criteria(**self.model_dump())


class MatchingShape(BaseModel):
    """How many items a closing would give up now."""

    matching: int


class ClosingRequest(Asked):
    """A closing; it is refused when another number matches than was told."""

    criteria: CriteriaRequest
    reason: _Word = Field(description="One of the policy's reasons to close.")
    expected: Annotated[int, Field(ge=1, le=2**63 - 1, description="As the count was told.")]


class ClosingShape(FromRecord):
    """How far a closing is."""

    id: int
    criteria: Criteria
    reason: str
    matched: int
    closed: int
    state: str = Field(description="closing, closed, bringing back or brought back")
    started_at: dt.datetime
    finished_at: dt.datetime | None
    cancelled_at: dt.datetime | None


class ClosingsShape(BaseModel):
    """The latest closings, newest first."""

    closings: list[ClosingShape]


@router.get("/lanes")
def read_lanes(desk: DeskDep, person: LeadDep) -> LanesShape:
    """Return where items stand and how old they are."""
    return LanesShape(lanes=workload.overview(desk.engine, queues=person.queues))


@router.get("/holdings")
def read_holdings(desk: DeskDep, person: LeadDep) -> HoldingsShape:
    """Return who holds what, since when and until when."""
    return HoldingsShape(holdings=workload.holders(desk.engine, queues=person.queues))


@router.post("/releases", responses=refusals(413, 422))
def release(request: ReleaseRequest, desk: DeskDep, person: LeadDep) -> ReleasedShape:
    """Give back, undecided, what somebody holds."""
    released = workload.release_all(
        desk.engine,
        request.moderator_id,
        actor_id=person.id,
        item_id=request.item_id,
        queues=person.queues,
    )
    return ReleasedShape(released=released)


@router.get("/escalations")
def read_escalations(desk: DeskDep, person: LeadDep) -> EscalationsShape:
    """Return what a lead is to settle; `POST /leases` with `escalated` leases the next."""
    return EscalationsShape(escalations=workload.escalations(desk.engine, queues=person.queues))


@router.get("/throughput", responses=refusals(422))
def read_throughput(
    desk: DeskDep,
    person: LeadDep,
    first: Annotated[dt.date, Query(description="UTC, included.")],
    last: Annotated[dt.date, Query(description="UTC, included.")],
    grain: Grain = "day",
) -> ThroughputShape:
    """Return what everybody did, by hour or day, of at most 92 days."""
    check_days(first, last)
    rows = workload.throughput(desk.engine, first, last, grain=grain, queues=person.queues)
    return ThroughputShape(rows=rows)


@router.get("/agreement", responses=refusals(422))
def read_agreement(
    desk: DeskDep,
    person: LeadDep,
    first: Annotated[dt.date, Query(description="UTC, included.")],
    last: Annotated[dt.date, Query(description="UTC, included.")],
) -> AgreementReport:
    """Return how far moderators agree, each figure with n and a 95 % interval."""
    check_days(first, last)
    return agreement_report(desk.engine, first, last, queues=person.queues)


@router.post("/closings/count", responses=refusals(413, 422))
def count_matching(request: CriteriaRequest, desk: DeskDep, person: LeadDep) -> MatchingShape:
    """Return how many items would be given up; nothing changes."""
    refuse_other_queues(person, request.criteria)
    return MatchingShape(matching=dismissal.matching(desk.engine, request.criteria))


@router.get("/closings")
def read_closings(desk: DeskDep, person: LeadDep) -> ClosingsShape:
    """Return the latest closings."""
    found = own_closings(desk, person)
    return ClosingsShape(closings=[ClosingShape.model_validate(each) for each in found])


@router.post("/closings", status_code=202, responses=refusals(409, 413, 422))
def begin_closing(
    request: ClosingRequest, desk: DeskDep, person: LeadDep, after: BackgroundTasks
) -> ClosingShape:
    """Give up what matches, in the background; watch it by its id."""
    criteria = request.criteria.criteria
    refuse_other_queues(person, criteria)
    check_reason(desk.policy, "close", request.reason)
    begun = dismissal.start(desk.engine, person.id, criteria, request.reason, request.expected)
    after.add_task(dismissal.resume, desk.engine, begun.id)
    return ClosingShape.model_validate(begun)


@router.get("/closings/{closing_id}", responses=refusals(404, 422))
def read_closing(closing_id: ItemId, desk: DeskDep, person: LeadDep) -> ClosingShape:
    """Return how far a closing is."""
    return ClosingShape.model_validate(of_own_queues(desk, person, closing_id))


@router.post("/closings/{closing_id}/resume", status_code=202, responses=refusals(404, 422))
def go_on(
    closing_id: ItemId, desk: DeskDep, person: LeadDep, after: BackgroundTasks
) -> ClosingShape:
    """Carry on what a process left behind when it died; twice does no harm."""
    found = of_own_queues(desk, person, closing_id)
    after.add_task(dismissal.resume, desk.engine, closing_id)
    return ClosingShape.model_validate(found)


@router.post("/closings/{closing_id}/cancel", status_code=202, responses=refusals(404, 422))
def cancel_closing(
    closing_id: ItemId, desk: DeskDep, person: LeadDep, after: BackgroundTasks
) -> ClosingShape:
    """Stop a closing, or take back a finished one: all it closed waits again."""
    of_own_queues(desk, person, closing_id)
    found = dismissal.stop(desk.engine, person.id, closing_id)
    after.add_task(dismissal.resume, desk.engine, closing_id)
    return ClosingShape.model_validate(found)


def check_days(first: dt.date, last: dt.date) -> None:
    """Raise `QueueError` unless the days are in order, and not too many."""
    in_order = _FIRST_DAY <= first <= last <= _LAST_DAY
    if not in_order or last - first >= dt.timedelta(days=MOST_DAYS):
        raise QueueError(
            f"the days from {first} to {last} are not in order, more than {MOST_DAYS}, or not of "
            "this time; choose others"
        )


def refuse_other_queues(person: Moderator, criteria: Criteria) -> None:
    """Raise 403 when a lead of some queues would close items of others."""
    if person.queues is not None and criteria.queue not in person.queues:
        raise HTTPException(403, "name one of your own queues; other leads see to theirs")


@router.get("/agreement/groups", responses=refusals(422))
def read_agreement_by_group(
    desk: DeskDep,
    person: LeadDep,
    first: Annotated[dt.date, Query(description="UTC, included.")],
    last: Annotated[dt.date, Query(description="UTC, included.")],
) -> list[GroupAgreement]:
    """Return the same by what moderators say of themselves, for groups of ten people or more."""
    check_days(first, last)
    return agreement_by_group(desk.engine, first, last, queues=person.queues)


def own_closings(desk: DeskDep, person: Moderator) -> list[Dismissal]:
    """Return the latest closings, those of this lead's queues."""
    found = dismissal.latest(desk.engine)
    mine = person.queues
    return [each for each in found if mine is None or each.criteria.queue in mine]


def of_own_queues(desk: DeskDep, person: Moderator, closing_id: int) -> Dismissal:
    """Return a closing of this lead's queues; 403 for those of others."""
    found = dismissal.progress(desk.engine, closing_id)
    refuse_other_queues(person, found.criteria)
    return found
