"""The plain page: log in, decide the item shown, log out.

Every address is relative, so that the console also works below a path. A reload shows the same
item: a cookie remembers the lease.
"""

import hashlib
import hmac
import secrets
from typing import Annotated, Literal

from fastapi import APIRouter, Cookie, Form, HTTPException, Query, Request, Response
from fastapi.responses import RedirectResponse

from modwatch.errors import AccessDeniedError, ItemNotFoundError, LeaseConflictError
from modwatch.review import queue
from modwatch.review.console.desk import Desk, DeskDep
from modwatch.review.console.render import LoginPage, ReviewPage, render
from modwatch.review.items import Lease
from modwatch.review.people import Moderator, authenticate, open_session, revoke_token

router = APIRouter(include_in_schema=False)

SESSION = "modwatch_session"
LOGIN = "modwatch_login"
LEASE = "modwatch_lease"

NOTICES = {
    "conflict": "That one is not yours any more: its time ran out, it was withdrawn, or it is "
    "decided already. Nothing was lost; here is the next.",
    "login": "This token is unknown, expired or revoked. Ask an admin for another.",
    "ended": "Your session has ended. Log in again to go on.",
}

SessionCookie = Annotated[str, Cookie(alias=SESSION)]
LoginCookie = Annotated[str, Cookie(alias=LOGIN)]
LeaseCookie = Annotated[str, Cookie(alias=LEASE)]
FormText = Annotated[str, Form(max_length=400)]


@router.get("/")
def show(
    request: Request,
    desk: DeskDep,
    session: SessionCookie = "",
    login: LoginCookie = "",
    held: LeaseCookie = "",
    notice: Annotated[str, Query(max_length=20)] = "",
) -> Response:
    """Return the next item, or the way in."""
    try:
        person = authenticate(desk.engine, session, "session")
    except AccessDeniedError:
        return _login_page(request, desk, login, "ended" if session else notice)
    lease = _current(desk, person, held) if person.reviews else None
    page = ReviewPage(
        csrf=_csrf(session),
        notice=NOTICES.get(notice),
        person=person,
        counts=queue.counts(desk.engine),
        lease=lease,
    )
    response = render(page)
    if lease is not None:
        _set(request, desk, response, LEASE, f"{lease.item.id}.{lease.token}")
    return response


@router.post("/login")
def log_in(
    request: Request, desk: DeskDep, token: FormText, csrf: FormText, login: LoginCookie = ""
) -> Response:
    """Open a session for a token."""
    _check_csrf(login, csrf)
    try:
        session = open_session(desk.engine, token.strip(), desk.options.session_length)
    except AccessDeniedError:
        return _home("login")
    response = _home()
    _set(request, desk, response, SESSION, session)
    _forget(request, response, LOGIN, LEASE)
    return response


@router.post("/logout")
def log_out(
    request: Request, desk: DeskDep, csrf: FormText, session: SessionCookie = ""
) -> Response:
    """Close the session, on the server too."""
    _check_csrf(session, csrf)
    revoke_token(desk.engine, session)
    response = _home()
    _forget(request, response, SESSION, LEASE)
    return response


@router.post("/decide")
def decide(
    desk: DeskDep,
    csrf: FormText,
    item_id: Annotated[int, Form(ge=1, le=2**63 - 1)],
    lease_token: FormText,
    verdict: Annotated[Literal["1", "0", "skip"], Form()],
    session: SessionCookie = "",
) -> Response:
    """Decide the item shown, and go on to the next."""
    try:
        person = authenticate(desk.engine, session, "session")
    except AccessDeniedError:
        return _home()
    _check_csrf(session, csrf)
    if not person.reviews:
        raise HTTPException(403, f"the role {person.role} may not decide; ask a lead")
    try:
        _settle(desk, person, item_id, lease_token, verdict)
    except (LeaseConflictError, ItemNotFoundError):
        return _home("conflict")
    return _home()


def _settle(desk: Desk, person: Moderator, item_id: int, lease_token: str, verdict: str) -> None:
    # One key a lease: a double click, or a second tab, makes one decision.
    key = f"page-{hashlib.sha256(lease_token.encode()).hexdigest()}"
    if verdict == "skip":
        queue.skip(
            desk.engine,
            moderator_id=person.id,
            item_id=item_id,
            lease_token=lease_token,
            idempotency_key=key,
        )
    else:
        queue.decide(
            desk.engine,
            moderator_id=person.id,
            item_id=item_id,
            lease_token=lease_token,
            label=int(verdict),
            idempotency_key=key,
        )


def _current(desk: Desk, person: Moderator, held: str) -> Lease | None:
    item_id, _, token = held.partition(".")
    if item_id.isascii() and item_id.isdigit() and len(item_id) < 19:
        lease = queue.resume(desk.engine, person.id, int(item_id), token)
        if lease is not None:
            return lease
    return queue.lease(desk.engine, person.id, desk.options.lease_length)


def _login_page(request: Request, desk: Desk, login: str, notice: str) -> Response:
    login = login or secrets.token_urlsafe(32)
    refused = notice == "login"
    response = render(
        LoginPage(csrf=_csrf(login), notice=NOTICES.get(notice)), 401 if refused else 200
    )
    _set(request, desk, response, LOGIN, login)
    _forget(request, response, SESSION, LEASE)
    return response


def _home(notice: str = "") -> Response:
    return RedirectResponse(f"./?notice={notice}" if notice else "./", 303)


def _csrf(secret: str) -> str:
    return hmac.new(secret.encode(), b"csrf", hashlib.sha256).hexdigest()


def _check_csrf(secret: str, given: str) -> None:
    if not secret or not hmac.compare_digest(_csrf(secret).encode(), given.encode()):
        raise HTTPException(403, "the form is not from this session; go back and reload the page")


def _set(request: Request, desk: Desk, response: Response, name: str, value: str) -> None:
    response.set_cookie(
        name,
        value,
        path=_path(request),
        secure=desk.options.secure_cookies,
        httponly=True,
        samesite="strict",
    )


def _forget(request: Request, response: Response, *names: str) -> None:
    for name in names:
        response.delete_cookie(name, path=_path(request), httponly=True, samesite="strict")


def _path(request: Request) -> str:
    return request.scope.get("root_path") or "/"
