"""Alerts of severe escalations: one when it waits for a lead, another when it is overdue."""

import logging
import threading
from dataclasses import dataclass

from sqlalchemy import Engine

from modwatch.common.errors import ModwatchError
from modwatch.monitoring.incidents.channels import Channel
from modwatch.monitoring.incidents.delivery import (
    Channels,
    deliver,
    outbox_message,
    post,
)
from modwatch.monitoring.incidents.messages.requests import severe_escalation_alert
from modwatch.review.reporting.workload import escalations

_log = logging.getLogger(__name__)

_TOPIC = "escalation"

#: Time between two looks at the queue.
_PAUSE_SECONDS = 30.0


def alert_severe_escalations(database: Engine, channels: Channels, page: str) -> int:
    """Post an alert for each severe escalation that waits or is overdue; return how many are new.

    `page` is where a lead resolves them. The same call again posts nothing twice.

    Raises:
        AlertError: some channel failed; its alerts stay pending.
    """
    alerts = [
        (severe_escalation_alert(each.item_id, each.severe_due_at, each.overdue, page), each.dt)
        for each in escalations(database)
        if each.severe_due_at is not None
    ]
    new = sum(
        post(database, channels, outbox_message(alert, day, topic=_TOPIC)) for alert, day in alerts
    )
    if alerts:
        deliver(database, channels)
    return new


@dataclass(frozen=True, kw_only=True)
class EscalationWatch:
    """Looks at the queue until it is stopped."""

    database: Engine
    channels: tuple[Channel, ...]
    page: str
    pause_seconds: float = _PAUSE_SECONDS

    def run(self, stop: threading.Event) -> None:
        """Alert of severe escalations until `stop` is set; errors are logged, and tried again."""
        while not stop.wait(self.pause_seconds):
            try:
                alert_severe_escalations(self.database, self.channels, self.page)
            except ModwatchError as exc:
                _log.warning(
                    "Severe escalations could not be alerted of: %s.",
                    exc,
                    extra={"event": "alerts.escalations_failed"},
                )
