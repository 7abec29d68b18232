"""Error responses: JSON in one format for programs, a page for people."""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import urlencode

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse
from starlette._utils import get_route_path
from starlette.exceptions import HTTPException

from modwatch.common.errors import (
    AccessDeniedError,
    DatabaseError,
    ItemNotFoundError,
    LeaseConflictError,
    LedgerError,
    ModwatchError,
    QueueError,
    ThrottledError,
    TooManyActionsError,
    TooManyLeasesError,
)
from modwatch.review.console.render import render_public
from modwatch.review.console.request_context import SESSION_COOKIE, LoginRequiredError
from modwatch.review.console.schemas import ErrorContent, ErrorSchema

logger = logging.getLogger(__name__)

#: Sent by the page's script, which gets errors as JSON.
FRAGMENT_HEADER = "x-modwatch-fragment"

#: The most specific first.
_RESPONSES: tuple[tuple[type[ModwatchError], int, str], ...] = (
    (ItemNotFoundError, 404, "item_not_found"),
    (LeaseConflictError, 409, "lease_conflict"),
    (ThrottledError, 429, "throttled"),
    (TooManyLeasesError, 429, "too_many_leases"),
    (TooManyActionsError, 429, "too_many_actions"),
    (AccessDeniedError, 401, "access_denied"),
    (QueueError, 422, "invalid_request"),
    (LedgerError, 422, "invalid_request"),
    (DatabaseError, 503, "database_unavailable"),
    (ModwatchError, 500, "internal_error"),
)

#: The framework's message names no remedy.
_UNREADABLE = "the request body cannot be read; send it in UTF-8, in the documented format"

#: What people read of a fault of the installation; the log has the cause.
_MESSAGES = {
    503: "the review database does not answer; try again in a moment",
    500: "internal error; try again",
}

#: Limits on what a message about an invalid request repeats: clients choose number and names of the
#: fields that they send.
_MAX_PROBLEMS, _MAX_NAME = 10, 60

_EXTRA_HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "5"}}


def install(app: FastAPI) -> None:
    """Give all error responses of `app` one format."""
    app.add_exception_handler(ModwatchError, _modwatch_error)
    app.add_exception_handler(LoginRequiredError, _login_required)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(Exception, _internal_error)


async def _modwatch_error(request: Request, error: Exception) -> Response:
    for kind, status, code in _RESPONSES:
        if isinstance(error, kind):
            wait = getattr(error, "retry_after", None)
            headers = {} if wait is None else {"Retry-After": str(wait)}
            message = str(error)
            if status >= 500:  # it names paths, addresses and variables, for those who operate
                logger.error(message, extra={"event": code})
                message = _MESSAGES[status]
            return _respond(request, status, code, message, headers)
    raise error


async def _login_required(request: Request, error: Exception) -> Response:  # noqa: ARG001
    """Redirect people to the sign-in page and back; answer scripts with 401."""
    if FRAGMENT_HEADER in request.headers:
        return _respond(request, 401, "access_denied", "your session has expired; sign in again")
    if _came_from_another_site(request):
        return render_public(request, "redirect.html", to="")
    path = get_route_path(request.scope).strip("/")
    query = {"next": path} if path and request.method == "GET" else {}
    if SESSION_COOKIE in request.cookies:
        query["notice"] = "ended"
    root = "../" * path.count("/") or "./"
    return RedirectResponse(f"{root}login{'?' if query else ''}{urlencode(query)}", 303)


def _came_from_another_site(request: Request) -> bool:
    """Return whether a link on another site led here, so that the browser withheld strict cookies.

    A second request for the same address, from a page of ours, has them.
    """
    another_site = request.headers.get("sec-fetch-site") in ("cross-site", "same-site")
    return another_site and request.method == "GET" and SESSION_COOKIE not in request.cookies


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for it alone
    code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "_").replace("-", "_")
    message = _UNREADABLE if error.status_code == 400 else str(error.detail)
    return _respond(request, error.status_code, code, message, error.headers)


async def _validation_error(request: Request, error: Exception) -> Response:
    """Name the invalid fields, never their content."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for it alone
    problems = [
        f"{'.'.join(str(part)[:_MAX_NAME] for part in problem['loc'])}: {problem['msg']}"
        for problem in error.errors()[:_MAX_PROBLEMS]
    ]
    return _respond(request, 422, "invalid_request", "; ".join(problems))


async def _internal_error(request: Request, error: Exception) -> Response:
    logger.error(
        "A request failed because of a bug in the console.",
        extra={"event": "console_defect", "path": request.url.path, "kind": type(error).__name__},
    )
    return _respond(request, 500, "internal_error", _MESSAGES[500])


def _respond(
    request: Request, status: int, code: str, message: str, headers: Mapping[str, str] | None = None
) -> Response:
    headers = {**_EXTRA_HEADERS.get(status, {}), **(headers or {})}
    accepts = request.headers.get("accept", "")
    by_script = "/api/" in request.scope["path"] or FRAGMENT_HEADER in request.headers
    if by_script or "text/html" not in accepts:
        content = ErrorSchema(error=ErrorContent(code=code, message=message))
        return JSONResponse(content.model_dump(), status, headers)
    page = render_public(request, "error.html", status, status=status, code=code, message=message)
    page.headers.update(headers)
    return page
