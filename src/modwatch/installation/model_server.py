"""The model server of an installation: one process, on one device."""

import asyncio
import logging
import os
import secrets
import socket

import uvicorn
from fastapi import FastAPI

from modwatch.common.connections import listen, server_config
from modwatch.installation.resources import Resources
from modwatch.models.serving.app import create_app
from modwatch.models.serving.models import ServedModel
from modwatch.models.serving.telemetry import Telemetry

_log = logging.getLogger(__name__)
#: For Ray's proxies; `ray_proxy` cannot be imported here, before Ray is prepared.
_MIDDLEWARES = "modwatch.installation.ray_proxy.middlewares"
#: Time for running requests to finish at shutdown.
GRACE_SECONDS = 60


def open_server(resources: Resources, telemetry: Telemetry) -> tuple[ServedModel, FastAPI]:
    """Return the model that `resources` name, not loaded yet, and what serves it."""
    model = ServedModel(
        resources.registry.name,
        current=resources.registry.champion_version,
        open_version=resources.local_scorer,
        report=telemetry.batch_scored,
    )
    telemetry.watch(lambda: model.waiting)
    token = resources.settings.scorer_token
    secret = None if token is None else token.get_secret_value()
    return model, create_app(model, telemetry, token=secret)


def prepare_ray(address: str | None) -> None:
    """Set variables of Ray that are not set, for a cluster at `address`, or None for one here.

    Nothing is reported to Ray's makers. A Ray of this machine alone listens on the loopback
    interface only, and serves only the processes that it starts.
    """
    defaults = {"RAY_USAGE_STATS_ENABLED": "0"}
    if address is None:
        defaults["RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH"] = _MIDDLEWARES
        # On Linux, too, this makes 127.0.0.1 the address of the node, in place of the machine's.
        defaults["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
        # Otherwise Ray would keep a token in the home folder.
        defaults |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    for name, value in defaults.items():
        os.environ.setdefault(name, value)


def serve(host: str, port: int, model: ServedModel, app: FastAPI) -> None:
    """Serve a model by its application at `host` and `port` until SIGTERM or SIGINT.

    The current version is loaded before the first request is accepted. Running requests finish
    first; then the process ends with that signal.

    Raises:
        ModwatchError: there is no current version, or it cannot be loaded.
        StackError: the address is taken.
    """
    with listen(host, port, program="the model server") as listener:
        server = uvicorn.Server(server_config(app, grace_seconds=GRACE_SECONDS))
        asyncio.run(_serve(model, server, listener))


async def _serve(model: ServedModel, server: uvicorn.Server, listener: socket.socket) -> None:
    await model.refresh()
    _log.info("Listening on http://%s:%d", *listener.getsockname()[:2])
    await server.serve(sockets=[listener])
