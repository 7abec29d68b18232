"""The console: a FastAPI application of API and pages, its middleware, and its server process.

A topic is one module with its part of the API, `api`, and its pages, `pages`. Every address in a
page is relative.
"""

import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles
from sqlalchemy import Engine
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from modwatch.common.cache import TimedCache
from modwatch.common.connections import listen, server_config
from modwatch.review.console import (
    account,
    activity,
    decision_log,
    deliveries,
    dismissals,
    errors,
    people,
    queues,
    review,
    review_page,
    search,
    sign_in,
    team,
    telemetry,
)
from modwatch.review.console.request_context import ConsoleOptions, Context
from modwatch.review.console.telemetry import RequestTimer, Telemetry
from modwatch.review.people.oidc import Provider
from modwatch.review.queue.leases import HourlyLimit, LeaseLimit
from modwatch.review.queue.metrics import newest_model, shown_counts

#: In the order of the documentation.
_TOPICS: tuple[Any, ...] = (
    telemetry, review, account, activity, queues, team, dismissals, search, decision_log, people,
    deliveries, sign_in, review_page,
)  # fmt: skip

#: Maximum age of the name of the model in the page header, in seconds.
_MODEL_AGE = 60
#: Maximum age of the queue counts in the page header, in seconds.
_COUNTS_AGE = 10.0


def create_app(engine: Engine, options: ConsoleOptions | None = None) -> FastAPI:
    """Return the console on the migrated database of `engine`.

    Endpoints that use the database are plain functions, so that they run in threads. FastAPI's
    documentation pages load scripts from other sites and are off; the schema is at
    `/api/v1/openapi.json`.
    """
    app = FastAPI(
        title="Modwatch review",
        description="Lease comments, decide them, and follow the decisions.",
        version="1",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/v1/openapi.json",
    )
    options = options or ConsoleOptions()
    context = Context(
        engine=engine,
        options=options,
        lease_limit=LeaseLimit(engine, options.most_leases),
        hourly_limit=HourlyLimit(engine, options.lanes.limits),
    )
    app.state.context = context
    app.state.telemetry = Telemetry(context)
    app.state.queue_counts = TimedCache(lambda: shown_counts(engine), _COUNTS_AGE)
    app.state.model = TimedCache(lambda: newest_model(engine), _MODEL_AGE)
    app.state.provider = Provider(context.options.oidc) if context.options.oidc else None
    for topic in _TOPICS:
        for name in ("api", "pages"):
            if router := getattr(topic, name, None):
                # `include_router` would analyse the signature of every endpoint again.
                app.router.routes.extend(router.routes)
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static"), name="static")
    errors.install(app)
    app.add_middleware(BodyLimit)
    if options.secure_cookies:
        app.add_middleware(PrefixedCookies)
    app.add_middleware(SecurityHeaders)
    app.add_middleware(RequestTimer, telemetry=app.state.telemetry)
    return app


#: Time for running requests to finish at shutdown.
GRACE_SECONDS = 10


class _Server(uvicorn.Server):
    """A server that handles the signals that came before its own handlers were in place."""

    came: Sequence[int] = ()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self.should_exit |= bool(self.came)
        await super().startup(sockets)


def serve(
    host: str,
    port: int,
    engine: Engine,
    options: ConsoleOptions | None = None,
    came: Sequence[int] = (),
) -> None:
    """Serve the console at `host` and `port` until SIGTERM or SIGINT.

    Running requests finish first; then the process ends with that signal. `came` holds the signals
    that `signals_held` has put off. Raises `StackError` when the address is taken.
    """
    with listen(host, port, program="the console") as listener:
        console = server(engine, options)
        console.came = came
        console.run(sockets=[listener])


def server(engine: Engine, options: ConsoleOptions | None = None) -> _Server:
    """Return a server of the console that does not listen yet and logs no requests."""
    options = options or ConsoleOptions()
    return _Server(
        server_config(
            create_app(engine, options),
            grace_seconds=GRACE_SECONDS,
            trusted_proxies=options.trusted_proxies,
        )
    )


#: Maximum size of a request body in bytes.
BODY_LIMIT = 1_000_000

#: Own files only: no inline scripts or styles, no frames, no forms to other sites.
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)

_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class SecurityHeaders:
    """Adds the security headers to every response; only static files may be cached."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                if "/static/" not in scope["path"]:
                    headers["Cache-Control"] = "no-store"
            await send(message)

        await self._app(scope, receive, send_with_headers)


class PrefixedCookies:
    """Prefixes the names of our cookies over HTTPS, so that no other site or page sets them.

    Browsers accept `__Host-` from this host over HTTPS only, for all paths, and `__Secure-`, for a
    console on a path of its own, over HTTPS only. Without the prefix, a cookie is ignored.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        prefix = b"__Secure-" if scope.get("root_path") else b"__Host-"

        async def send_prefixed(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    (name, prefix + value if name.lower() == b"set-cookie" else value)
                    for name, value in message["headers"]
                ]
            await send(message)

        sent = b";".join(value for name, value in scope["headers"] if name == b"cookie").split(b";")
        ours = [one.strip().removeprefix(prefix) for one in sent if one.strip().startswith(prefix)]
        others = [header for header in scope["headers"] if header[0] != b"cookie"]
        headers = [*others, (b"cookie", b"; ".join(ours))]
        await self._app({**scope, "headers": headers}, receive, send_prefixed)


class BodyLimit:
    """Rejects bodies over `BODY_LIMIT` with 413, with or without `Content-Length`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        received = 0
        announced = Headers(scope=scope).get("content-length", "0") if "headers" in scope else "0"

        async def receive_limited() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > BODY_LIMIT or (announced.isdigit() and int(announced) > BODY_LIMIT):
                # Raised inside the application, so that the response has the format of all errors.
                raise HTTPException(413, f"the body is larger than {BODY_LIMIT} bytes; send less")
            return message

        await self._app(scope, receive_limited, send)
