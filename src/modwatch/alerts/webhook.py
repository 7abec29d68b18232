"""Alerts as signed HTTP requests."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from modwatch import webhooks
from modwatch.alerts.channels import Retry
from modwatch.alerts.messages import Alert
from modwatch.errors import AlertRefusedError

#: Statuses that are retried; every other error status is permanent.
_TRANSIENT = range(500, 600)


@dataclass(frozen=True, kw_only=True)
class WebhookChannel:
    """Posts each alert as JSON with a signature and an idempotency key."""

    #: http or https; may contain a token, so it is never part of a message.
    url: str = field(repr=False)
    #: Key of the signature.
    secret: str = field(repr=False)
    retry: Retry = field(default_factory=Retry)
    clock: Callable[[], float] = time.time
    name: str = "webhook"

    def send(self, alert: Alert) -> None:
        """Post the alert; retries after a 5xx status or a connection error.

        Raises:
            AlertRefusedError: the receiver rejected the alert, or redirected the request.
            AlertError: the receiver could not be reached.
        """
        body = json.dumps(alert.payload, sort_keys=True, allow_nan=False).encode()
        self.retry.call(
            lambda: self._post(alert.key, body),
            failure="the webhook did not accept an alert; it stays pending for the next run. "
            "Check MODWATCH_ALERT_WEBHOOK_URL and its server",
        )

    def _post(self, key: str, body: bytes) -> str:
        """Return an error message if the request should be retried; empty on success."""
        answer = webhooks.post(
            self.url,
            body,
            secret=self.secret,
            key=key,
            timeout=self.retry.timeout,
            clock=self.clock,
        )
        if not answer.problem or answer.status is None or answer.status in _TRANSIENT:
            return answer.problem
        raise AlertRefusedError(
            f"the webhook rejected an alert ({answer.problem}); it stays pending for the next run. "
            "Check MODWATCH_ALERT_WEBHOOK_URL and what its server expects"
        )
