"""What a lead looks at: queues and ages, who holds what, who did how much, what is to settle."""

import datetime as dt
from collections import Counter
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from fastapi import APIRouter, Depends, Form, Query, Request, Response
from fastapi.responses import RedirectResponse

from modwatch.errors import QueueError
from modwatch.review import database
from modwatch.review.console.api.lead import check_days
from modwatch.review.console.desk import Desk, DeskDep, FormText, Visit, page_visit
from modwatch.review.console.i18n import N_
from modwatch.review.console.pages.parts import FormId, ListPage, titles_of
from modwatch.review.console.render import render, shell_of
from modwatch.review.quality_control.agreement import AgreementReport, agreement_report
from modwatch.review.queue.lanes import Lanes
from modwatch.review.reporting import workload
from modwatch.review.reporting.workload import Escalation, Grain, Holding, LaneState, Throughput

router = APIRouter(include_in_schema=False)

LeadVisit = Annotated[Visit, Depends(page_visit("lead"))]

NOTICES = {
    "released": N_("Given back. Whoever held it is told when they decide."),
    "settled": N_("Settled. It is in the log."),
    "gone": N_("Somebody else took that one, or it is not for you. Nothing was lost."),
    "back": N_("Given back, undecided."),
}


_FOUR_WEEKS = dt.timedelta(days=27)


@dataclass(frozen=True, kw_only=True)
class LeadPage(ListPage):
    """`lead.html`."""

    template: ClassVar[str] = "lead.html"

    notice: str | None
    lanes: list[LaneState]
    escalations: list[Escalation]
    holdings: list[Holding]
    #: Of every reason to hand something over.
    titles: dict[str, str]
    rules: Lanes
    now: dt.datetime

    def hours(self, reason: str) -> float:
        """Return within how many hours an item of this reason is promised to be decided."""
        return self.rules.of(reason).hours

    def holders(self) -> list[tuple[int, str]]:
        """Return everybody who holds more than one item: id and name."""
        held = Counter((each.moderator_id, each.pseudonym) for each in self.holdings)
        return [person for person, items in held.items() if items > 1]

    def total(self, name: str) -> int:
        """Return the sum of a figure over all queues and reasons."""
        return sum(getattr(lane, name) for lane in self.lanes)

    def oldest(self, name: str) -> float | None:
        """Return the largest of an age over all queues and reasons."""
        ages = [age for lane in self.lanes if (age := getattr(lane, name)) is not None]
        return max(ages, default=None)


@dataclass(frozen=True, kw_only=True)
class TeamPage(ListPage):
    """`lead_team.html`."""

    template: ClassVar[str] = "lead_team.html"

    problem: str | None
    first: dt.date
    last: dt.date
    grain: Grain
    rows: list[Throughput]
    #: Of the four weeks to `last`: a day has too few comparisons. None after a refusal.
    quality: AgreementReport | None


@router.get("/lead")
def show(
    request: Request,
    desk: DeskDep,
    visit: LeadVisit,
    notice: Annotated[str, Query(max_length=20)] = "",
) -> Response:
    """Return the state of the queues."""
    queues = visit.person.queues
    page = LeadPage(
        notice=NOTICES.get(notice),
        lanes=workload.overview(desk.engine, queues=queues),
        escalations=workload.escalations(desk.engine, queues=queues),
        holdings=workload.holders(desk.engine, queues=queues),
        titles=titles_of(desk.policy, shell_of(request, visit).locale),
        rules=desk.lanes,
        now=database.now(desk.engine),
    )
    return render(page, request, visit)


@router.post("/lead/release")
def release(
    desk: DeskDep,
    visit: LeadVisit,
    csrf: FormText,
    moderator_id: FormId,
    item_id: Annotated[int | None, Form(ge=1, le=2**63 - 1)] = None,
) -> Response:
    """Give back, undecided, what somebody holds."""
    visit.check(csrf)
    workload.release_all(
        desk.engine,
        moderator_id,
        actor_id=visit.person.id,
        item_id=item_id,
        queues=visit.person.queues,
    )
    return RedirectResponse("../lead?notice=released", 303)


@router.get("/lead/team")
def show_team(
    request: Request,
    desk: DeskDep,
    visit: LeadVisit,
    first: dt.date | None = None,
    last: dt.date | None = None,
    grain: Literal["hour", "day"] = "day",
) -> Response:
    """Return who did how much; without days, of today."""
    last = last or database.now(desk.engine).date()
    first = first or last
    rows, problem = _throughput(desk, visit, first, last, grain)
    quality = None
    if problem is None:
        begin = min(first, last - _FOUR_WEEKS)
        quality = agreement_report(desk.engine, begin, last, queues=visit.person.queues)
    page = TeamPage(
        problem=problem, first=first, last=last, grain=grain, rows=rows, quality=quality
    )
    return render(page, request, visit, 422 if problem else 200)


def _throughput(
    desk: Desk, visit: Visit, first: dt.date, last: dt.date, grain: Grain
) -> tuple[list[Throughput], str | None]:
    try:
        check_days(first, last)
    except QueueError as refusal:
        return [], str(refusal)
    queues = visit.person.queues
    return workload.throughput(desk.engine, first, last, grain=grain, queues=queues), None
