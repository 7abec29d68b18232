"""Signals that end a process, put off while it must not be interrupted."""

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

_ENDS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def signals_held() -> Iterator[Sequence[int]]:
    """Put off SIGTERM and SIGINT to the end of the block.

    Yields the signals that have come. One that is ignored, as SIGINT is in the background of a
    script, stays so. Only the main thread handles signals; in others there is nothing to put off. A
    handler that raises would not do: Python drops an exception that meets a finalizer or a callback
    of a weak reference, and the signal with it.

    >>> with signals_held() as came:
    ...     list(came)
    []
    """
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield came
        return
    ours = [end for end in _ENDS if signal.getsignal(end) not in (None, signal.SIG_IGN)]
    before = {end: signal.signal(end, lambda number, _: came.append(number)) for end in ours}
    try:
        yield came
    finally:
        for end, handler in before.items():
            signal.signal(end, handler)
        for number in came[:1]:
            signal.raise_signal(number)
