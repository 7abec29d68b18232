"""Every error as an answer: the same JSON for programs, a plain page for people."""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import urlencode

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse
from starlette._utils import get_route_path
from starlette.exceptions import HTTPException

from modwatch.errors import (
    AccessDeniedError,
    DatabaseError,
    ItemNotFoundError,
    LeaseConflictError,
    ModwatchError,
    QueueError,
    ThrottledError,
)
from modwatch.review.console.desk import SESSION, LoginRequiredError
from modwatch.review.console.render import ErrorPage, OnwardPage, render
from modwatch.review.console.shapes import ErrorContent, ErrorShape

logger = logging.getLogger(__name__)

#: The page's script sends it: its errors are JSON.
FRAGMENT_HEADER = "x-modwatch-fragment"

#: The most particular first.
_ANSWERS: tuple[tuple[type[ModwatchError], int, str], ...] = (
    (ItemNotFoundError, 404, "item_not_found"),
    (LeaseConflictError, 409, "lease_conflict"),
    (ThrottledError, 429, "throttled"),
    (AccessDeniedError, 401, "access_denied"),
    (QueueError, 422, "invalid_request"),
    (DatabaseError, 503, "database_unavailable"),
    (ModwatchError, 500, "internal_error"),
)

#: The framework's own words name no remedy.
_UNREADABLE = "the body of the request cannot be read; send it in UTF-8, in the form described"

#: Of a request that cannot be, so many problems are told, each name cut to so many characters: a
#: client chooses how many fields it sends and what it calls them.
_PROBLEMS, _NAME = 10, 60

_EXTRA_HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "5"}}


def install(app: FastAPI) -> None:
    """Make every error of `app` answer in one shape."""
    app.add_exception_handler(ModwatchError, _refused)
    app.add_exception_handler(LoginRequiredError, _login_required)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Exception, _defect)


async def _refused(request: Request, error: Exception) -> Response:
    for kind, status, code in _ANSWERS:
        if isinstance(error, kind):
            wait = getattr(error, "retry_after", None)
            headers = {} if wait is None else {"Retry-After": str(wait)}
            return _answer(request, status, code, str(error), headers)
    raise error


async def _login_required(request: Request, error: Exception) -> Response:  # noqa: ARG001
    """Lead a person to the log-in and back; tell a script that the session is over."""
    if FRAGMENT_HEADER in request.headers:
        return _answer(request, 401, "access_denied", "your session has ended; log in again")
    if _came_from_elsewhere(request):
        return render(OnwardPage(), request)
    path = get_route_path(request.scope).strip("/")
    query = {"next": path} if path and request.method == "GET" else {}
    if SESSION in request.cookies:
        query["notice"] = "ended"
    root = "../" * path.count("/") or "./"
    return RedirectResponse(f"{root}login{'?' if query else ''}{urlencode(query)}", 303)


def _came_from_elsewhere(request: Request) -> bool:
    """Return whether a link of another site led here: the browser keeps strict cookies back then.

    The same address once more, asked for by our own page, comes with them.
    """
    elsewhere = request.headers.get("sec-fetch-site") in ("cross-site", "same-site")
    return elsewhere and request.method == "GET" and SESSION not in request.cookies


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for it alone
    code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "_").replace("-", "_")
    message = _UNREADABLE if error.status_code == 400 else str(error.detail)
    return _answer(request, error.status_code, code, message, error.headers)


async def _invalid(request: Request, error: Exception) -> Response:
    """Name the fields, never what stood in them."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for it alone
    problems = [
        f"{'.'.join(str(part)[:_NAME] for part in each['loc'])}: {each['msg']}"
        for each in error.errors()[:_PROBLEMS]
    ]
    return _answer(request, 422, "invalid_request", "; ".join(problems))


async def _defect(request: Request, error: Exception) -> Response:
    logger.error(
        "A request failed by a defect of the console.",
        extra={"event": "console_defect", "path": request.url.path, "kind": type(error).__name__},
    )
    return _answer(request, 500, "internal_error", "something broke on our side; try again")


def _answer(
    request: Request,
    status: int,
    code: str,
    message: str,
    headers: Mapping[str, str] | None = None,
) -> Response:
    headers = {**_EXTRA_HEADERS.get(status, {}), **(headers or {})}
    accepts = request.headers.get("accept", "")
    by_script = "/api/" in request.scope["path"] or FRAGMENT_HEADER in request.headers
    if by_script or "text/html" not in accepts:
        shape = ErrorShape(error=ErrorContent(code=code, message=message))
        return JSONResponse(shape.model_dump(), status, headers)
    page = ErrorPage(status=status, code=code, message=message)
    return render(page, request, status=status, headers=headers)
