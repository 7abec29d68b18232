"""Progress of a long wait: messages about what is running, and the time left."""

import time
from collections.abc import Callable

#: Seconds between two messages.
_EVERY = 10.0

#: Seconds that six parts usually take to start and to stop, on a machine with two cores.
USUAL_START, USUAL_STOP = 30.0, 12.0


class Wait:
    """Reports every ten seconds what is running, and the time left of `usual` seconds.

    >>> seconds = iter([0.0, 4.0, 11.0, 25.0])
    >>> wait = Wait(print, usual=20, clock=lambda: next(seconds))
    >>> for _ in range(3):
    ...     wait.show(lambda: "waiting for mlflow")
    waiting for mlflow; about 9 s left
    waiting for mlflow; longer than the usual 20 s
    """

    def __init__(
        self,
        say: Callable[[str], None],
        *,
        usual: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.say, self._usual, self._clock = say, usual, clock
        self._begun = clock()
        self._due = self._begun + _EVERY

    def show(self, doing: Callable[[], str]) -> None:
        """Report what `doing` returns if a message is due."""
        elapsed = self.elapsed()
        if self._begun + elapsed < self._due:
            return
        self._due = self._begun + elapsed + _EVERY
        self.say(f"{doing()}; {time_left(self._usual, elapsed)}")

    def expect(self, usual: float) -> None:
        """Correct the expected seconds of the whole wait."""
        self._usual = usual

    def elapsed(self) -> float:
        """Return the seconds since the wait has begun."""
        return self._clock() - self._begun

    def left(self) -> str:
        """Return the time left, in words."""
        return time_left(self._usual, self.elapsed())


def time_left(usual: float, elapsed: float = 0.0) -> str:
    """Return the time left of a wait that usually takes `usual` seconds, in words.

    >>> time_left(200, 20), time_left(20, 12), time_left(20, 21)
    ('about 3 min left', 'about 8 s left', 'longer than the usual 20 s')
    """
    left = usual - elapsed
    if left <= 0:
        return f"longer than the usual {_duration(usual)}"
    return f"about {_duration(left)} left"


def _duration(seconds: float) -> str:
    """Return a duration in seconds, minutes or hours.

    >>> _duration(0.2), _duration(119), _duration(125), _duration(20_000)
    ('1 s', '119 s', '2 min', '5.6 h')
    """
    if seconds < 120:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 7_200 else f"{seconds / 3600:.1f} h"
