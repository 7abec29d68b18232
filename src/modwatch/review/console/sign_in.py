"""Sign in with a password, an access token or an identity provider; sign out."""

import re
import secrets
from contextlib import suppress
from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Cookie, Form, HTTPException, Query, Request, Response
from fastapi.responses import RedirectResponse

from modwatch.common.errors import AccessDeniedError, CodeRequiredError, QueueError, ThrottledError
from modwatch.review.console.i18n import N_
from modwatch.review.console.render import render_public
from modwatch.review.console.request_context import (
    SESSION_COOKIE,
    ContextDep,
    check_csrf,
    client_address,
    csrf_of,
    delete_cookies,
    set_cookie,
)
from modwatch.review.console.schemas import FormText
from modwatch.review.people import second_factor
from modwatch.review.people.access_tokens import revoke_token
from modwatch.review.people.oidc import Provider
from modwatch.review.people.passwords import LONGEST_PASSWORD, log_in
from modwatch.review.people.sessions import authenticate, open_session
from modwatch.review.people.throttle import KNOWN, new_device

pages = APIRouter(include_in_schema=False)
LOGIN_COOKIE = "modwatch_login"
OIDC_COOKIE = "modwatch_oidc"
DEVICE_COOKIE = "modwatch_device"
PENDING_COOKIE = "modwatch_pending"
_DEVICE = re.compile(r"[A-Za-z0-9_-]{43}")
_DEVICE_SECONDS = KNOWN // timedelta(seconds=1)
SessionCookie = Annotated[str, Cookie(alias=SESSION_COOKIE)]
Next = Annotated[str, Query(max_length=200)]

#: Paths of our own pages.
_OWN_PATH = re.compile(r"[a-z0-9_]+(/[A-Za-z0-9_-]+)*")


@pages.get("/login")
def show(request: Request, context: ContextDep, next: Next = "") -> Response:
    """Return the sign-in page; a valid session is redirected."""
    with suppress(AccessDeniedError):
        authenticate(context.engine, request.cookies.get(SESSION_COOKIE, ""), "session")
        return RedirectResponse(_own_page(next), 303)
    return _sign_in_page(request, None, go_on=next)


@pages.post("/login")
def sign_in(
    request: Request,
    context: ContextDep,
    csrf: FormText,
    pseudonym: FormText = "",
    password: Annotated[str, Form(max_length=LONGEST_PASSWORD)] = "",
    token: FormText = "",
    code: Annotated[str, Form(max_length=100)] = "",
    next: Annotated[str, Form(max_length=200)] = "",
    login: Annotated[str, Cookie(alias=LOGIN_COOKIE)] = "",
    device: Annotated[str, Cookie(alias=DEVICE_COOKIE)] = "",
    pending: Annotated[str, Cookie(alias=PENDING_COOKIE, max_length=100)] = "",
) -> Response:
    """Open a session for an access token, or for a pseudonym and password, and then a code."""
    check_csrf(login, csrf)
    address = client_address(request)
    device = device if _DEVICE.fullmatch(device) else new_device()
    try:
        if token.strip():
            session = open_session(context.engine, token.strip(), address=address)
        elif pending and code:
            session = second_factor.finish_log_in(
                context.engine, pending, code, address=address, device=device
            )
        else:
            session = log_in(
                context.engine,
                pseudonym,
                password,
                address=address,
                device=device,
                code_required=context.options.require_second_factor,
            )
    except CodeRequiredError as exc:
        response = _sign_in_page(request, None, code=True, go_on=next)
        seconds = second_factor.PENDING // timedelta(seconds=1)
        set_cookie(request, response, PENDING_COOKIE, exc.pending, max_age=seconds)
        return response
    except ThrottledError as exc:
        return _sign_in_page(request, None, wait=exc.retry_after, status=429, go_on=next)
    except AccessDeniedError:
        problem = (
            N_("Incorrect or used code. Enter your password again, and then the current code.")
            if code
            else N_("This access token is unknown, expired or revoked. Ask an admin for a new one.")
            if token
            else N_("Incorrect pseudonym or password. Try again, or ask an admin.")
        )
        return _sign_in_page(request, problem, status=401, go_on=next)
    required = context.options.require_second_factor
    to_enrol = required and authenticate(context.engine, session, "session").may_enrol_only
    response = RedirectResponse("./second-factor" if to_enrol else _own_page(next), 303)
    set_cookie(request, response, SESSION_COOKIE, session)
    if not token.strip():
        set_cookie(request, response, DEVICE_COOKIE, device, max_age=_DEVICE_SECONDS)
    used = (PENDING_COOKIE,) if PENDING_COOKIE in request.cookies else ()
    delete_cookies(request, response, LOGIN_COOKIE, *used)
    return response


