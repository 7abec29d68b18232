"""A cache of one result for some seconds."""

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

_T = TypeVar("_T")


class TimedCache(Generic[_T]):
    """The result of `load`, at most `seconds` old; concurrent callers share one call.

    >>> results = iter([1, 2])
    >>> cached = TimedCache(lambda: next(results), 60)
    >>> cached(), cached()
    (1, 1)
    """

    def __init__(self, load: Callable[[], _T], seconds: float) -> None:
        self._load = load
        self._seconds = seconds
        self._lock = threading.Lock()
        self._cached: tuple[float, _T] | None = None

    def __call__(self) -> _T:
        """Return the cached result, loaded again if it is too old."""
        with self._lock:
            if self._cached is None or time.monotonic() - self._cached[0] >= self._seconds:
                self._cached = (time.monotonic(), self._load())
            return self._cached[1]

    def clear(self) -> None:
        """Forget the result: the next call loads it."""
        with self._lock:
            self._cached = None
