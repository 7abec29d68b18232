"""Every error as an answer: the same JSON for programs, a plain page for people."""

import logging
from collections.abc import Mapping
from http import HTTPStatus

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from modwatch.errors import (
    AccessDeniedError,
    DatabaseError,
    ItemNotFoundError,
    LeaseConflictError,
    ModwatchError,
    QueueError,
)
from modwatch.review.console.render import ErrorPage, render
from modwatch.review.console.shapes import ErrorContent, ErrorShape

logger = logging.getLogger(__name__)

#: The most particular first.
_ANSWERS: tuple[tuple[type[ModwatchError], int, str], ...] = (
    (ItemNotFoundError, 404, "item_not_found"),
    (LeaseConflictError, 409, "lease_conflict"),
    (AccessDeniedError, 401, "access_denied"),
    (QueueError, 422, "invalid_request"),
    (DatabaseError, 503, "database_unavailable"),
    (ModwatchError, 500, "internal_error"),
)

_EXTRA_HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "5"}}


def install(app: FastAPI) -> None:
    """Make every error of `app` answer in one shape."""
    app.add_exception_handler(ModwatchError, _refused)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Exception, _defect)


async def _refused(request: Request, error: Exception) -> Response:
    for kind, status, code in _ANSWERS:
        if isinstance(error, kind):
            return _answer(request, status, code, str(error))
    raise error


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for it alone
    code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "_").replace("-", "_")
    return _answer(request, error.status_code, code, str(error.detail), error.headers)


async def _invalid(request: Request, error: Exception) -> Response:
    """Name the fields, never what stood in them."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for it alone
    problems = [
        f"{'.'.join(str(part) for part in each['loc'])}: {each['msg']}" for each in error.errors()
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
    if request.scope["path"].rpartition("/api/")[1] or "text/html" not in request.headers.get(
        "accept", ""
    ):
        shape = ErrorShape(error=ErrorContent(code=code, message=message))
        return JSONResponse(shape.model_dump(), status, headers)
    return render(ErrorPage(status=status, code=code, message=message), status, headers)
