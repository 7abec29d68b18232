"""How far Airflow is with the days of the demo, and the time left."""

import time
from collections.abc import Callable, Sequence
from datetime import date

from modwatch.installation.stack.progress import Wait

#: Seconds of a day on a machine with two cores, until a day of this demo was measured.
_USUAL_DAY = {"score_comments": 15.0, "monitor_collaboration": 10.0}


class DayProgress:
    """Says every ten seconds which day runs, and how long all days that are left take.

    >>> seconds = iter([0.0, 11.0, 18.0, 22.0])
    >>> days = [date(2026, 1, 5), date(2026, 1, 6), date(2026, 1, 7)]
    >>> progress = DayProgress(print, "score_comments", days, clock=lambda: next(seconds))
    >>> progress.show(lambda: ["route"])
    score_comments 2026-01-05: route is running, 0 of 3 days are done; about 34 s left
    >>> progress.end_day()
    >>> progress.show(lambda: [])
    score_comments 2026-01-06: no task is running, 1 of 3 days are done; about 32 s left

    Args:
        say: gets each line.
        dag: whose runs are waited for.
        days: the days, in order; each begins when the one before has ended.
        clock: seconds that never go back.
    """

    def __init__(
        self,
        say: Callable[[str], None],
        dag: str,
        days: Sequence[date],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._dag, self._days, self._done = dag, days, 0
        self._wait = Wait(say, usual=len(days) * _USUAL_DAY[dag], clock=clock)

    def end_day(self) -> None:
        """Note that a day has ended: those that are left will take as long, on average."""
        self._done += 1
        self._wait.expect(self._wait.elapsed() / self._done * len(self._days))

    def show(self, running: Callable[[], Sequence[str]]) -> None:
        """Say a line if one is due; `running` returns the tasks that run, and is called for it."""
        if self._done < len(self._days):
            self._wait.show(lambda: self._doing(running()))

    def _doing(self, running: Sequence[str]) -> str:
        tasks = ", ".join(running) or "no task"
        verb = "are" if len(running) > 1 else "is"
        done = f"{self._done} of {len(self._days)} days are done"
        return f"{self._dag} {self._days[self._done]}: {tasks} {verb} running, {done}"
