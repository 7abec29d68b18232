"""Follows the decision log and delivers what is new, until told to stop.

Any number may run at once: as threads of the console, or as commands on other machines.
"""

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from modwatch import webhooks
from modwatch.errors import DatabaseError
from modwatch.review.outbox.deliveries import BROKEN, Round, Send, deliver
from modwatch.review.outbox.messages import OutboxMessage
from modwatch.review.outbox.relay import relay_decisions
from modwatch.webhooks import Answer

logger = logging.getLogger(__name__)

#: The channel of the platform's webhook. Not `webhook`: that is the alerts'.
PLATFORM = "platform"

#: A receiver that is down is asked this often at least, in seconds.
_SLOWEST = 60.0


@dataclass(frozen=True, kw_only=True)
class DecisionWebhook:
    """Posts a decision as signed JSON; call it with the message."""

    #: http or https; may hold a token, and so stands in no message.
    url: str = field(repr=False)
    #: What the requests are signed with.
    secret: str = field(repr=False)
    #: Seconds that one step of a request (connecting, sending, an answer) may take.
    timeout: float = 10.0
    clock: Callable[[], float] = time.time

    def __call__(self, message: OutboxMessage) -> Answer:
        """Return the answer to one post of the message; nothing is raised."""
        body = json.dumps(message.payload, sort_keys=True, allow_nan=False).encode()
        return webhooks.post(
            self.url,
            body,
            secret=self.secret,
            key=message.key,
            timeout=self.timeout,
            clock=self.clock,
        )


@dataclass(kw_only=True)
class Deliverer:
    """Relays and delivers decisions, with a pause while there is nothing, or nobody, to tell."""

    engine: Engine
    #: How each channel sends.
    channels: Mapping[str, Send]
    #: The DSA category of a policy code.
    category_of: Callable[[str], str | None] = lambda _: None
    #: Seconds between two looks at the log.
    interval: float = 1.0
    _pauses: dict[str, float] = field(default_factory=dict, repr=False)
    _asleep_until: dict[str, float] = field(default_factory=dict, repr=False)

    def run(self, stop: threading.Event) -> None:
        """Work until `stop` is set; a request under way is finished first.

        A database that is down is waited for.
        """
        while not stop.is_set():
            try:
                busy = self.once(stop)
            except DatabaseError as error:
                logger.warning("%s", error, extra={"event": "deliverer_waits"})
                busy = False
            except SQLAlchemyError as error:  # its text may quote rows
                name = type(error).__name__
                logger.warning("Deliveries wait: %s.", name, extra={"event": "deliverer_waits"})
                busy = False
            if not busy:
                stop.wait(self.interval)

    def once(self, stop: threading.Event | None = None) -> bool:
        """Relay, give each channel that is awake one round; return whether there may be more."""
        go_on = (lambda: not stop.is_set()) if stop else (lambda: True)
        relay_decisions(self.engine, list(self.channels), category_of=self.category_of, go_on=go_on)
        busy = False
        for name, send in self.channels.items():
            if time.monotonic() >= self._asleep_until.get(name, 0.0):
                busy |= self._rest(name, deliver(self.engine, name, send, go_on=go_on))
        return busy

    def _rest(self, name: str, done: Round) -> bool:
        """Let a channel sleep if its receiver is not well; return whether to go on at once."""
        if done.sent or done.failed < BROKEN:
            self._pauses.pop(name, None)
        else:
            self._pauses[name] = min(2 * self._pauses.get(name, self.interval / 2), _SLOWEST)
        pause = max(self._pauses.get(name, 0.0), done.pause or 0.0)
        self._asleep_until[name] = time.monotonic() + pause
        return bool(done.claimed) and not pause
