"""Alerts as signed HTTP requests."""

import hashlib
import hmac
import http.client
import json
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.error import HTTPError

from modwatch.errors import AlertRefusedError
from modwatch.tracking.alert_channels import Patience
from modwatch.tracking.alert_messages import Alert

#: Answers that may be another one in a moment; every other refusal is for good.
_FOR_NOW = range(500, 600)


def signature(secret: str, timestamp: int, body: bytes) -> str:
    """Return the HMAC-SHA256, in hex, of `TIMESTAMP.BODY`: what `Modwatch-Signature` carries.

    A receiver computes the same from the header `Modwatch-Timestamp` (seconds since 1970) and the
    bytes of the body, compares in constant time, and refuses timestamps that are minutes old.

    >>> signature("key", 0, b"{}")[:16]
    '7314351dd949aa7e'
    """
    return hmac.new(secret.encode(), b"%d.%s" % (timestamp, body), hashlib.sha256).hexdigest()


@dataclass(frozen=True, kw_only=True)
class WebhookChannel:
    """Posts each alert as JSON, with a signature and an idempotency key."""

    #: http or https; may hold a token, and so stands in no message.
    url: str = field(repr=False)
    #: What the requests are signed with.
    secret: str = field(repr=False)
    patience: Patience = field(default_factory=Patience)
    clock: Callable[[], float] = time.time
    name: str = "webhook"

    def send(self, alert: Alert) -> None:
        """Post the alert; answers from 500 on and broken connections are tried again.

        Raises:
            AlertRefusedError: the receiver does not take this alert, or redirects.
            AlertError: it could not be reached in time.
        """
        body = json.dumps(alert.payload, sort_keys=True, allow_nan=False).encode()
        self.patience.until_done(
            lambda: self._post(alert.key, body),
            failure="the webhook did not take an alert; it is kept for the next run, check "
            "MODWATCH_ALERT_WEBHOOK_URL and its server",
        )

    def _post(self, key: str, body: bytes) -> str:
        """Return what was in the way, if another attempt may help; nothing when it was taken."""
        try:
            with _OPENER.open(self._request(key, body), timeout=self.patience.timeout):
                return ""
        except HTTPError as refusal:
            with refusal:
                status = refusal.code
        # Foreign messages may quote the address, and with it a token: only their class is told.
        # ValueError: the host is a name that cannot be.
        except (OSError, ValueError, http.client.HTTPException) as exc:
            return type(getattr(exc, "reason", exc)).__name__
        if status in _FOR_NOW:
            return f"answer {status}"
        raise AlertRefusedError(
            f"the webhook refused an alert (answer {status}); it is kept for the next run, check "
            "MODWATCH_ALERT_WEBHOOK_URL and what its server expects"
        )

    def _request(self, key: str, body: bytes) -> urllib.request.Request:
        now = int(self.clock())
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "modwatch",
            "Idempotency-Key": key,
            "Modwatch-Timestamp": str(now),
            "Modwatch-Signature": f"sha256={signature(self.secret, now, body)}",
        }
        # The settings allow http and https only.
        return urllib.request.Request(self.url, data=body, headers=headers, method="POST")  # noqa: S310


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Takes a redirect for a refusal: signed alerts go where the settings say, or nowhere."""

    def redirect_request(self, *_args: Any, **_kwargs: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects)
