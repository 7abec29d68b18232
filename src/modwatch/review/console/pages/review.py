"""The review page: decide the current comment, and continue with the next.

It works as a plain form, with a cookie that remembers the lease. Where scripts run,
`static/console.js` takes over: it leases the next items in advance, sends decisions in the
background, and remembers its leases in the tab.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Cookie, Form, Header, Query, Response
from fastapi.responses import RedirectResponse
from pydantic import Field

from modwatch.common.errors import ItemNotFoundError, LeaseConflictError
from modwatch.review import queue
from modwatch.review.console.activity import toxic_today
from modwatch.review.console.api import review as api
from modwatch.review.console.decision_choices import Choices, choices_of, request_of
from modwatch.review.console.forms import FormId, FormKey, FormNote
from modwatch.review.console.preferences import ACTIONS
from modwatch.review.console.remembered_leases import (
    RememberedLease,
    cookie_of,
    lease_again,
    parse_cookie,
    resume,
)
from modwatch.review.console.render import Page, render
from modwatch.review.console.request_context import (
    CSRF_HEADER,
    AnySession,
    ReviewForm,
    ReviewSession,
    Session,
    check_csrf,
    delete_cookies,
    set_cookie,
)
from modwatch.review.console.routing_explanation import RoutingExplanation, explain_routing
from modwatch.review.console.schemas import RequestSchema
from modwatch.review.queue.items import Lease
from modwatch.review.queue.metrics import QueueCounts

router = APIRouter(include_in_schema=False)

LEASE_COOKIE = "modwatch_lease"

#: Leases of a page with a script: the current item and the next.
HELD = 2

LeaseCookie = Annotated[str, Cookie(alias=LEASE_COOKIE)]
CsrfHeader = Annotated[str, Header(alias=CSRF_HEADER, max_length=400)]


class Wanted(RequestSchema):
    """The leases that a tab remembers, and how many it wants."""

    held: Annotated[tuple[RememberedLease, ...], Field(max_length=5)] = ()
    count: Annotated[int, Field(ge=0, le=HELD + 1)] = 1


@dataclass(frozen=True, kw_only=True)
class ItemCard:
    """One item on the page."""

    lease: Lease
    #: Idempotency key; one per lease, so that a double click or second tab makes one decision.
    key: str
    #: None for a blind label.
    why: RoutingExplanation | None
    masked: bool


@dataclass(frozen=True, kw_only=True)
class ReviewPage(Page, template="review.html"):
    """The next item and its buttons, or that none is available."""

    #: Whether this person may review.
    reviews: bool
    counts: QueueCounts
    #: None if no item is available for this person.
    card: ItemCard | None
    choices: Choices
    #: Name and key of every action.
    actions: dict[str, tuple[str, str]]
    #: Number of comments that this person labelled toxic today.
    toxic_today: int
    #: The decision just made, to undo.
    done: int | None
    require_code: bool


@dataclass(frozen=True, kw_only=True)
class ItemCardsPage(Page, template="item_cards.html"):
    """Items without the rest of the page, for the script."""

    cards: Sequence[ItemCard]
    choices: Choices


@router.get("/")
def show(
    session: AnySession,
    held: LeaseCookie = "",
    done: Annotated[int | None, Query(ge=1, le=2**63 - 1)] = None,
    reveal: Annotated[int, Query()] = 0,
) -> Response:
    """Return the next item."""
    person = session.person
    chosen = session.preferences
    lease = _current(session, held) if person.reviews else None
    page = ReviewPage(
        reviews=person.reviews,
        counts=session.request.app.state.queue_counts(),
        card=None if lease is None else _card(session, lease, reveal),
        choices=choices_of(
            session.policy,
            session.locale,
            severe=session.context.options.lanes.severe.reasons,
        ),
        actions={name: (ACTIONS[name][1], key) for name, key in chosen.all_keys.items()},
        toxic_today=toxic_today(session.engine, person.id, chosen.timezone),
        done=done,
        require_code=session.context.options.require_code,
    )
    response = render(page, session)
    if lease is not None:
        set_cookie(session.request, response, LEASE_COOKIE, cookie_of(lease))
    return response


@router.post("/decide")
def decide(
    session: ReviewForm,
    item_id: FormId,
    lease_token: FormKey,
    verdict: Annotated[str, Form(max_length=100)],
    exact: Annotated[str, Form(max_length=100)] = "",
    version: Annotated[int | None, Form(ge=1, le=2**31 - 1)] = None,
    note: FormNote = "",
) -> Response:
    """Decide the current item, and continue with the next."""
    chosen = exact if verdict == "exact" else verdict
    request = request_of(chosen, lease_token, version, note.replace("\r\n", "\n"))
    try:
        done = api.decide(session.context, session.person, item_id, request, _key(lease_token))
    except (LeaseConflictError, ItemNotFoundError):
        return _home("notice=conflict")
    return _home(f"done={done.id}")


@router.post("/undo")
def undo(
    session: ReviewForm,
    decision_id: FormId,
    held: LeaseCookie = "",
    fragment: Annotated[str, Header(alias="X-Modwatch-Fragment")] = "",
) -> Response:
    """Undo a decision, and show its item again."""
    try:
        lease = api.undo(session.context, session.person, decision_id, f"undo-{decision_id}")
    except (LeaseConflictError, ItemNotFoundError):
        if fragment:
            raise
        return _home("notice=late")
    if fragment:
        return _cards(session, [lease])
    queue.release(session.engine, session.person.id, *parse_cookie(held))
    response = _home("notice=undone")
    set_cookie(session.request, response, LEASE_COOKIE, cookie_of(lease))
    return response


@router.post("/next")
def next_items(session: ReviewSession, wanted: Wanted, csrf: CsrfHeader = "") -> Response:
    """Return the tab's items that it can lease again, and then the next ones."""
    check_csrf(session.token, csrf)
    resumed = [lease for each in wanted.held if (lease := lease_again(session, each)) is not None]
    more = api.lease_for(session.context, session.person, max(0, wanted.count - len(resumed)))
    response = _cards(session, [*resumed, *more])
    delete_cookies(session.request, response, LEASE_COOKIE)  # the tab remembers from now on
    counts = session.request.app.state.queue_counts()
    response.headers["X-Modwatch-Counts"] = f"{counts.waiting} {counts.leased}"
    return response


