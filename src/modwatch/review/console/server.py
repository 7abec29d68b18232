"""The console as a server process of its own."""

import socket
from collections.abc import Sequence

import uvicorn
from sqlalchemy import Engine

from modwatch.common.connections import listen, server_config
from modwatch.review.console.app import create_app
from modwatch.review.console.request_context import ConsoleOptions

#: Time for running requests to finish at shutdown.
GRACE_SECONDS = 10


class _Server(uvicorn.Server):
    """A server that heeds the signals that came before its own handlers were in place."""

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
