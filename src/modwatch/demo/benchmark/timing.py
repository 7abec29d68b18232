"""Progress of a long run: what is done, and about how long the rest takes."""

import time
from collections.abc import Callable

#: Seconds from the start to the first report, and between reports.
_PAUSE = 20.0


class TimeLeft:
    """Reports progress with the time left, in proportion to the units of work that are done.

    >>> seconds = iter([0.0, 60.0, 120.0])
    >>> left = TimeLeft(print, clock=lambda: next(seconds))
    >>> left.start(0, 4)
    >>> left.report(1, "first unit")
    first unit; about 3 minutes left
    >>> left.start(2, 4)
    >>> left.report(1, "third unit")
    third unit; about 40 seconds left
    """

    def __init__(
        self, say: Callable[[str], None], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Prepare; `say` gets each line, `clock` returns seconds."""
        self._say, self._clock = say, clock
        self._began: float | None = None
        self._before = self._whole = 0
        self._last = 0.0

    def start(self, before: int, whole: int) -> None:
        """Begin a part: `before` units of the `whole` are done."""
        if self._began is None:
            self._began = self._last = self._clock()
        self._before, self._whole = before, whole

    def report(self, units: float, text: str, *, always: bool = False) -> None:
        """Say `text` and the time left, after `units` of this part; seldom unless `always`."""
        now = self._clock()
        if now - self._last < _PAUSE and not always:
            return
        self._last = now
        done = self._before + units
        spent = now - (now if self._began is None else self._began)
        self._say(f"{text}; {_words(spent * (self._whole - done) / done)}" if done else text)


def _words(seconds: float) -> str:
    """Return a duration as text.

    >>> _words(100), _words(6_000), _words(20_000)
    ('about 100 seconds left', 'about 100 minutes left', 'about 5.6 hours left')
    """
    if seconds < 110:
        return f"about {seconds:.0f} seconds left"
    if seconds < 7_000:
        return f"about {seconds / 60:.0f} minutes left"
    return f"about {seconds / 3600:.1f} hours left"
