"""The review page: decide the current comment, and continue with the next.

It works as a plain form, with a cookie that remembers the lease. Where scripts run,
`static/console.js` takes over: it leases the next items in advance, sends decisions in the
background, and remembers its leases in the tab.

A tab that closes releases its items, so that others can lease them. A reload or the back button
looks the same to the server, so a tab remembers the token of each lease: with it, the same person
can lease the item again unless someone else has had it since.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Cookie, Depends, Form, Header, Query, Response
from fastapi.responses import RedirectResponse
from pydantic import ConfigDict, Field
from sqlalchemy import Engine, exists, select

from modwatch.common.errors import ItemNotFoundError, LeaseConflictError, TooManyLeasesError
from modwatch.review.console import review
from modwatch.review.console.activity import toxic_today
from modwatch.review.console.decision_choices import Choices, choices_of, request_of
from modwatch.review.console.i18n import N_
from modwatch.review.console.preferences import ACTIONS
from modwatch.review.console.render import render
from modwatch.review.console.request_context import (
    CSRF_HEADER,
    ReviewForm,
    ReviewSession,
    Session,
    check_csrf,
    delete_cookies,
    page_session,
    set_cookie,
)
from modwatch.review.console.schemas import FormId, FormKey, FormNote, RequestSchema, Token
from modwatch.review.people.accounts import ACCOUNT
from modwatch.review.queue import leases
from modwatch.review.queue.deciding import UNDOABLE
from modwatch.review.queue.items import Lease
from modwatch.review.tables import review_item
from modwatch.statistics.collaboration.review_strategies import all_review_scores


class RememberedLease(RequestSchema):
    """A lease that a tab remembers; other fields are ignored."""

    model_config = ConfigDict(extra="ignore")

    item_id: Annotated[int, Field(ge=1, le=2**63 - 1)]
    lease_token: Token


def cookie_of(lease: Lease) -> str:
    """Return the cookie that remembers a lease."""
    return f"{lease.item.id}.{lease.token}"


def parse_cookie(cookie: str) -> tuple[int, str]:
    """Return item and token of a cookie; item 0, which does not exist, for an invalid one.

    >>> parse_cookie("7.secret"), parse_cookie("forged")
    ((7, 'secret'), (0, ''))
    """
    item_id, _, token = cookie.partition(".")
    valid = item_id.isascii() and item_id.isdigit() and len(item_id) < 19
    return (int(item_id), token) if valid else (0, "")


def resume(session: Session, cookie: str) -> Lease | None:
    """Return the lease of a cookie if it is still valid."""
    return leases.resume(session.engine, session.person.id, *parse_cookie(cookie))


def lease_again(session: Session, remembered: RememberedLease) -> Lease | None:
    """Return a new lease of an item that the tab had; None if someone else had it since.

    None, too, for a person who holds as many items as they may.

    The lease is new because the tab's request to release the old one may still be in flight.
    """
    person = session.person
    take = partial(
        leases.renew,
        session.engine,
        person.id,
        remembered.item_id,
        remembered.lease_token,
        queues=person.queues,
        escalated=person.may("lead"),
    )
    try:
        return session.context.lease_limit.within(person.id, take)
    except TooManyLeasesError:
        return None


#: Least p(1-p), and the views for not toxic and for toxic; 0.21 is p between 0.3 and 0.7.
_VIEWS = (
    (
        0.21,
        N_("The model leans towards not toxic and is unsure."),
        N_("The model leans towards toxic and is unsure."),
    ),
    (
        0.09,
        N_("The model leans towards not toxic and is fairly sure."),
        N_("The model leans towards toxic and is fairly sure."),
    ),
    (
        0.0,
        N_("The model predicts not toxic and is sure."),
        N_("The model predicts toxic and is sure."),
    ),
)


@dataclass(frozen=True, kw_only=True)
class RoutingExplanation:
    """Reason and model's view; both are messages of the catalogues."""

    reason: str
    view: str
    #: p(toxic), in [0, 1].
    prob: float


def explain_routing(engine: Engine, item_id: int) -> RoutingExplanation | None:
    """Return why the item was sent; None unless it wants one label of one person.

    Labels of all other items are compared with other labels or with the model, and are blind.
    """
    item, other = review_item.c, review_item.alias("other")
    compared = exists().where(
        other.c.dt == item.dt,
        other.c.comment_id == item.comment_id,
        other.c.kind == "confirmation",
    )
    of_one = (item.id == item_id, item.kind == "review", item.labels_wanted == 1, ~compared)
    query = select(item.reason, item.prob, item.uncertainty).where(*of_one)
    with engine.connect() as connection:
        row = connection.execute(query).one_or_none()
    score = None if row is None else all_review_scores().get(row.reason)
    if row is None or score is None:
        return None
    view = model_view(row.prob, row.uncertainty)
    return RoutingExplanation(reason=score.explanation, view=view, prob=row.prob)


