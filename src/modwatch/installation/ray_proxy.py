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
                headers = dict(message["headers"])
                if b"json" not in headers.get(b"content-type", b""):  # as the application answers
                    headers[b"retry-after"] = b"1"
                    message = {**message, "status": 503, "headers": [*headers.items()]}
            await send(message)

        if scope["type"] != "http" or scope["path"].startswith("/-/"):  # Ray's own paths
            await self._app(scope, receive, send)
        elif self._ready or await asyncio.to_thread(_replica_runs):
            self._ready = True  # Ray keeps requests for others that follow
            await self._app(scope, receive, answer)
        else:
            error = {"error": "no replica is ready yet; send the request again"}
            await JSONResponse(error, 503, headers={"Retry-After": "1"})(scope, receive, send)


def _replica_runs() -> bool:
    return any(
        deployment.replica_states.get(ReplicaState.RUNNING, 0) > 0
        for application in serve.status().applications.values()
        for deployment in application.deployments.values()
    )
