"""The console as a server process of its own."""

import socket

import uvicorn
from sqlalchemy import Engine

from modwatch.errors import StackError
from modwatch.review.console.app import create_app
from modwatch.review.console.connections import LimitedProtocol
from modwatch.review.console.request_context import ConsoleOptions

#: Time for running requests to finish at shutdown.
GRACE_SECONDS = 10


def serve(host: str, port: int, engine: Engine, options: ConsoleOptions | None = None) -> None:
    """Serve the console at `host` and `port` until SIGTERM or SIGINT.

    Running requests finish first; then the process ends with that signal. Raises `StackError` when
    the address is taken.
    """
    with listen(host, port) as listener:
        server(engine, options).run(sockets=[listener])


def server(engine: Engine, options: ConsoleOptions | None = None) -> uvicorn.Server:
    """Return a server of the console that does not listen yet and logs no requests."""
    options = options or ConsoleOptions()
    return uvicorn.Server(
        uvicorn.Config(
            create_app(engine, options),
            http=LimitedProtocol,
            # uvicorn would believe every client of the loopback interface.
            proxy_headers=bool(options.trusted_proxies),
            forwarded_allow_ips=list(options.trusted_proxies),
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
    )


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 picks a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as exc:
        raise StackError(
            f"the console cannot listen on {host}:{port}; stop the program that uses the port, "
            "or choose another"
        ) from exc
