"""What Ray's proxies answer while no replica is ready: 503, which clients repeat.

Without it they answer 404 until they know the application, and nothing until a replica is ready.
Ray calls `middlewares` in each proxy if RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH names it.
"""

import asyncio

from ray import serve
from ray.serve.schema import ReplicaState
from starlette.middleware import Middleware
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: Paths of Ray's own answers.
_OWN = "/-/"
_AGAIN = (b"retry-after", b"1")


def middlewares() -> list[Middleware]:
    """Return what a proxy passes requests through."""
    return [Middleware(ReadyFirst)]


class ReadyFirst:
    """An ASGI application that hands requests to Ray's when a replica is ready.

    A 404 of the proxy itself is 503, too: it knows no application, or no more.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._ready = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 404:
                headers = list(message["headers"])
                # The application answers in JSON.
                if any(name == b"content-type" and b"json" not in kind for name, kind in headers):
                    message = {**message, "status": 503, "headers": [*headers, _AGAIN]}
            await send(message)

        if scope["type"] != "http" or scope["path"].startswith(_OWN):
            await self._app(scope, receive, send)
        elif await self._is_ready():
            await self._app(scope, receive, answer)
        else:
            error = {"error": "no replica is ready yet; send the request again"}
            await JSONResponse(error, 503, headers={"Retry-After": "1"})(scope, receive, send)

    async def _is_ready(self) -> bool:
        """Return whether a replica has been ready; Ray keeps requests for others that follow."""
        self._ready = self._ready or await asyncio.to_thread(_replica_runs)
        return self._ready


def _replica_runs() -> bool:
    return any(
        deployment.replica_states.get(ReplicaState.RUNNING, 0) > 0
        for application in serve.status().applications.values()
        for deployment in application.deployments.values()
    )
