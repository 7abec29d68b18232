"""Resolve an escalated or disputed item: earlier labels, escalations, and the lead's decision."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Cookie, Response
from fastapi.responses import RedirectResponse

from modwatch.common.errors import ItemNotFoundError, LeaseConflictError, QueueError
from modwatch.review import queue
from modwatch.review.console.api import review as api
from modwatch.review.console.decision_choices import codes_of, titles_of
from modwatch.review.console.forms import (
    FormCode,
    FormId,
    FormKey,
    FormLabel,
    FormNote,
    OptionalId,
    new_key,
)
from modwatch.review.console.remembered_leases import cookie_of, resume
from modwatch.review.console.render import Page, render
from modwatch.review.console.request_context import (
    LeadForm,
    LeadSession,
    Session,
    delete_cookies,
    set_cookie,
)
from modwatch.review.console.schemas import DecisionRequest
from modwatch.review.queue import LONGEST_NOTE
from modwatch.review.queue.items import Lease

router = APIRouter(include_in_schema=False)

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


@router.post("/lead/take")
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


@router.get("/lead/settle")
def show(session: LeadSession, held: LeaseCookie = "") -> Response:
    """Return the item that this lead has leased, with earlier labels and escalations."""
    lease = resume(session, held)
    if lease is None:
        return _back(session, "../lead")
    return render(_page(session, lease, None), session)


@router.post("/lead/settle")
def decide(
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
        label=1 if label == "1" else 0,
        policy_code=policy_code or None,
        note=note.strip() or None,
    )
    try:
        api.decide(session.context, session.person, item_id, decision, key)
    except (LeaseConflictError, ItemNotFoundError):
        return _back(session, "../lead?notice=gone")
    except QueueError as exc:
        lease = queue.resume(session.engine, session.person.id, item_id, lease_token)
        if lease is None:
            return _back(session, "../lead?notice=gone")
        page = _page(session, lease, str(exc))
        return render(page, session, 422)
    return _back(session, "../lead?notice=settled")


@router.post("/lead/leave")
def leave(session: LeadForm, held: LeaseCookie = "") -> Response:
    """Release the item without a decision."""
    lease = resume(session, held)
    if lease is not None:
        queue.release(session.engine, session.person.id, lease.item.id, lease.token)
    return _back(session, "../lead?notice=back")


def _lease(session: Session, item_id: int | None) -> Lease | None:
    person = session.person
    if item_id is None:
        return next(iter(api.lease_for(session.context, person, 1, escalated=True)), None)
    with session.context.lease_limit.place(person.id) as place:
        lease = queue.claim(
            session.engine,
            person.id,
            item_id,
            session.context.options.lease_length,
            queues=person.queues,
            escalated_only=True,
        )
        place.taken = lease is not None
    return lease


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
