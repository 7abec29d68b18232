"""The queues of a lead: counts and ages, leases, escalations and how a lead resolves them."""

from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Cookie, Response
from fastapi.responses import RedirectResponse

from modwatch.common.errors import ItemNotFoundError, LeaseConflictError, QueueError
from modwatch.review import database, workload
from modwatch.review.console.decision_choices import codes_of, titles_of
from modwatch.review.console.render import render
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
from modwatch.review.queue.metrics import shown_counts

pages = APIRouter(include_in_schema=False)


@pages.get("/lead")
def show_queues(session: LeadSession) -> Response:
    """Return the state of the queues."""
    person, queues = session.person, session.person.queues
    lanes = workload.work_left(session.engine, queues=queues, viewer=person.id)
    holdings = workload.holders(session.engine, queues=queues)
    held = Counter((lease.moderator_id, lease.pseudonym) for lease in holdings)
    return render(
        session,
        "queues.html",
        lanes=lanes,
        oldest=_highest(lane.oldest_seconds for lane in lanes),
        oldest_escalated=_highest(lane.oldest_escalated_seconds for lane in lanes),
        escalations=workload.escalations(session.engine, queues=queues, viewer=person.id),
        holdings=holdings,
        # Everyone with more than one lease; `leased` counts all, of which the longest are listed.
        holders=[person for person, items in held.items() if items > 1],
        leased=shown_counts(session.engine, queues=queues).leased,
        titles=titles_of(session.policy, session.locale),
        rules=session.context.options.lanes,
        now=database.now(session.engine),
    )


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
    return _page(session, lease, None)


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
        return _page(session, lease, str(exc))
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


def _page(session: Session, lease: Lease, problem: str | None) -> Response:
    locale = session.locale
    return render(
        session,
        "adjudication.html",
        lease=lease,
        problem=problem,
        key=new_key(),
        codes={label: codes_of(session.policy, label, locale) for label in (1, 0)},
        titles=titles_of(session.policy, locale),
        longest_note=LONGEST_NOTE,
    )


def _highest(ages: Iterable[float | None]) -> float | None:
    """Return the highest age that is known."""
    return max((age for age in ages if age is not None), default=None)
