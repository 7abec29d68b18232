"""The interface of an alert channel, and its retries."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from modwatch.alerts.messages import Alert
from modwatch.errors import AlertError


class Channel(Protocol):
    """A destination of alerts."""

    @property
    def name(self) -> str:
        """The name under which deliveries are recorded."""

    def send(self, alert: Alert) -> None:
        """Deliver one alert; raises AlertError, whose message contains no secret."""


@dataclass(frozen=True, kw_only=True)
class Retry:
    """Retries with exponential backoff."""

    attempts: int = 3
    #: Seconds that one step of an attempt (connect, send, receive) may take.
    timeout: float = 10.0
    #: Seconds before the second attempt.
    pause: float = 1.0
    sleep: Callable[[float], None] = time.sleep

    def call(self, attempt: Callable[[], str], *, failure: str) -> None:
        """Call `attempt` until it returns an empty text instead of an error message.

        Raises:
            AlertError: every attempt failed; the message is `failure` with the last error.

        >>> answers = iter(["busy", ""])
        >>> Retry(sleep=lambda seconds: print(seconds, "s")).call(
        ...     lambda: next(answers), failure="Not sent.")
        1.0 s
        """
        error = ""
        for number in range(self.attempts):
            if number:
                self.sleep(self.pause * 2 ** (number - 1))
            error = attempt()
            if not error:
                return
        raise AlertError(f"{failure} ({error}, {self.attempts} attempts)")
