"""Figures that many ask for and that need not be of this second."""

import time
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class Recent(Generic[T]):
    """What `ask` answered, at most `seconds` ago; of many who want to know, one asks.

    >>> answers = iter([1, 2])
    >>> recent = Recent(lambda: next(answers), 60)
    >>> recent(), recent()
    (1, 1)
    """

    def __init__(self, ask: Callable[[], T], seconds: float) -> None:
        self._ask = ask
        self._seconds = seconds
        self._lock = Lock()
        self._known: tuple[float, T] | None = None

    def __call__(self) -> T:
        """Return the answer."""
        with self._lock:
            if self._known is None or time.monotonic() - self._known[0] >= self._seconds:
                self._known = (time.monotonic(), self._ask())
            return self._known[1]
