"""Come in and go: by name and password, by token, through an identity provider."""

import re
import secrets
from dataclasses import dataclass
from typing import Annotated, ClassVar

from fastapi import APIRouter, Cookie, Form, HTTPException, Query, Request, Response
from fastapi.responses import RedirectResponse

from modwatch.errors import AccessDeniedError, QueueError, ThrottledError
from modwatch.review.console.desk import (
    SESSION,
    Desk,
    DeskDep,
    FormText,
    check_csrf,
    csrf_of,
    forget,
    set_cookie,
)
from modwatch.review.console.i18n import N_
from modwatch.review.console.render import OnwardPage, Page, render
from modwatch.review.people import (
    LONGEST_PASSWORD,
    Provider,
    authenticate,
    log_in,
    open_session,
    revoke_token,
)

router = APIRouter(include_in_schema=False)

LOGIN = "modwatch_login"
OIDC = "modwatch_oidc"

NOTICES = {
    "token": N_("This token is unknown, expired or revoked. Ask an admin for another."),
    "password": N_("The name or the password is wrong. Try again, or ask an admin."),
    "ended": N_("Your session has ended. Log in again to go on."),
    "changed": N_("Your password is changed. Log in with the new one."),
    "provider": N_("The log-in with your organisation did not work. Try again, or ask an admin."),
}

LoginCookie = Annotated[str, Cookie(alias=LOGIN)]
SessionCookie = Annotated[str, Cookie(alias=SESSION)]
Next = Annotated[str, Query(max_length=200)]

#: Addresses of our own pages.
_OWN = re.compile(r"[a-z0-9_]+(/[A-Za-z0-9_-]+)*")


@dataclass(frozen=True, kw_only=True)
class LoginPage(Page):
    """`login.html`."""

    template: ClassVar[str] = "login.html"

    #: Hidden in the forms; proves that they are ours.
    csrf: str
    #: A sentence above the forms, if any.
    notice: str | None
    #: Seconds until the next attempt, after too many that failed.
    wait: int | None
    #: Whether people can come in through an identity provider.
    provider: bool
    #: The page to go on to, if any.
    next: str


@router.get("/login")
def ask(
    request: Request,
    desk: DeskDep,
    notice: Annotated[str, Query(max_length=20)] = "",
    next: Next = "",
) -> Response:
    """Return the way in; who is in already goes on."""
    if _holds(desk, request.cookies.get(SESSION, "")):
        return RedirectResponse(_own(next), 303)
    return _login_page(request, NOTICES.get(notice), go_on=next)


@router.post("/login")
def come_in(
    request: Request,
    desk: DeskDep,
    csrf: FormText,
    pseudonym: FormText = "",
    password: Annotated[str, Form(max_length=LONGEST_PASSWORD)] = "",
    token: FormText = "",
    next: Annotated[str, Form(max_length=200)] = "",
    login: LoginCookie = "",
) -> Response:
    """Open a session for a token, or for a name and its password."""
    check_csrf(login, csrf)
    try:
        session = _session(request, desk, token.strip(), pseudonym, password)
    except ThrottledError as refusal:
        return _login_page(request, None, wait=refusal.retry_after, status=429, go_on=next)
    except AccessDeniedError:
        wrong = NOTICES["token" if token else "password"]
        return _login_page(request, wrong, status=401, go_on=next)
    response = RedirectResponse(_own(next), 303)
    set_cookie(request, response, SESSION, session)
    forget(request, response, LOGIN)
    return response


@router.post("/logout")
def go(request: Request, desk: DeskDep, csrf: FormText, session: SessionCookie = "") -> Response:
    """Close the session, on the server too."""
    check_csrf(session, csrf)
    revoke_token(desk.engine, session)
    response = RedirectResponse("./login", 303)
    forget(request, response, SESSION, "modwatch_lease")
    return response


@router.get("/oidc/start")
def begin(request: Request) -> Response:
    """Send the browser to the identity provider."""
    try:
        pending = _provider(request).begin()
    except QueueError:
        return RedirectResponse("../login?notice=provider", 303)
    response = RedirectResponse(pending.url, 303)
    # Lax, for the provider's answer comes from another site.
    set_cookie(request, response, OIDC, pending.cookie, samesite="lax", max_age=600)
    return response


@router.get("/oidc/callback")
def finish(
    request: Request,
    desk: DeskDep,
    state: Annotated[str, Query(max_length=400)] = "",
    code: Annotated[str, Query(max_length=4_000)] = "",
    iss: Annotated[str | None, Query(max_length=400)] = None,
    pending: Annotated[str, Cookie(alias=OIDC)] = "",
) -> Response:
    """Open a session for whom the identity provider vouches."""
    try:
        session = _provider(request).finish(
            desk.engine,
            cookie=pending,
            state=state,
            code=code,
            lifetime=desk.options.session_length,
            issuer=iss,
        )
    except QueueError:
        response: Response = RedirectResponse("../login?notice=provider", 303)
    else:
        # Not a redirect: on one that another site began, the strict cookie would not be sent.
        response = render(OnwardPage(to="../"), request)
        set_cookie(request, response, SESSION, session)
    forget(request, response, OIDC)
    return response


def _session(request: Request, desk: Desk, token: str, pseudonym: str, password: str) -> str:
    length = desk.options.session_length
    if token:
        return open_session(desk.engine, token, length)
    address = request.client.host if request.client else ""
    return log_in(desk.engine, pseudonym, password, address=address, lifetime=length)


def _provider(request: Request) -> Provider:
    provider: Provider | None = request.app.state.provider
    if provider is None:
        raise HTTPException(404, "no identity provider is set up; log in another way")
    return provider


def _holds(desk: Desk, session: str) -> bool:
    try:
        authenticate(desk.engine, session, "session")
    except AccessDeniedError:
        return False
    return True


def _login_page(
    request: Request,
    notice: str | None,
    *,
    go_on: str,
    wait: int | None = None,
    status: int = 200,
) -> Response:
    login = request.cookies.get(LOGIN) or secrets.token_urlsafe(32)
    page = LoginPage(
        csrf=csrf_of(login),
        notice=notice,
        wait=wait,
        provider=request.app.state.provider is not None,
        next=go_on if _OWN.fullmatch(go_on) else "",
    )
    response = render(page, request, status=status)
    if wait is not None:
        response.headers["Retry-After"] = str(wait)
    set_cookie(request, response, LOGIN, login)
    if SESSION in request.cookies:
        forget(request, response, SESSION, "modwatch_lease")
    return response


def _own(path: str) -> str:
    """Return the address of a page of ours, relative to the log-in; the first for any other."""
    return f"./{path}" if _OWN.fullmatch(path) else "./"
