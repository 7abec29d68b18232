"""Runs the console as a process of its own."""

import socket

import uvicorn
from sqlalchemy import Engine

from modwatch.errors import StackError
from modwatch.review.console.app import create_app
from modwatch.review.console.desk import ConsoleOptions

#: Requests under way at a stop have this long to end.
GRACE_SECONDS = 10


def serve(host: str, port: int, engine: Engine, options: ConsoleOptions | None = None) -> None:
    """Serve the console at `host` and `port` until SIGTERM or SIGINT.

    What is under way is ended first; then the process dies of that signal. Raises `StackError`
    when the address is taken.
    """
    with listen(host, port) as listener:
        server(engine, options).run(sockets=[listener])


def server(engine: Engine, options: ConsoleOptions | None = None) -> uvicorn.Server:
    """Return a server of the console that does not listen yet; requests are not logged."""
    return uvicorn.Server(
        uvicorn.Config(
            create_app(engine, options),
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
    )


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 takes any free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as exc:
        raise StackError(
            f"the console cannot listen on {host}:{port}; end the program that does, or choose "
            "another port"
        ) from exc
