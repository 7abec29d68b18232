"""A model server as one process, on one device."""

import asyncio
import socket

import uvicorn

from modwatch.connections import LimitedProtocol
from modwatch.errors import StackError
from modwatch.serving.app import create_app
from modwatch.serving.models import ServedModel
from modwatch.serving.telemetry import Telemetry

#: Time for running requests to finish at shutdown.
GRACE_SECONDS = 60


def serve(
    host: str, port: int, model: ServedModel, telemetry: Telemetry, *, token: str | None = None
) -> None:
    """Serve `model` at `host` and `port` until SIGTERM or SIGINT.

    The current version is loaded before the first request is accepted. Running requests finish
    first; then the process ends with that signal.

    Raises:
        ModwatchError: there is no current version, or it cannot be loaded.
        StackError: the address is taken.
    """
    with listen(host, port) as listener:
        config = uvicorn.Config(
            create_app(model, telemetry, token=token),
            http=LimitedProtocol,
            proxy_headers=False,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        asyncio.run(_serve(model, uvicorn.Server(config), listener))


async def _serve(model: ServedModel, server: uvicorn.Server, listener: socket.socket) -> None:
    await model.refresh()
    await server.serve(sockets=[listener])


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 picks a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as exc:
        raise StackError(
            f"the model server cannot listen on {host}:{port}; stop the program that uses the "
            "port, or choose another"
        ) from exc
