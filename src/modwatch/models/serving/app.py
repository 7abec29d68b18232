"""The HTTP application: the Open Inference Protocol V2 over a `ServedModel`."""

import asyncio
import hmac
import logging
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from modwatch.common.connections import BODY_SECONDS
from modwatch.common.errors import ModwatchError, NoChampionError
from modwatch.common.installed import version as installed_version
from modwatch.models.serving import v2
from modwatch.models.serving.batching import OverloadedError
from modwatch.models.serving.models import ServedModel
from modwatch.models.serving.telemetry import Telemetry
from modwatch.models.serving.v2 import RequestError

logger = logging.getLogger(__name__)

#: Most bytes, compressed and not, and texts of a request.
BODY_LIMIT = 8_000_000
MOST_TEXTS = 10_000
#: Values of `Content-Encoding`.
_COMPRESSED = ("gzip", "deflate")

#: Between two looks at the alias.
_FOLLOW_SECONDS = 10.0

Handler = Callable[[Request], Awaitable[Response]]
Result = TypeVar("Result")


def create_app(model: ServedModel, telemetry: Telemetry, *, token: str | None = None) -> FastAPI:
    """Return the application.

    Args:
        model: what is served; its first version is loaded when the application starts.
        telemetry: its metrics, which `/metrics` shows unless they are read elsewhere.
        token: that requests must bear, except for health; None: all are allowed.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        following = asyncio.create_task(model.follow(_FOLLOW_SECONDS))
        yield
        following.cancel()
        await model.close()

    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    _add_health(app, model)
    _add_model(app, model, telemetry, _bearing(token))
    app.exception_handler(RequestError)(_refused)
    app.exception_handler(HTTPException)(_refused)
    return app


def _add_health(app: FastAPI, model: ServedModel) -> None:
    @app.get("/v2/health/live")
    async def live() -> dict[str, bool]:
        return {"live": True}

    @app.get("/v2/health/ready")
    async def ready() -> Response:
        return JSONResponse({"ready": model.version is not None}, 200 if model.version else 503)

    @app.get("/v2")
    async def server() -> dict[str, Any]:
        return {"name": "modwatch", "version": installed_version(), "extensions": v2.EXTENSIONS}


def _add_model(
    app: FastAPI, model: ServedModel, telemetry: Telemetry, allow: Callable[[Request], None]
) -> None:
    async def ready(request: Request) -> Response:
        _named(request, model)
        wanted = request.path_params.get("version", model.version)
        loaded = wanted is not None and wanted in model.versions
        return JSONResponse({"name": model.name, "ready": loaded}, 200 if loaded else 503)

    async def metadata(request: Request) -> Response:
        _named(request, model)
        _, batcher = await model.get(request.path_params.get("version"))
        return JSONResponse(v2.metadata(model.name, model.versions, batcher.scorer.columns))

    async def infer(request: Request) -> Response:
        _named(request, model)
        began = time.perf_counter()
        body = await _body(request)
        version, batcher = await model.get(request.path_params.get("version"))
        wanted = v2.parse_request(
            body,
            request.headers.get(v2.JSON_LENGTH),
            most=MOST_TEXTS,
            columns=batcher.scorer.columns,
        )
        try:
            found = await _while_connected(request, batcher.score(wanted.texts))
        except OverloadedError as exc:
            telemetry.refused()
            headers = {"Retry-After": str(exc.seconds)}
            return JSONResponse({"error": str(exc)}, 429, headers=headers)
        content, headers = v2.response(
            wanted,
            found,
            model=model.name,
            version=version,
            threshold=batcher.scorer.threshold,
        )
        telemetry.answered(time.perf_counter() - began)
        return Response(content, headers=headers)

    async def metrics(_: Request) -> Response:
        page = telemetry.page()
        if page is None:
            raise RequestError("the nodes of the cluster export the metrics of their replicas", 404)
        return Response(page, media_type=CONTENT_TYPE_LATEST)

    guarded = partial(_guarded, telemetry=telemetry, allow=allow)
    for place in ("/v2/models/{model}", "/v2/models/{model}/versions/{version}"):
        app.add_route(place, guarded(metadata), ["GET"])
        app.add_route(f"{place}/ready", guarded(ready), ["GET"])
        app.add_route(f"{place}/infer", guarded(infer), ["POST"])
    app.add_route("/metrics", guarded(metrics), ["GET"])


def _guarded(
    handler: Handler, *, telemetry: Telemetry, allow: Callable[[Request], None]
) -> Handler:
    """Return a handler that serves whom `allow` lets, and answers every failure with an error."""

    async def guard(request: Request) -> Response:
        allow(request)
        try:
            return await handler(request)
        except (RequestError, HTTPException):
            raise
        except ClientDisconnect:
            return Response()  # the client has gone
        except NoChampionError as exc:
            raise RequestError(str(exc), 404 if "version" in request.path_params else 503) from exc
        except Exception as exc:  # noqa: BLE001 - one request's failure is its own
            telemetry.failed()
            # The words of other errors, and their tracebacks, may quote a comment.
            reason = str(exc) if isinstance(exc, ModwatchError) else type(exc).__name__
            logger.error("A request failed: %s", reason, extra={"event": "request_failed"})  # noqa: TRY400
            raise RequestError("the model failed; see the log of the server", 500) from None

    return guard


def _bearing(token: str | None) -> Callable[[Request], None]:
    """Return a check that raises RequestError unless a request bears the token."""

    def check(request: Request) -> None:
        if token is None:
            return
        given = request.headers.get("Authorization", "")
        if not hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
            raise RequestError("a token is missing or wrong; send Authorization: Bearer …", 401)

    return check


def _named(request: Request, model: ServedModel) -> None:
    if request.path_params["model"] != model.name:
        raise RequestError(f"the model is called {model.name}", 404)


async def _body(request: Request) -> bytes:
    """Return the body of a request, decompressed as far as the limit allows."""
    encoding = request.headers.get("Content-Encoding", "identity").lower()
    if encoding not in ("identity", *_COMPRESSED):
        raise RequestError("the body must be compressed by gzip or deflate, or not at all", 415)
    # It reads both formats.
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 32) if encoding in _COMPRESSED else None
    parts, received, size = [], 0, 0
    try:
        async with asyncio.timeout(BODY_SECONDS):  # a proxy may wait longer than `connections`
            async for part in request.stream():
                received += len(part)
                if unpacking is not None and received <= BODY_LIMIT:
                    part = unpacking.decompress(part, BODY_LIMIT + 1 - size)
                size += len(part)
                if max(received, size) > BODY_LIMIT:
                    raise RequestError(
                        f"the request is larger than {BODY_LIMIT:,} bytes; send less", 413
                    )
                parts.append(part)
    except TimeoutError as exc:
        raise RequestError("the request did not arrive in time; send it again", 408) from exc
    except zlib.error as exc:
        raise RequestError(f"the body is not valid {encoding}") from exc
    if unpacking is not None and (not unpacking.eof or unpacking.unused_data):
        raise RequestError(f"the body is not one whole {encoding} stream")
    return b"".join(parts)


async def _while_connected(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """Return the result of `work`, which is cancelled when the client closes the connection.

    Clients that ran out of time ask again: without this, their texts would be scored twice.
    """

    async def left() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    tasks = doing, leaving = asyncio.create_task(work), asyncio.create_task(left())
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            raise ClientDisconnect
        return doing.result()
    finally:
        doing.cancel()
        leaving.cancel()


async def _refused(_: Request, exc: Exception) -> Response:
    """Return an error in the protocol's form, one of the framework, too."""
    if isinstance(exc, HTTPException):
        return JSONResponse({"error": str(exc.detail)}, exc.status_code)
    return JSONResponse({"error": str(exc)}, exc.status if isinstance(exc, RequestError) else 500)
