"""The queues of a lead: counts and ages, leases, escalations and how a lead resolves them."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Cookie, Response
from fastapi.responses import RedirectResponse

from modwatch.common.errors import ItemNotFoundError, LeaseConflictError, QueueError
from modwatch.review import database, workload
from modwatch.review.console.decision_choices import codes_of, titles_of
from modwatch.review.console.render import Page, render
from modwatch.review.console.request_context import (
    LeadForm,
    LeadSession,
    Session,
    delete_cookies,
    set_cookie,
)
from modwatch.review.console.review import DecisionRequest, decide_item, lease_for
from modwatch.review.console.review_page import cookie_of, resume
from modwatch.review.console.schemas import (
    FormCode,
    FormId,
    FormKey,
    FormLabel,
    FormNote,
    OptionalId,
    new_key,
)
from modwatch.review.queue import leases
from modwatch.review.queue.deciding import LONGEST_NOTE
from modwatch.review.queue.items import Lease
from modwatch.review.queue.lanes import Lanes
from modwatch.review.queue.metrics import shown_counts
from modwatch.review.workload import Escalation, Holding, LaneWork

pages = APIRouter(include_in_schema=False)


@dataclass(frozen=True, kw_only=True)
class QueuesPage(Page, template="queues.html"):
    """Queues by reason, escalations and leases."""

    lanes: list[LaneWork]
    escalations: list[Escalation]
    holdings: list[Holding]
    #: Items in review, of which `holdings` lists the longest.
    leased: int
    #: Title of every code, and of every reason as `action:reason`.
    titles: dict[str, str]
    rules: Lanes
    now: datetime

    def holders(self) -> list[tuple[int, str]]:
        """Return id and name of everyone with more than one lease."""
        held = Counter((lease.moderator_id, lease.pseudonym) for lease in self.holdings)
        return [person for person, items in held.items() if items > 1]

    def oldest(self, name: str) -> float | None:
        """Return the maximum of an age over all queues and reasons."""
        ages = [age for lane in self.lanes if (age := getattr(lane, name)) is not None]
        return max(ages, default=None)


@pages.get("/lead")
def show_queues(session: LeadSession) -> Response:
    """Return the state of the queues."""
    person, queues = session.person, session.person.queues
    page = QueuesPage(
        lanes=workload.work_left(session.engine, queues=queues, viewer=person.id),
        escalations=workload.escalations(session.engine, queues=queues, viewer=person.id),
        holdings=workload.holders(session.engine, queues=queues),
        leased=shown_counts(session.engine, queues=queues).leased,
        titles=titles_of(session.policy, session.locale),
        rules=session.context.options.lanes,
        now=database.now(session.engine),
    )
    return render(page, session)


@pages.post("/lead/release")
def release(session: LeadForm, moderator_id: FormId, item_id: OptionalId = None) -> Response:
    """Release items that a moderator has leased, all or one, without a decision."""
    person, queues = session.person, session.person.queues
    workload.release_all(
        session.engine, moderator_id, actor_id=person.id, item_id=item_id, queues=queues
    )
    return RedirectResponse("../lead?notice=released", 303)


LEASE_COOKIE = "modwatch_settle"
LeaseCookie = Annotated[str, Cookie(alias=LEASE_COOKIE, max_length=200)]


@dataclass(frozen=True, kw_only=True)
class AdjudicationPage(Page, template="adjudication.html"):
    """One leased item, earlier labels and escalations, and the form to decide it."""

    lease: Lease
    problem: str | None
    #: Idempotency key of the form.
    key: str
    #: Codes and titles of each label.
    codes: dict[int, tuple[tuple[str, str], ...]]
    #: Title of every code, and of every reason as `action:reason`.
    titles: dict[str, str]
    longest_note: int = LONGEST_NOTE


@pages.post("/lead/take")
def take(session: LeadForm, item_id: OptionalId = None, held: LeaseCookie = "") -> Response:
    """Lease one escalated item, or the next, and show it; an open one comes first."""
    if item_id is None and resume(session, held) is not None:
        return RedirectResponse("./settle", 303)
    lease = _lease(session, item_id)
    if lease is None:
        return RedirectResponse("../lead?notice=gone", 303)
    response = RedirectResponse("./settle", 303)
    set_cookie(session.request, response, LEASE_COOKIE, cookie_of(lease))
    return response


@pages.get("/lead/settle")
def show_escalated(session: LeadSession, held: LeaseCookie = "") -> Response:
    """Return the item that this lead has leased, with earlier labels and escalations."""
    lease = resume(session, held)
    if lease is None:
        return _back(session, "../lead")
    return render(_page(session, lease, None), session)


@pages.post("/lead/settle")
def adjudicate(
    session: LeadForm,
    item_id: FormId,
    lease_token: FormKey,
    key: FormKey,
    label: FormLabel,
    policy_code: FormCode = "",
    note: FormNote = "",
) -> Response:
    """Decide the item, and return to the queues."""
    decision = DecisionRequest(
        lease_token=lease_token,
        label=label,
        policy_code=policy_code or None,
        note=note.strip() or None,
    )
    try:
        decide_item(item_id, decision, key, session.context, session.person)
    except (LeaseConflictError, ItemNotFoundError):
        return _back(session, "../lead?notice=gone")
    except QueueError as exc:
        lease = leases.resume(session.engine, session.person.id, item_id, lease_token)
        if lease is None:
            return _back(session, "../lead?notice=gone")
        return render(_page(session, lease, str(exc)), session)
    return _back(session, "../lead?notice=settled")


@pages.post("/lead/leave")
def leave(session: LeadForm, held: LeaseCookie = "") -> Response:
    """Release the item without a decision."""
    lease = resume(session, held)
    if lease is not None:
        leases.release(session.engine, session.person.id, lease.item.id, lease.token)
    return _back(session, "../lead?notice=back")


def _lease(session: Session, item_id: int | None) -> Lease | None:
    person = session.person
    if item_id is None:
        return next(iter(lease_for(session.context, person, 1, escalated=True)), None)
    take = partial(
        leases.claim, session.engine, person.id, item_id, queues=person.queues, escalated_only=True
    )
    return session.context.lease_limit.within(person.id, take)


def _back(session: Session, to: str) -> Response:
    response = RedirectResponse(to, 303)
    delete_cookies(session.request, response, LEASE_COOKIE)
    return response


def _page(session: Session, lease: Lease, problem: str | None) -> AdjudicationPage:
    locale = session.locale
    return AdjudicationPage(
        lease=lease,
        problem=problem,
        key=new_key(),
        codes={label: codes_of(session.policy, label, locale) for label in (1, 0)},
        titles=titles_of(session.policy, locale),
    )
