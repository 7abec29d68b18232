"""Signed HTTP requests to receivers outside, without redirects; errors never contain the URL.

Requests are signed as the Standard Webhooks specification requires, by its library.
"""

import http.client
import io
import socket
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.error import HTTPError

from standardwebhooks import Webhook


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The result of one request."""

    #: The HTTP status; None without a response.
    status: int | None
    #: Why the request failed, `answer 500` or `TimeoutError`; empty if it succeeded.
    problem: str = ""
    #: Seconds after which the receiver asks for a repetition, 0 or more, if it does.
    retry_after: float | None = None


def signer(secret: str) -> Webhook:
    """Return the signer with the key in base64 after `whsec_`, or with `secret` itself as the key.

    Raises `EmptyWebhookSecretError` for an empty secret.
    """
    # The library would decode any string, and silently drop the characters that are not base64.
    return Webhook(secret if secret.startswith("whsec_") else secret.encode())


def post(
    url: str,
    body: bytes,
    *,
    secret: str,
    key: str,
    timeout: float,
    clock: Callable[[], float] = time.time,
) -> Answer:
    """Return the result of one signed request with a JSON body; a failed one never raises.

    `url` is http or https and may contain a token, so no result quotes it. Connecting, sending and
    receiving the head of the response may take `timeout` seconds each. `key` is the id of the
    message, the same for every attempt.
    """
    now = clock()
    headers = _headers(body, secret=secret, key=key, timestamp=int(now))
    try:
        # Settings allow http and https only.
        request = urllib.request.Request(url, data=body, headers=headers, method="POST")  # noqa: S310
        with _OPENER.open(request, timeout=timeout) as answer:
            return Answer(status=answer.status)
    except HTTPError as error:
        with error:
            return Answer(
                status=error.code,
                problem=f"answer {error.code}",
                retry_after=_retry_after(error.headers, now),
            )
    # Messages of these errors may quote the URL, and with it a token: only the class is returned.
    # ValueError: the host name is invalid.
    except (OSError, ValueError, http.client.HTTPException) as exc:
        return Answer(status=None, problem=type(getattr(exc, "reason", exc)).__name__)


def _headers(body: bytes, *, secret: str, key: str, timestamp: int) -> dict[str, str]:
    moment = datetime.fromtimestamp(timestamp, UTC)
    return {
        "Content-Type": "application/json",
        "User-Agent": "modwatch",
        "webhook-id": key,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signer(secret).sign(key, moment, body.decode()),
    }


def _retry_after(headers: Message, now: float) -> float | None:
    """Return the seconds of `Retry-After`, which is a number or a time."""
    value = (headers.get("Retry-After") or "").strip()
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        moment = parsedate_to_datetime(value)
        # Times of HTTP are in UTC, also without a zone.
        return max(0.0, (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - now)
    except (ValueError, OverflowError):
        return None


class _HeadReader(io.RawIOBase):
    """Reads from a socket until a deadline, which slow responses do not extend."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket, self._raw = sock, sock.makefile("rb", buffering=0)
        timeout = sock.gettimeout()
        self._deadline = None if timeout is None else time.monotonic() + timeout

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
    """Treats redirects as errors: signed content is sent to the configured URL only."""

    def redirect_request(self, *_args: Any, **_kwargs: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects, _Http, _Https)
