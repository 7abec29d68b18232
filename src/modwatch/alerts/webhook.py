"""Alerts as signed HTTP requests."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from modwatch import webhooks
from modwatch.alerts.channels import Patience
from modwatch.alerts.messages import Alert
from modwatch.errors import AlertRefusedError

#: Answers that may be another one in a moment; every other refusal is for good.
_FOR_NOW = range(500, 600)


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
        answer = webhooks.post(
            self.url,
            body,
            secret=self.secret,
            key=key,
            timeout=self.patience.timeout,
            clock=self.clock,
        )
        if not answer.problem or answer.status is None or answer.status in _FOR_NOW:
            return answer.problem
        raise AlertRefusedError(
            f"the webhook refused an alert ({answer.problem}); it is kept for the next run, check "
            "MODWATCH_ALERT_WEBHOOK_URL and what its server expects"
        )
