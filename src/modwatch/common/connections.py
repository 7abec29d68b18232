"""Connections that do not send or read what they should are closed.

uvicorn closes a connection that is idle after a response, but waits without end for a request that
was begun, for the first one of a connection, and for a client that does not read the response. A
few hundred such connections would use up the process (slow loris).
"""

import asyncio
import ipaddress
import socket
from collections.abc import Sequence
from typing import Any

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from modwatch.common.errors import StackError

#: Seconds from the connection, or from the last response, to the end of a request's headers.
HEADER_SECONDS = 10.0

#: Seconds for the body of a request, which may have some megabytes.
BODY_SECONDS = 30.0

#: Seconds in which a client reads some of a response that it has fallen behind with.
READ_SECONDS = 60.0

#: Connections of a process, below the usual limit of 1,024 open files, and of an address. One more
#: closes the oldest that has not sent its request; if there is none, it is closed itself.
MOST_CONNECTIONS = 800
MOST_OF_AN_ADDRESS = 200


class LimitedProtocol(H11Protocol):
    """HTTP/1.1 with limits on time and on the number of connections.

    The proxies that `forwarded_allow_ips` names may have any number of connections.
    """

    #: Whether the request that is due is in its headers or its body; None: none is due.
    _due: str | None = None
    _timer: asyncio.TimerHandle | None = None
    _reading: asyncio.TimerHandle | None = None
    #: On the loop's clock.
    _since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request; make room for it if there are too many connections."""
        super().connection_made(transport)
        self._expect("headers", HEADER_SECONDS)
        self._make_room()

    def data_received(self, data: bytes) -> None:
        """Handle part of a request."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        for timer in (self._timer, self._reading):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Begin to wait for a client that has fallen behind with reading."""
        super().pause_writing()
        self._reading = self.loop.call_later(READ_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop waiting for the client to read."""
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None
        super().resume_writing()

    def _watch(self) -> None:
        state = self.conn.their_state
        if state is h11.IDLE:
            self._expect("headers", HEADER_SECONDS)
        elif state is h11.SEND_BODY:
            self._expect("body", BODY_SECONDS)
        else:
            self._expect(None, 0.0)

    def _expect(self, due: str | None, seconds: float) -> None:
        """Wait for `due` from now on, unless that is so already."""
        if due == self._due:
            return
        self._due, self._since = due, self.loop.time()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if due is None else self.loop.call_later(seconds, self._close)

    def _close(self) -> None:
        self.transport.abort()

    def _make_room(self) -> None:
        protocols = [one for one in self.connections if isinstance(one, LimitedProtocol)]
        if len(protocols) > MOST_CONNECTIONS:
            self._close_one_of(protocols)
        if self.client is None or self._is_proxy(self.client[0]):
            return
        same = [one for one in protocols if one.client and one.client[0] == self.client[0]]
        if len(same) > MOST_OF_AN_ADDRESS:
            self._close_one_of(same)

    def _close_one_of(self, connections: "list[LimitedProtocol]") -> None:
        waiting = [one for one in connections if one._due is not None and one is not self]
        min(waiting, key=lambda one: one._since, default=self)._close()

    def _is_proxy(self, address: str) -> bool:
        trusted: Any = self.config.forwarded_allow_ips if self.config.proxy_headers else ()
        parsed = ipaddress.ip_address(address.partition("%")[0])
        return any(parsed in ipaddress.ip_network(network) for network in trusted)


def listen(host: str, port: int, *, program: str = "the server") -> socket.socket:
    """Return a listening socket; port 0 picks a free one. StackError names `program`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as exc:
        raise StackError(
            f"{program} cannot listen on {host}:{port}; stop the program that uses the port, or "
            "choose another"
        ) from exc


def server_config(
    app: FastAPI, *, grace_seconds: int, trusted_proxies: Sequence[str] = ()
) -> uvicorn.Config:
    """Return the configuration of a server with these limits, which logs no requests.

    Running requests have `grace_seconds` to finish at shutdown.
    """
    return uvicorn.Config(
        app,
        http=LimitedProtocol,
        # uvicorn would believe every client of the loopback interface.
        proxy_headers=bool(trusted_proxies),
        forwarded_allow_ips=list(trusted_proxies),
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=grace_seconds,
    )
