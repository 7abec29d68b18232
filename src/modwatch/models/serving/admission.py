"""Which requests an application still takes: all, or, while it drains, none."""

import asyncio

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

#: Is answered while the application drains: the process lives.
_LIVE = "/v2/health/live"
_RETRY_SECONDS = "1"


class Admission:
    """An ASGI application that hands requests to another until it drains.

    While it drains, new requests are answered with 503 and `Retry-After`, and those that it had
    taken before are answered.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._taken = 0
        self._draining = False
        self._idle = asyncio.Event()
        self._idle.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif self._draining and scope["path"] != _LIVE:
            error = {"error": "the server shuts down; send the request again"}
            headers = {"Retry-After": _RETRY_SECONDS}
            await JSONResponse(error, 503, headers=headers)(scope, receive, send)
        else:
            await self._answer(scope, receive, send)

    async def drain(self) -> None:
        """Take no more requests; return when all that were taken are answered."""
        self._draining = True
        await self._idle.wait()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._taken += 1
        self._idle.clear()
        try:
            await self._app(scope, receive, send)
        finally:
            self._taken -= 1
            if not self._taken:
                self._idle.set()
