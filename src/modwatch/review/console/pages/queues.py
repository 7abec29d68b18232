"""Queues: counts and ages, escalations and current leases."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from fastapi import APIRouter, Response
from fastapi.responses import RedirectResponse

from modwatch.review import database
from modwatch.review.console.api import lead as api
from modwatch.review.console.decision_choices import titles_of
from modwatch.review.console.forms import FormId, OptionalId
from modwatch.review.console.render import Page, render
from modwatch.review.console.request_context import LeadForm, LeadSession
from modwatch.review.queue.lanes import Lanes
from modwatch.review.reporting import workload
from modwatch.review.reporting.workload import Escalation, Holding, LaneState

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, kw_only=True)
class QueuesPage(Page, template="queues.html"):
    """Queues by reason, escalations and leases."""

    lanes: list[LaneState]
    escalations: list[Escalation]
    holdings: list[Holding]
    #: Title of every code, and of every reason as `action:reason`.
    titles: dict[str, str]
    rules: Lanes
    now: datetime

    def hours(self, reason: str) -> float:
        """Return the time in which an item of this reason is due, in hours."""
        return self.rules.of(reason).hours

    def holders(self) -> list[tuple[int, str]]:
        """Return id and name of everyone with more than one lease."""
        leases = Counter((each.moderator_id, each.pseudonym) for each in self.holdings)
        return [person for person, items in leases.items() if items > 1]

    def total(self, name: str) -> int:
        """Return the sum of a count over all queues and reasons."""
        return sum(getattr(lane, name) for lane in self.lanes)

    def oldest(self, name: str) -> float | None:
        """Return the maximum of an age over all queues and reasons."""
        ages = [age for lane in self.lanes if (age := getattr(lane, name)) is not None]
        return max(ages, default=None)


@router.get("/lead")
def show(session: LeadSession) -> Response:
    """Return the state of the queues."""
    queues = session.person.queues
    page = QueuesPage(
        lanes=workload.overview(session.engine, queues=queues),
        escalations=workload.escalations(session.engine, queues=queues),
        holdings=workload.holders(session.engine, queues=queues),
        titles=titles_of(session.policy, session.locale),
        rules=session.context.options.lanes,
        now=database.now(session.engine),
    )
    return render(page, session)


@router.post("/lead/release")
def release(session: LeadForm, moderator_id: FormId, item_id: OptionalId = None) -> Response:
    """Release items that a moderator has leased, without a decision."""
    request = api.ReleaseRequest(moderator_id=moderator_id, item_id=item_id)
    api.release(request, session.context, session.person)
    return RedirectResponse("../lead?notice=released", 303)
