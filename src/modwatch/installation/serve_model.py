"""A model server as one process, on one device."""

import asyncio
import logging
import socket

import uvicorn

from modwatch.common.connections import listen, server_config
from modwatch.installation.model_server import ModelServer
from modwatch.models.serving.models import ServedModel

_log = logging.getLogger(__name__)

#: Time for running requests to finish at shutdown.
GRACE_SECONDS = 60


def serve(host: str, port: int, served: ModelServer) -> None:
    """Serve at `host` and `port` until SIGTERM or SIGINT.

    The current version is loaded before the first request is accepted. Running requests finish
    first; then the process ends with that signal.

    Raises:
        ModwatchError: there is no current version, or it cannot be loaded.
        StackError: the address is taken.
    """
    with listen(host, port, program="the model server") as listener:
        server = uvicorn.Server(server_config(served.app, grace_seconds=GRACE_SECONDS))
        asyncio.run(_serve(served.model, server, listener))


async def _serve(model: ServedModel, server: uvicorn.Server, listener: socket.socket) -> None:
    await model.refresh()
    _log.info("Listening on http://%s:%d", *listener.getsockname()[:2])
    await server.serve(sockets=[listener])
