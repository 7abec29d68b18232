"""For leads: lanes, leases, escalations, throughput, agreement, error rates."""

import datetime as dt
from collections.abc import Collection
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field

from modwatch.common.errors import QueueError
from modwatch.review.console.api import QueryDay
from modwatch.review.console.request_context import ContextDep, LeadDep
from modwatch.review.console.schemas import RequestSchema, error_responses
from modwatch.review.quality_control.agreement import (
    AgreementReport,
    agreement_report,
)
from modwatch.review.quality_control.error_rates import ErrorRateReport, error_rate_report
from modwatch.review.quality_control.overturned import OverturnedLabels, overturned_labels
from modwatch.review.reporting import workload
from modwatch.review.reporting.workload import Escalation, Grain, Holding, LaneState, Throughput

router = APIRouter(prefix="/api/v1/lead", tags=["lead"], responses=error_responses(401, 403, 503))

#: Longest period of one request, in days.
MOST_DAYS = 92

#: Date arithmetic fails near the ends of the calendar.
_FIRST_DAY, _LAST_DAY = dt.date(2000, 1, 1), dt.date(2200, 1, 1)


class LanesSchema(BaseModel):
    """Items and their ages in seconds, by queue and reason."""

    lanes: list[LaneState]


class HoldingsSchema(BaseModel):
    """Current leases."""

    holdings: list[Holding]


class EscalationsSchema(BaseModel):
    """Items for a lead to adjudicate."""

    escalations: list[Escalation]


class ThroughputSchema(BaseModel):
    """Decisions by person and period."""

    rows: list[Throughput]


class ReleaseRequest(RequestSchema):
    """Whose leases to end: all of them, or that of one item."""

    moderator_id: Annotated[int, Field(ge=1, le=2**63 - 1)]
    item_id: Annotated[int, Field(ge=1, le=2**63 - 1)] | None = None


class ReleasedSchema(BaseModel):
    """Number of released items."""

    released: int


def period(first: QueryDay, last: QueryDay) -> tuple[dt.date, dt.date]:
    """Return both days. Raises `QueueError` unless they are in order and at most 92 days apart."""
    in_order = _FIRST_DAY <= first <= last <= _LAST_DAY
    if not in_order or last - first >= dt.timedelta(days=MOST_DAYS):
        raise QueueError(
            f"The period from {first} to {last} is invalid: the days must be in order, at most "
            f"{MOST_DAYS}, and between {_FIRST_DAY} and {_LAST_DAY}."
        )
    return first, last


PeriodDep = Annotated[tuple[dt.date, dt.date], Depends(period)]


@router.get("/lanes")
def read_lanes(context: ContextDep, person: LeadDep) -> LanesSchema:
    """Return items and their ages by queue and reason."""
    return LanesSchema(lanes=workload.overview(context.engine, queues=person.queues))


@router.get("/holdings")
def read_holdings(context: ContextDep, person: LeadDep) -> HoldingsSchema:
    """Return the current leases: who, since when, until when."""
    return HoldingsSchema(holdings=workload.holders(context.engine, queues=person.queues))


@router.post("/releases", responses=error_responses(413, 422))
def release(request: ReleaseRequest, context: ContextDep, person: LeadDep) -> ReleasedSchema:
    """Release items that a moderator has leased, without a decision."""
    released = workload.release_all(
        context.engine,
        request.moderator_id,
        actor_id=person.id,
        item_id=request.item_id,
        queues=person.queues,
    )
    return ReleasedSchema(released=released)


@router.get("/escalations")
def read_escalations(context: ContextDep, person: LeadDep) -> EscalationsSchema:
    """Return items for a lead to adjudicate; `POST /leases` with `escalated` leases the next."""
    items = workload.escalations(context.engine, queues=person.queues)
    return EscalationsSchema(escalations=items)


@router.get("/throughput", responses=error_responses(422))
def read_throughput(
    context: ContextDep, person: LeadDep, period: PeriodDep, grain: Grain = "day"
) -> ThroughputSchema:
    """Return decisions by person and hour or day, of at most 92 days."""
    rows = workload.throughput(context.engine, *period, grain=grain, queues=person.queues)
    return ThroughputSchema(rows=rows)


@router.get("/agreement", responses=error_responses(422))
def read_agreement(context: ContextDep, person: LeadDep, period: PeriodDep) -> AgreementReport:
    """Return the agreement of moderators, each estimate with n and a 95 % interval."""
    return agreement_report(context.engine, *period, queues=person.queues)


@router.get("/error-rates", responses=error_responses(422))
def read_error_rates(context: ContextDep, person: LeadDep, period: PeriodDep) -> ErrorRateReport:
    """Return the error rates of one label by queue, reason and week of the comments."""
    return error_rate_report(context.engine, *period, queues=person.queues)


@router.get("/overturned", responses=error_responses(422))
def read_overturned(
    context: ContextDep,
    person: LeadDep,
    period: PeriodDep,
    queue: Annotated[str | None, Query(max_length=200)] = None,
) -> OverturnedLabels:
    """Return the latest fifty labels that most confirmations contradict, without names."""
    queues = within(person.queues, queue)
    return overturned_labels(context.engine, person.id, *period, queues=queues)


def within(allowed: Collection[str] | None, queue: str | None) -> Collection[str] | None:
    """Return the queues to read, of the `allowed` ones: all of them, or `queue` if it is one.

    >>> within(None, "de"), within({"en"}, "de"), within({"en"}, None)
    (['de'], [], {'en'})
    """
    if queue is None:
        return allowed
    return [queue] if allowed is None or queue in allowed else []
