"""Team: decisions by person, and agreement."""

import datetime as dt
from dataclasses import dataclass

from fastapi import APIRouter, Response

from modwatch.common.errors import QueueError
from modwatch.review import database
from modwatch.review.console.api.lead import period
from modwatch.review.console.render import Page, render
from modwatch.review.console.request_context import LeadSession
from modwatch.review.quality_control.agreement import AgreementReport, agreement_report
from modwatch.review.reporting import workload
from modwatch.review.reporting.workload import Grain, Throughput

router = APIRouter(include_in_schema=False)

_FOUR_WEEKS = dt.timedelta(days=27)


@dataclass(frozen=True, kw_only=True)
class TeamPage(Page, template="team.html"):
    """Decisions by person, and agreement."""

    problem: str | None
    first: dt.date
    last: dt.date
    grain: Grain
    rows: list[Throughput]
    #: Of at least four weeks, since a day has few comparisons; None for an invalid period.
    quality: AgreementReport | None


@router.get("/lead/team")
def show(
    session: LeadSession,
    first: dt.date | None = None,
    last: dt.date | None = None,
    grain: Grain = "day",
) -> Response:
    """Return decisions by person, by default of today, and agreement."""
    last = last or database.now(session.engine).date()
    first = first or last
    engine, queues = session.engine, session.person.queues
    rows, quality, problem = [], None, None
    try:
        period(first, last)
        rows = workload.throughput(engine, first, last, grain=grain, queues=queues)
        quality = agreement_report(engine, min(first, last - _FOUR_WEEKS), last, queues=queues)
    except QueueError as exc:
        problem = str(exc)
    page = TeamPage(
        problem=problem, first=first, last=last, grain=grain, rows=rows, quality=quality
    )
    return render(page, session, 422 if problem else 200)