@pages.post("/logout")
def sign_out(
    request: Request, context: ContextDep, csrf: FormText, session: SessionCookie = ""
) -> Response:
    """Revoke the session."""
    check_csrf(session, csrf)
    revoke_token(context.engine, session)
    response = RedirectResponse("./login", 303)
    delete_cookies(request, response, SESSION_COOKIE, "modwatch_lease")
    return response


@pages.get("/oidc/start")
def start(request: Request) -> Response:
    """Redirect to the identity provider."""
    try:
        pending = _provider(request).begin()
    except QueueError:
        return RedirectResponse("../login?notice=provider", 303)
    response = RedirectResponse(pending.url, 303)
    # Lax, since the provider redirects from another site.
    set_cookie(request, response, OIDC_COOKIE, pending.cookie, samesite="lax", max_age=600)
    return response


@pages.get("/oidc/callback")
def finish(
    request: Request,
    context: ContextDep,
    state: Annotated[str, Query(max_length=400)] = "",
    code: Annotated[str, Query(max_length=4_000)] = "",
    iss: Annotated[str | None, Query(max_length=400)] = None,
    pending: Annotated[str, Cookie(alias=OIDC_COOKIE)] = "",
) -> Response:
    """Open a session for the person whom the identity provider authenticated."""
    try:
        session = _provider(request).finish(
            context.engine,
            cookie=pending,
            state=state,
            code=code,
            address=client_address(request),
            issuer=iss,
        )
    except QueueError:
        response: Response = RedirectResponse("../login?notice=provider", 303)
    else:
        # Not a redirect: the browser sends no strict cookie on one that another site started.
        response = render_public(request, "redirect.html", to="../")
        set_cookie(request, response, SESSION_COOKIE, session)
    delete_cookies(request, response, OIDC_COOKIE)
    return response


def _provider(request: Request) -> Provider:
    provider: Provider | None = request.app.state.provider
    if provider is None:
        raise HTTPException(
            404, "no identity provider is configured; sign in with a password or token"
        )
    return provider


def _sign_in_page(
    request: Request,
    problem: str | None,
    *,
    go_on: str,
    code: bool = False,
    wait: int | None = None,
    status: int = 200,
) -> Response:
    login = request.cookies.get(LOGIN_COOKIE) or secrets.token_urlsafe(32)
    response = render_public(
        request,
        "sign_in.html",
        status,
        csrf=csrf_of(login),
        problem=problem,
        code=code,
        wait=wait,
        provider=request.app.state.provider is not None,
        next=go_on if _OWN_PATH.fullmatch(go_on) else "",
    )
    if wait is not None:
        response.headers["Retry-After"] = str(wait)
    set_cookie(request, response, LOGIN_COOKIE, login)
    if SESSION_COOKIE in request.cookies:
        delete_cookies(request, response, SESSION_COOKIE, "modwatch_lease")
    return response


def _own_page(path: str) -> str:
    """Return a path of ours, relative to the sign-in page; the first page for any other."""
    return f"./{path}" if _OWN_PATH.fullmatch(path) else "./"
