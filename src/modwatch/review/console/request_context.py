"""What every request needs: the application's context, the signed-in person, CSRF and cookies.

Programs send a bearer token. Pages send the session cookie; a request that changes something also
sends the CSRF token, in the header `X-Modwatch-CSRF` or in the form field `csrf`.

    # API: bearer token, or cookie and header.
    ReviewerDep = Annotated[Moderator, Depends(require("review"))]
    # Pages: cookie; without one, a redirect to the sign-in page. Forms also check the field `csrf`.
    LeadSession = Annotated[Session, Depends(page_session("lead"))]
    LeadForm = Annotated[Session, Depends(form_session("lead"))]
"""

import datetime as dt
import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, HTTPException, Request, Response
from fastapi.security import APIKeyCookie, HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy import Engine

from modwatch.common.errors import AccessDeniedError
from modwatch.common.ledger.timestamps import Authority
from modwatch.data.lake.files import Folder
from modwatch.review.console.i18n import Locale, negotiate
from modwatch.review.console.preferences import Preferences, preferences_of
from modwatch.review.console.schemas import FormText
from modwatch.review.people.accounts import ACCOUNT, Moderator
from modwatch.review.people.oidc import OidcOptions
from modwatch.review.people.sessions import authenticate, session_seed
from modwatch.review.policy.tree import Policy, load_policy
from modwatch.review.queue.lanes import Lanes, load_lanes
from modwatch.review.queue.leases import HourlyLimit, LeaseLimit

SESSION_COOKIE = "modwatch_session"
CSRF_HEADER = "X-Modwatch-CSRF"
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, kw_only=True)
class ConsoleOptions:
    """Options of one installation."""

    #: The most items that one person holds at once; the page holds two in a tab.
    most_leases: int = 50
    #: Leads and admins who log in by password need a second factor.
    require_second_factor: bool = False
    #: Send cookies over HTTPS only; set it wherever the console is not on loopback.
    secure_cookies: bool = False
    #: Show why a comment was sent, for items that want one label of one person. Moderators who see
    #: the model's view tend to agree with it; off, all labels are blind.
    show_reasons: bool = False
    #: Labels of toxic comments need a policy code.
    require_code: bool = False
    policy: Policy = field(default_factory=load_policy)
    lanes: Lanes = field(default_factory=load_lanes)
    #: Where witnesses of the decision log are kept, and the authority that stamps them; None: none.
    witness_folder: Folder | None = None
    authority: Authority | None = None
    #: OpenID Connect provider for sign-in; None: passwords and tokens only.
    oidc: OidcOptions | None = None
    #: Addresses or networks of proxies whose `X-Forwarded-For` names the client.
    trusted_proxies: tuple[str, ...] = ()
    #: Maximum age of the queue metrics in `/metrics`.
    metrics_age: dt.timedelta = dt.timedelta(seconds=10)


@dataclass(frozen=True, kw_only=True)
class Context:
    """The database and options of one application."""

    engine: Engine
    options: ConsoleOptions
    lease_limit: LeaseLimit = field(repr=False)
    hourly_limit: HourlyLimit = field(repr=False)


class LoginRequiredError(Exception):
    """A page was requested without a valid session; the response redirects to the sign-in page."""


@dataclass(frozen=True, kw_only=True)
class Session:
    """A person signed in to the pages, and their request."""

    request: Request = field(repr=False)
    context: Context = field(repr=False)
    person: Moderator
    #: As in the cookie.
    token: str = field(repr=False)

    @property
    def csrf(self) -> str:
        """The CSRF token of this session."""
        return csrf_of(self.token)

    @property
    def engine(self) -> Engine:
        """The database."""
        return self.context.engine

    @property
    def policy(self) -> Policy:
        """The moderation policy."""
        return self.context.options.policy

    @property
    def preferences(self) -> Preferences:
        """The person's preferences."""
        return preferences_of(self.person.preferences)

    @property
    def locale(self) -> Locale:
        """The language of the page."""
        header = self.request.headers.get("accept-language")
        return negotiate(header, self.preferences.language)


def context_of(request: Request) -> Context:
    """Return the context of the application that serves `request`."""
    context: Context = request.app.state.context
    return context


