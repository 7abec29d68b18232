"""Signed HTTP requests to programs of others: no redirects, and no address in what goes wrong."""

import hashlib
import hmac
import http.client
import io
import socket
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.error import HTTPError


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came of one request."""

    #: The HTTP status; None when none came.
    status: int | None
    #: What was in the way, `answer 500` or `TimeoutError`; empty when the request was taken.
    problem: str = ""
    #: Seconds after which the receiver wants to be asked again, from 0 on; None: it did not say.
    retry_after: float | None = None


def signature(secret: str, timestamp: int, body: bytes) -> str:
    """Return the HMAC-SHA256, in hex, of `TIMESTAMP.BODY`: what `Modwatch-Signature` carries.

    A receiver computes the same from the header `Modwatch-Timestamp` (seconds since 1970) and the
    bytes of the body, compares in constant time, and refuses timestamps that are minutes old.

    >>> signature("key", 0, b"{}")[:16]
    '7314351dd949aa7e'
    """
    return hmac.new(secret.encode(), b"%d.%s" % (timestamp, body), hashlib.sha256).hexdigest()


def post(
    url: str,
    body: bytes,
    *,
    secret: str,
    key: str,
    timeout: float,
    clock: Callable[[], float] = time.time,
) -> Answer:
    """Return the answer to one signed request with a JSON body; nothing is raised.

    `url` is http or https and may hold a token: no answer quotes it. Connecting, sending and the
    whole of the answer's head take `timeout` seconds each at most. `key` is the idempotency key.
    """
    now = clock()
    try:
        request = _request(url, body, secret=secret, key=key, timestamp=int(now))
        with _OPENER.open(request, timeout=timeout) as answer:
            return Answer(status=answer.status)
    except HTTPError as refusal:
        with refusal:
            return Answer(
                status=refusal.code,
                problem=f"answer {refusal.code}",
                retry_after=_retry_after(refusal.headers, now),
            )
    # Foreign messages may quote the address, and with it a token: only their class is told.
    # ValueError: the host is a name that cannot be.
    except (OSError, ValueError, http.client.HTTPException) as exc:
        return Answer(status=None, problem=type(getattr(exc, "reason", exc)).__name__)


def _request(
    url: str, body: bytes, *, secret: str, key: str, timestamp: int
) -> urllib.request.Request:
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "modwatch",
        "Idempotency-Key": key,
        "Modwatch-Timestamp": str(timestamp),
        "Modwatch-Signature": f"sha256={signature(secret, timestamp, body)}",
    }
    # The settings allow http and https only.
    return urllib.request.Request(url, data=body, headers=headers, method="POST")  # noqa: S310


def _retry_after(headers: Message, now: float) -> float | None:
    """Return the seconds that `Retry-After` asks for, written as a number or as a moment."""
    said = (headers.get("Retry-After") or "").strip()
    if said.isascii() and said.isdigit():
        return float(said[:9])
    try:
        moment = parsedate_to_datetime(said)
        # A moment without a zone is one of HTTP's, which are all in UTC.
        return max(0.0, (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - now)
    except (ValueError, OverflowError):
        return None


class _HeadReader(io.RawIOBase):
    """Reads from a socket until a deadline: each byte that drips in renews no patience."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket, self._raw = sock, sock.makefile("rb", buffering=0)
        patience = sock.gettimeout()
        self._deadline = None if patience is None else time.monotonic() + patience

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self._deadline is not None:
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self._socket.settimeout(left)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp.close()
        self.fp = io.BufferedReader(_HeadReader(sock))


class _Connection(http.client.HTTPConnection):
    response_class = _Response


class _TlsConnection(http.client.HTTPSConnection):
    response_class = _Response


class _Http(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_Connection, req)


class _Https(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_TlsConnection, req)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Takes a redirect for a refusal: what is signed goes where the settings say, or nowhere."""

    def redirect_request(self, *_args: Any, **_kwargs: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects, _Http, _Https)