def model_view(prob: float, uncertainty: float) -> str:
    """Return the model's view as one sentence.

    >>> model_view(0.4, 0.24)
    'The model leans towards not toxic and is unsure.'
    >>> model_view(0.99, 0.01)
    'The model predicts toxic and is sure.'
    """
    views = next(views for least, *views in _VIEWS if uncertainty >= least)
    return views[prob >= 0.5]


pages = APIRouter(include_in_schema=False)
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


@pages.get("/")
def show(
    session: Annotated[Session, Depends(page_session(ACCOUNT, "review"))],
    held: LeaseCookie = "",
    done: Annotated[int | None, Query(ge=1, le=2**63 - 1)] = None,
    reveal: Annotated[int, Query()] = 0,
) -> Response:
    """Return the next item."""
    person = session.person
    chosen = session.preferences
    lease = resume(session, held) if person.reviews else None
    if lease is None and person.reviews:
        lease = next(iter(review.lease_for(session.context, person, 1)), None)
    response = render(
        session,
        "review.html",
        counts=session.request.app.state.queue_counts(),
        card=None if lease is None else _card(session, lease, reveal),
        choices=_choices(session),
        actions={name: (ACTIONS[name][1], key) for name, key in chosen.all_keys.items()},
        toxic_today=toxic_today(session.engine, person.id, chosen.timezone),
        done=done,
        require_code=session.context.options.require_code,
    )
    if lease is not None:
        set_cookie(session.request, response, LEASE_COOKIE, cookie_of(lease))
    return response


@pages.post("/decide")
def decide_item(
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
        key = _key(lease_token)
        done = review.decide_item(item_id, request, key, session.context, session.person)
    except (LeaseConflictError, ItemNotFoundError):
        return _home("notice=conflict")
    return _home(f"done={done.id}" if done.action in UNDOABLE else "")


@pages.post("/undo")
def undo_decision(
    session: ReviewForm,
    decision_id: FormId,
    held: LeaseCookie = "",
    fragment: Annotated[str, Header(alias="X-Modwatch-Fragment")] = "",
) -> Response:
    """Undo a decision, and show its item again."""
    try:
        key = f"undo-{decision_id}"
        lease = review.undo_decision(session.context, session.person, decision_id, key)
    except (LeaseConflictError, ItemNotFoundError):
        if fragment:
            raise
        return _home("notice=late")
    if fragment:
        return _cards(session, [lease])
    leases.release(session.engine, session.person.id, *parse_cookie(held))
    response = _home("notice=undone")
    set_cookie(session.request, response, LEASE_COOKIE, cookie_of(lease))
    return response


@pages.post("/next")
def next_items(session: ReviewSession, wanted: Wanted, csrf: CsrfHeader = "") -> Response:
    """Return the tab's items that it can lease again, and then the next ones."""
    check_csrf(session.token, csrf)
    resumed = [lease for held in wanted.held if (lease := lease_again(session, held)) is not None]
    more = review.lease_for(session.context, session.person, max(0, wanted.count - len(resumed)))
    response = _cards(session, [*resumed, *more])
    delete_cookies(session.request, response, LEASE_COOKIE)  # the tab remembers from now on
    counts = session.request.app.state.queue_counts()
    response.headers["X-Modwatch-Counts"] = f"{counts.waiting} {counts.leased}"
    return response


@pages.post("/leave", status_code=204)
def leave(session: ReviewSession, wanted: Wanted, csrf: CsrfHeader = "") -> None:
    """Release the leases of a tab that closes."""
    check_csrf(session.token, csrf)
    for held in wanted.held:
        leases.release(session.engine, session.person.id, held.item_id, held.lease_token)


def _choices(session: Session) -> Choices:
    severe = session.context.options.lanes.severe.reasons
    return choices_of(session.policy, session.locale, severe=severe)


def _cards(session: Session, leased: Sequence[Lease]) -> Response:
    return render(
        session,
        "item_cards.html",
        cards=[_card(session, lease) for lease in leased],
        choices=_choices(session),
    )


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


def _key(lease_token: str) -> str:
    return f"page-{hashlib.sha256(lease_token.encode(errors='surrogatepass')).hexdigest()}"


def _home(query: str) -> Response:
    return RedirectResponse(f"./?{query}", 303)