@router.post("/leave", status_code=204)
def leave(session: ReviewSession, wanted: Wanted, csrf: CsrfHeader = "") -> None:
    """Release the leases of a tab that closes."""
    check_csrf(session.token, csrf)
    for each in wanted.held:
        queue.release(session.engine, session.person.id, each.item_id, each.lease_token)


def _cards(session: Session, leases: Sequence[Lease]) -> Response:
    page = ItemCardsPage(
        cards=[_card(session, lease) for lease in leases],
        choices=choices_of(
            session.policy,
            session.locale,
            severe=session.context.options.lanes.severe.reasons,
        ),
    )
    return render(page, session)


def _card(session: Session, lease: Lease, revealed: int = 0) -> ItemCard:
    chosen = session.preferences
    return ItemCard(
        lease=lease,
        key=_key(lease.token),
        why=explain_routing(session.engine, lease.item.id)
        if session.context.options.show_reasons
        else None,
        masked=chosen.masking == "blur" and revealed != lease.item.id,
    )


def _current(session: Session, held: str) -> Lease | None:
    if lease := resume(session, held):
        return lease
    return next(iter(api.lease_for(session.context, session.person, 1)), None)


def _key(lease_token: str) -> str:
    return f"page-{hashlib.sha256(lease_token.encode(errors='surrogatepass')).hexdigest()}"


def _home(query: str) -> Response:
    return RedirectResponse(f"./?{query}", 303)
