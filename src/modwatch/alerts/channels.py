"""What every channel of alerts is, and how often it tries."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from modwatch.alerts.messages import Alert
from modwatch.errors import AlertError


class Channel(Protocol):
    """A way out for alerts."""

    @property
    def name(self) -> str:
        """Its name, under which is kept what it delivered."""

    def send(self, alert: Alert) -> None:
        """Deliver one alert, or raise AlertError, whose message holds no secret."""


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long a channel tries: the pauses between the attempts double."""

    attempts: int = 3
    #: Seconds that one step of one attempt (connecting, sending, an answer) may take.
    timeout: float = 10.0
    #: Seconds before the second attempt.
    pause: float = 1.0
    sleep: Callable[[float], None] = time.sleep

    def until_done(self, attempt: Callable[[], str], *, failure: str) -> None:
        """Call `attempt` until it returns an empty text, instead of what was in its way.

        Raises:
            AlertError: `failure` with what was in the way of the last attempt.

        >>> answers = iter(["busy", ""])
        >>> Patience(sleep=lambda seconds: print(seconds, "s")).until_done(
        ...     lambda: next(answers), failure="no luck")
        1.0 s
        """
        problem = ""
        for number in range(self.attempts):
            if number:
                self.sleep(self.pause * 2 ** (number - 1))
            problem = attempt()
            if not problem:
                return
        raise AlertError(f"{failure} ({problem}, {self.attempts} attempts)")
