"""Texts of concurrent requests in common batches."""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from modwatch.models.scoring.scorer import Predictions, Scorer

#: Most characters and texts that are scored together; the scorer makes batches of subwords of them.
#: A text counts as 32 characters at least.
_CHARACTERS = 65_536
_LEAST = 32
#: Texts of a request that are taken in its turn, before those of other requests.
_PIECE = 64
#: Characters of a batch that tells how many texts are scored in a second: a smaller one takes
#: nearly as long. It counts four fifths as much as the next.
_TELLING, _DECAY = _CHARACTERS // 8, 0.8
#: Seconds to wait before there was one.
_UNKNOWN_SECONDS = 10

#: Called after each batch with its number of texts and of subwords, and its seconds.
OnBatch = Callable[[int, int, float], None]


class OverloadedError(Exception):
    """Too many texts or characters wait; `seconds` is when it may be worth a try."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"too many texts wait; try again in {seconds} s")
        self.seconds = seconds


@dataclass(eq=False)
class _Job:
    """The texts of a request."""

    texts: Sequence[str]
    done: "asyncio.Future[Predictions]"
    found: Predictions
    #: Texts that were taken, and those that were scored.
    taken: int = 0
    scored: int = 0


class Batcher:
    """Scores the texts of concurrent requests together, a batch at a time.

    While one batch is scored, the texts that arrive wait for the next: under load the batches are
    large, and a single text waits for nothing. Requests take turns, so that one with many texts
    does not hold up the others. Where texts for a whole batch wait and the scorer `overlaps`, it
    tokenizes them meanwhile.
    """

    def __init__(
        self,
        scorer: Scorer,
        *,
        most_waiting: int,
        most_characters: int,
        report: OnBatch = lambda *_: None,
    ) -> None:
        """Prepare.

        Args:
            scorer: called in a thread, by one batch at a time; if it `overlaps`, by two.
            most_waiting: texts; a request that would make it more is refused, unless no text waits.
            most_characters: of the waiting texts, likewise.
            report: called after each batch.
        """
        self.scorer = scorer
        self._most, self._most_characters, self._report = most_waiting, most_characters, report
        self._jobs: deque[_Job] = deque()
        #: Texts that wait for their batch.
        self.waiting = 0
        self._characters = 0
        #: Texts of telling batches, and their seconds.
        self._scored, self._seconds = 0.0, 0.0
        #: When the last batch ended, and the subwords until then.
        self._ended, self._subwords = -math.inf, 0
        self._ahead = bool(getattr(scorer, "overlaps", False))
        self._threads = ThreadPoolExecutor(1 + self._ahead, thread_name_prefix="score")
        #: A task for each batch in progress.
        self._work = set[asyncio.Task[None]]()

    async def score(self, texts: Sequence[str]) -> Predictions:
        """Return predictions for `texts`, in their order.

        Raises:
            OverloadedError: too many texts or characters wait.
        """
        characters = sum(map(len, texts))
        too_many = self.waiting + len(texts) > self._most
        too_long = self._characters + characters > self._most_characters
        if self.waiting and (too_many or too_long):
            raise OverloadedError(self._seconds_of_waiting())
        names = self.scorer.columns
        found = Predictions(names=names, values=np.zeros((len(names), len(texts)), np.float32))
        if not texts:
            return found
        job = _Job(texts, asyncio.get_running_loop().create_future(), found)
        self._jobs.append(job)
        self.waiting += len(texts)
        self._characters += characters
        asyncio.get_running_loop().call_soon(self._go_on)  # after what arrives at the same time
        return await job.done

    async def close(self) -> None:
        """Wait for the requests that were accepted."""
        self._go_on()
        while self._work:
            await asyncio.wait(self._work)
        self._threads.shutdown()

    def _go_on(self) -> None:
        """Begin the next batch if none is in progress, and another one if it is full."""
        while self._jobs and (not self._work or (len(self._work) <= self._ahead and self._full())):
            if pieces := self._take():  # else all were cancelled
                task = asyncio.create_task(self._run(pieces))
                self._work.add(task)
                task.add_done_callback(self._went)

    def _went(self, task: "asyncio.Task[None]") -> None:
        self._work.discard(task)
        self._go_on()

    def _full(self) -> bool:
        return max(self._characters, _LEAST * self.waiting) >= _CHARACTERS

    async def _run(self, pieces: list[tuple[_Job, slice]]) -> None:
        texts = [text for job, rows in pieces for text in job.texts[rows]]
        began = time.perf_counter()
        try:
            found = await asyncio.get_running_loop().run_in_executor(
                self._threads, self.scorer.score, texts
            )
        except Exception as exc:  # noqa: BLE001 - it belongs to those who asked
            for job, _ in pieces:
                if not job.done.done():
                    job.done.set_exception(exc)
            return
        ended, subwords = time.perf_counter(), getattr(self.scorer, "subwords", 0)
        seconds = ended - max(began, self._ended)
        if _size(texts) >= _TELLING:
            self._scored = _DECAY * self._scored + len(texts)
            self._seconds = _DECAY * self._seconds + seconds
        self._report(len(texts), subwords - self._subwords, seconds)
        self._ended, self._subwords = ended, subwords
        _hand_out(pieces, found)

    def _seconds_of_waiting(self) -> int:
        """Return the seconds until all waiting texts are scored, at least 1."""
        if not self._scored:
            return _UNKNOWN_SECONDS
        return max(1, math.ceil(self.waiting * self._seconds / self._scored))

    def _take(self) -> list[tuple[_Job, slice]]:
        """Return the next batch: pieces of the waiting requests, in turns."""
        pieces, room = list[tuple[_Job, slice]](), _CHARACTERS
        while self._jobs and (room > 0 or not pieces):
            job = self._jobs.popleft()
            rows = slice(job.taken, min(job.taken + _PIECE, len(job.texts)))
            if job.done.done():  # cancelled, or failed with an earlier piece
                self._no_longer_waiting(job.texts[job.taken :])
                continue
            room -= _size(job.texts[rows])
            pieces.append((job, rows))
            self._no_longer_waiting(job.texts[rows])
            job.taken = rows.stop
            if job.taken < len(job.texts):
                self._jobs.append(job)
        return pieces

    def _no_longer_waiting(self, texts: Sequence[str]) -> None:
        self.waiting -= len(texts)
        self._characters -= sum(map(len, texts))


def _size(texts: Sequence[str]) -> int:
    """Return the characters that texts count as."""
    return sum(max(_LEAST, len(text)) for text in texts)


def _hand_out(pieces: list[tuple[_Job, slice]], found: Predictions) -> None:
    start = 0
    for job, rows in pieces:
        count = rows.stop - rows.start
        job.found.values[:, rows] = found.values[:, start : start + count]
        start += count
        job.scored += count
        if job.scored == len(job.texts) and not job.done.done():
            job.done.set_result(job.found)
