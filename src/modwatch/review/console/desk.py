"""What every request needs: the database, the options, and who asks.

Programs send a bearer token. The page sends its session cookie and, with whatever changes
something, the header `X-Modwatch-CSRF` (forms: the field `csrf`).

    from modwatch.review.console.desk import DeskDep, Visit, page_visit, require
    # API: bearer token, or cookie and header.
    LeadDep = Annotated[Moderator, Depends(require("lead"))]
    # Pages: cookie, else to the log-in. A form: `csrf: FormText`, then first `visit.check(csrf)`.
    LeadVisit = Annotated[Visit, Depends(page_visit("lead"))]
"""

import datetime as dt
import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, Form, HTTPException, Request, Response
from fastapi.security import APIKeyCookie, HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy import Engine

from modwatch.errors import AccessDeniedError
from modwatch.review.people import Moderator, OidcOptions, authenticate, session_seed
from modwatch.review.policy.tree import Policy, load_policy
from modwatch.review.queue import LEASE_LENGTH
from modwatch.review.queue.lanes import Lanes, load_lanes

SESSION = "modwatch_session"
CSRF_HEADER = "X-Modwatch-CSRF"
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, kw_only=True)
class ConsoleOptions:
    """What may differ between installations."""

    #: How long a moderator may hold an item; the page extends it while it is looked at.
    lease_length: dt.timedelta = LEASE_LENGTH
    #: How long a login lasts.
    session_length: dt.timedelta = dt.timedelta(hours=12)
    #: A session that is used gets a new token this long after the last.
    rotate_after: dt.timedelta = dt.timedelta(hours=1)
    #: Send cookies over HTTPS only; set it wherever the console is not on loopback.
    secure_cookies: bool = False
    #: Tell why a comment was sent, where one label of one person is all that is wanted of it. Who
    #: knows the model's view leans to it; off, everybody labels blind.
    show_reasons: bool = False
    #: Whoever decides toxic must say under which code of the policy.
    require_code: bool = False
    #: What people decide by; None: the policy that comes with Modwatch.
    policy: Policy | None = None
    #: The rules of the queue; None: those that come with Modwatch.
    lanes: Lanes | None = None
    #: Log in with an OpenID Connect provider too.
    oidc: OidcOptions | None = None
    #: Figures of the queue in `/metrics` are at most this old.
    metrics_age: dt.timedelta = dt.timedelta(seconds=10)


@dataclass(frozen=True, kw_only=True)
class Desk:
    """What the application was made with."""

    engine: Engine
    options: ConsoleOptions

    @property
    def policy(self) -> Policy:
        """What people decide by."""
        return self.options.policy or load_policy()

    @property
    def lanes(self) -> Lanes:
        """The rules of the queue."""
        return self.options.lanes or load_lanes()


class LoginRequiredError(Exception):
    """A page was asked for without a session that holds; the answer leads to the log-in."""


@dataclass(frozen=True, kw_only=True)
class Visit:
    """A person at a page."""

    person: Moderator
    #: The token of the session, as the cookie holds it.
    session: str = field(repr=False)

    @property
    def csrf(self) -> str:
        """The value of every hidden field `csrf`, and of the header."""
        return csrf_of(self.session)

    def check(self, given: str) -> None:
        """Raise 403 unless a form's field, or the header, is of this session."""
        check_csrf(self.session, given)


def desk_of(request: Request) -> Desk:
    """Return what the application of `request` was made with."""
    desk: Desk = request.app.state.desk
    return desk


DeskDep = Annotated[Desk, Depends(desk_of)]

_bearer = HTTPBearer(
    auto_error=False, scheme_name="token", description="An API token; an admin issues it."
)
_cookie = APIKeyCookie(
    name=SESSION,
    auto_error=False,
    scheme_name="session",
    description=f"The page's session; what changes something also takes the header {CSRF_HEADER}.",
)


def _person(
    request: Request,
    desk: DeskDep,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
    session: Annotated[str | None, Depends(_cookie)],
) -> Moderator:
    """Return who sent a bearer token or, failing that, whose session this is."""
    if credentials is not None:
        return authenticate(desk.engine, credentials.credentials)
    if not session:
        raise AccessDeniedError("no bearer token came; send one in the Authorization header")
    person = authenticate(desk.engine, session, "session")
    if request.method not in _SAFE:
        check_csrf(session, request.headers.get(CSRF_HEADER, ""))
    return person


PersonDep = Annotated[Moderator, Depends(_person)]


def require(*scopes: str) -> Callable[..., Moderator]:
    """Return the dependency of an API endpoint for people with one of `scopes`; others get 403."""

    def allowed(person: PersonDep) -> Moderator:
        refuse_without(person, *scopes)
        return person

    return allowed


def refuse_without(person: Moderator, *scopes: str) -> None:
    """Raise 403 unless `person` has one of `scopes`."""
    if not any(person.may(scope) for scope in scopes):
        raise HTTPException(
            403, f"this takes the scope {' or '.join(scopes)}; ask an admin for it, or for a token"
        )


FormText = Annotated[str, Form(max_length=400)]
LeaseToken = Annotated[str, Form(min_length=1, max_length=200)]

ReviewerDep = Annotated[Moderator, Depends(require("review"))]


def page_visit(*scopes: str) -> Callable[..., Visit]:
    """Return the dependency of a page for people with one of `scopes`, or for all without any.

    Nobody's session: to the log-in. Somebody else's role: 403.
    """

    def visit(request: Request, desk: DeskDep) -> Visit:
        session = request.cookies.get(SESSION, "")
        try:
            person = authenticate(desk.engine, session, "session")
        except AccessDeniedError:
            raise LoginRequiredError from None
        if scopes:
            refuse_without(person, *scopes)
        return Visit(person=person, session=session)

    return visit


def csrf_of(secret: str) -> str:
    """Return what proves that a form was made for the holder of `secret`.

    Of a session it is the same whatever token replaces the first.
    """
    return hmac.new(session_seed(secret).encode(), b"csrf", hashlib.sha256).hexdigest()


def check_csrf(secret: str, given: str) -> None:
    """Raise 403 unless `given` was made for the holder of `secret`."""
    right = csrf_of(secret).encode()
    if not secret or not hmac.compare_digest(right, given.encode(errors="surrogatepass")):
        raise HTTPException(403, "the form is not from this session; go back and reload the page")


def set_cookie(request: Request, response: Response, name: str, value: str, **more: Any) -> None:
    """Set a cookie that no script reads and no other site sends, for the console's path alone."""
    fields: dict[str, Any] = {"httponly": True, "samesite": "strict", **more}
    secure = desk_of(request).options.secure_cookies
    response.set_cookie(name, value, path=_path(request), secure=secure, **fields)


def forget(request: Request, response: Response, *names: str) -> None:
    """Delete cookies."""
    for name in names:
        response.delete_cookie(name, path=_path(request), httponly=True, samesite="strict")


def _path(request: Request) -> str:
    return request.scope.get("root_path") or "/"