ContextDep = Annotated[Context, Depends(context_of)]

_bearer = HTTPBearer(
    auto_error=False, scheme_name="token", description="An API token; an admin issues it."
)
_cookie = APIKeyCookie(
    name=SESSION_COOKIE,
    auto_error=False,
    scheme_name="session",
    description=f"The pages' session; changes also require the header {CSRF_HEADER}.",
)


def _person(
    request: Request,
    context: ContextDep,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
    token: Annotated[str | None, Depends(_cookie)],
) -> Moderator:
    """Return the owner of the bearer token or, without one, of the session."""
    if credentials is not None:
        return authenticate(context.engine, credentials.credentials)
    if not token:
        raise AccessDeniedError("no bearer token; send one in the Authorization header")
    person = authenticate(context.engine, token, "session")
    if request.method not in _SAFE:
        check_csrf(token, request.headers.get(CSRF_HEADER, ""))
    return person


PersonDep = Annotated[Moderator, Depends(_person)]


def require(scope: str) -> Callable[..., Moderator]:
    """Return the dependency of an API endpoint that needs `scope`; without it, 403."""

    def allowed(person: PersonDep) -> Moderator:
        check_scopes(person, scope)
        return person

    return allowed


def check_scopes(person: Moderator, *scopes: str) -> None:
    """Raise 403 unless `person` has one of `scopes`."""
    if not any(person.may(scope) for scope in scopes):
        raise HTTPException(
            403, f"this requires the scope {' or '.join(scopes)}; ask an admin for it"
        )


ReviewerDep = Annotated[Moderator, Depends(require("review"))]


def page_session(scope: str, *others: str) -> Callable[..., Session]:
    """Return the dependency of a page that needs one of the scopes.

    No valid session redirects to the sign-in page; a session without the scope gets 403.
    """

    def signed_in(request: Request, context: ContextDep) -> Session:
        token = request.cookies.get(SESSION_COOKIE, "")
        try:
            person = authenticate(context.engine, token, "session")
        except AccessDeniedError:
            raise LoginRequiredError from None
        check_scopes(person, scope, *others)
        return Session(request=request, context=context, person=person, token=token)

    return signed_in


def form_session(scope: str, *others: str) -> Callable[..., Session]:
    """Return the dependency of a form: `page_session`, and the field `csrf` must be valid."""

    def submitted(
        session: Annotated[Session, Depends(page_session(scope, *others))], csrf: FormText
    ) -> Session:
        check_csrf(session.token, csrf)
        return session

    return submitted


AccountSession = Annotated[Session, Depends(page_session(ACCOUNT))]
ReviewSession = Annotated[Session, Depends(page_session("review"))]
LeadSession = Annotated[Session, Depends(page_session("lead"))]
AccountForm = Annotated[Session, Depends(form_session(ACCOUNT))]
ReviewForm = Annotated[Session, Depends(form_session("review"))]
LeadForm = Annotated[Session, Depends(form_session("lead"))]


def csrf_of(secret: str) -> str:
    """Return the CSRF token of `secret`; rotating a session's token does not change it."""
    return hmac.new(session_seed(secret).encode(), b"csrf", hashlib.sha256).hexdigest()


def check_csrf(secret: str, given: str) -> None:
    """Raise 403 unless `given` is the CSRF token of `secret`."""
    right = csrf_of(secret).encode()
    if not secret or not hmac.compare_digest(right, given.encode(errors="surrogatepass")):
        raise HTTPException(403, "the form is not from this session; go back and reload the page")


def set_cookie(request: Request, response: Response, name: str, value: str, **more: Any) -> None:
    """Set a cookie for the console's path: HTTP only, same site."""
    fields: dict[str, Any] = {"httponly": True, "samesite": "strict", **more}
    path, secure = request.scope.get("root_path") or "/", context_of(request).options.secure_cookies
    response.set_cookie(name, value, path=path, secure=secure, **fields)


def delete_cookies(request: Request, response: Response, *names: str) -> None:
    """Delete cookies."""
    for name in names:
        set_cookie(request, response, name, "", max_age=0, expires=0)


def client_address(request: Request) -> str:
    """Return the address of the client, to limit sign-in attempts; empty if unknown."""
    return request.client.host if request.client else ""
