"""Servers on loopback that receive alerts, and can be made to fail in every way."""

import base64
import json
import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from modwatch.monitoring.incidents.channels import MailChannel, Retry, WebhookChannel

_LIMIT_SECONDS = 20


@dataclass(kw_only=True)
class Request:
    """One request as it came in."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        return dict(json.loads(self.body))


@dataclass(kw_only=True)
class Webhook:
    """A server that keeps what it gets and answers as it is told, then with 200."""

    #: Raw answers, or statuses, or None to say nothing until the other side goes away.
    answers: list[int | bytes | None] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    url: str = ""

    @property
    def keys(self) -> list[str]:
        return [request.headers["webhook-id"] for request in self.requests]


@contextmanager
def webhook(*answers: int | bytes | None) -> Iterator[Webhook]:
    """Yield a webhook's server; it ends with the block."""
    state = Webhook(answers=list(answers))

    class Handler(socketserver.StreamRequestHandler):
        timeout = _LIMIT_SECONDS

        def handle(self) -> None:
            _, path, _ = self.rfile.readline().decode("latin-1").split()
            headers = {}
            while line := self.rfile.readline().decode("latin-1").strip():
                name, _, value = line.partition(":")
                headers[name.strip().lower()] = value.strip()
            body = self.rfile.read(int(headers.get("content-length", 0)))
            state.requests.append(Request(path=path, headers=headers, body=body))
            answer = state.answers.pop(0) if state.answers else 200
            if answer is None:
                self.rfile.read(1)  # returns when the other side has lost patience
            elif isinstance(answer, bytes):
                self.wfile.write(answer)
            else:
                self.wfile.write(b"HTTP/1.1 %d Said\r\nContent-Length: 0\r\n\r\n" % answer)

    with _serving(Handler) as port:
        state.url = f"http://127.0.0.1:{port}/hook?token=hunter2"
        yield state


@dataclass(kw_only=True)
class MailServer:
    """A mail server that keeps what it gets; `says` replaces its answer to a command."""

    says: dict[str, list[str | None]] = field(default_factory=dict)
    #: What EHLO offers.
    offers: tuple[str, ...] = ("AUTH PLAIN",)
    tls: ssl.SSLContext | None = None
    messages: list[str] = field(default_factory=list)
    recipients: list[str] = field(default_factory=list)
    logins: list[str] = field(default_factory=list)
    encrypted: list[bool] = field(default_factory=list)
    port: int = 0


class _Smtp(socketserver.StreamRequestHandler):
    """As much of RFC 5321 as a client needs to hand over one message."""

    timeout = _LIMIT_SECONDS
    state: MailServer

    def handle(self) -> None:
        self.secure = False
        if not self._answer("CONNECT", "220 ready"):
            return
        while line := self.rfile.readline().decode("utf-8").strip():
            verb = line.split()[0].upper()
            if not self._answer(verb, self._usual(verb, line)) or verb == "QUIT":
                return
            if verb == "STARTTLS":
                self._encrypt()
            if verb == "DATA":
                self._receive()

    def _usual(self, verb: str, line: str) -> str:
        if verb == "EHLO":
            lines = ["mail.test", *self.state.offers]
            return "\r\n".join(
                f"250{'-' if n < len(lines) else ' '}{x}" for n, x in enumerate(lines, 1)
            )
        if verb == "AUTH":
            self.state.logins.append(base64.b64decode(line.split()[-1]).decode())
            return "235 welcome"
        if verb == "RCPT":
            self.state.recipients.append(line.partition("<")[2].partition(">")[0])
        return {"DATA": "354 go on", "STARTTLS": "220 go on", "QUIT": "221 bye"}.get(verb, "250 ok")

    def _receive(self) -> None:
        lines: list[str] = []
        while (line := self.rfile.readline().decode("utf-8")) not in (".\r\n", ""):
            lines.append(line)
        if self._answer("MESSAGE", "250 kept"):
            self.state.messages.append("".join(lines))
            self.state.encrypted.append(self.secure)

    def _answer(self, verb: str, usual: str) -> bool:
        """Answer; return whether all goes on as usual."""
        result = self.state.says.get(verb)
        answer = result.pop(0) if result else usual
        if answer is None:
            self.rfile.read(1)
            return False
        self.wfile.write(answer.encode() + b"\r\n")
        return answer == usual or verb in ("RCPT", "CONNECT")

    def finish(self) -> None:
        super().finish()
        self.request.close()

    def _encrypt(self) -> None:
        assert self.state.tls
        self.request = self.state.tls.wrap_socket(self.request, server_side=True)
        self.rfile, self.wfile = self.request.makefile("rb"), self.request.makefile("wb", 0)
        self.secure = True


@contextmanager
def mail_server(**state: Any) -> Iterator[MailServer]:
    """Yield a mail server; it ends with the block."""
    server = MailServer(**state)
    with _serving(type("Handler", (_Smtp,), {"state": server})) as server.port:
        yield server


def without_pauses(channels: Sequence[WebhookChannel | MailChannel]) -> list[Any]:
    """Return channels that repeat a failed attempt at once."""
    at_once = Retry(timeout=0.5, sleep=lambda seconds: None)
    return [replace(channel, retry=at_once) for channel in channels]


def closed_port() -> int:
    """Return a port of this machine on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def handle_error(self, *_: object) -> None:
        """Say nothing: that a client goes away is what tests are about."""


@contextmanager
def _serving(handler: type[socketserver.BaseRequestHandler]) -> Iterator[int]:
    with _Server(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join(_LIMIT_SECONDS)
