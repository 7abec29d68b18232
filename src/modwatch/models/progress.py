"""What a training is doing: its phases, the time left, and a line every 20 seconds."""

import resource
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Self

#: Seconds between two lines, and between two looks at whether one is due.
_EVERY, _TICK = 20.0, 1.0
#: Seconds of the phases that are not planned, at the end, on a machine with two cores.
_FIXED = 10.0
#: Phases of a network that take turns; a network begins all others once, in order.
_IN_TURN = {"training", "evaluation"}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The work of a training, before its first step.

    A unit is the work on one subword in training, forwards and backwards.
    """

    #: Units of each phase of each network (1…networks; 0: of all together).
    units: Mapping[tuple[str, int], float]
    #: Networks that are trained at a time.
    workers: int = 1


@dataclass(frozen=True, kw_only=True)
class Progress:
    """State of a training run, for the callback: at the start of a phase, and after each batch."""

    phase: str = "training"
    #: 1…networks; 0: of all together.
    network: int = 0
    networks: int = 0
    #: Steps of `training`, batches of other phases; from 0.
    step: int = 0
    steps: int = 1
    #: With the first state after the comments are tokenised.
    plan: Plan | None = None


@dataclass
class _Work:
    """One phase of one network."""

    units: float = 0.0
    #: Share that was done when this run began, and is now; None: not begun.
    first: float | None = None
    done: float = 0.0
    seconds: float = 0.0
    closed: bool = False

    @property
    def made(self) -> float:
        """Units that `seconds` were spent on."""
        return 0.0 if self.first is None else (self.done - self.first) * self.units


class TrainingProgress:
    """Shows what a training is doing.

    There is a line every 20 seconds with the time left, also where a single batch takes longer, and
    one at the end of each phase with its time and the peak memory of the process. The time left is
    that of all planned work, at the rate so far.

    >>> seconds = iter([0.0, 0.0, 0.0, 10.0, 20.0, 30.0])
    >>> show = TrainingProgress(print, clock=lambda: next(seconds))
    >>> show(Progress(plan=Plan(units={("training", 1): 300.0, ("posterior", 1): 100.0})))
    >>> for step in range(4):
    ...     show(Progress(network=1, networks=1, step=step, steps=100))
    training: step 2 of 100, 0:22:03 left
    """

    def __init__(
        self,
        say: Callable[[str], None] = lambda _: None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; `say` gets each line."""
        self.say, self._clock = say, clock
        self._works: dict[tuple[str, int], _Work] = {}
        self._workers = 1
        self._state: Progress | None = None
        #: When each network was heard of last, and when the phase now shown began.
        self._heard: dict[int, float] = {}
        self._begun = clock()
        self._due = self._begun + _EVERY
        self._lock, self._ended = threading.RLock(), threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop; nothing is shown afterwards."""
        self._ended.set()
        self._thread.join()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Show the block as a phase without batches."""
        self(Progress(phase=name))
        yield
        self(Progress(phase=name, step=1))

    def __call__(self, state: Progress) -> None:
        """Take note of a state, and show it if a line is due."""
        with self._lock:
            now = self._clock()
            if state.plan is not None:
                self._works |= {key: _Work(units) for key, units in state.plan.units.items()}
                self._workers = state.plan.workers
                return
            if self._state is None or self._state.phase != state.phase:
                self._begun = now
            self._measure(state, now)
            self._state = state
            self._show(now)

    def tick(self) -> None:
        """Show the state if a line is due, although nothing was heard."""
        with self._lock:
            self._show(self._clock())

    def seconds_left(self) -> float | None:
        """Return the seconds until the model is registered; None where nothing was measured."""
        made = sum(work.made for work in self._works.values())
        if not made:
            return None
        rate = sum(work.seconds for work in self._works.values() if work.made) / made
        return _FIXED + sum(
            (1 - work.done) * work.units * rate / (self._workers if network else 1)
            for (_, network), work in self._works.items()
        )

    def _measure(self, state: Progress, now: float) -> None:
        """Add the time since the network was heard of to the phase; close those before it."""
        key = state.phase, state.network
        work = self._works.setdefault(key, _Work())
        share = state.step / state.steps
        if work.first is None or share < work.done:  # it begins, or again with half the batch
            work.first, work.seconds = share, 0.0
            for (phase, network), other in self._works.items():
                in_turn = other is work or {phase, state.phase} <= _IN_TURN
                if not in_turn and (not state.network or network in (0, state.network)):
                    self._close(phase, network, other)
        else:
            work.seconds += now - self._heard.get(state.network, now)
        work.done, self._heard[state.network] = share, now
        if share == 1:
            self._close(*key, work)

    def _close(self, phase: str, network: int, work: _Work) -> None:
        """Show what a phase took, once; early stopping may have ended it."""
        if work.closed or work.first is None:
            return
        several = max(number for _, number in self._works) > 1
        of = f" of network {network}" * (network > 0 and several)
        took = timedelta(seconds=round(work.seconds))
        self.say(f"{phase}{of} took {took}; peak memory so far {_peak_memory()}")
        work.units, work.first, work.done, work.closed = work.made, 0.0, 1.0, True

    def _show(self, now: float) -> None:
        if self._state is None or now < self._due:
            return
        self._due = now + _EVERY
        state = self._state
        network = f"network {state.network} of {state.networks}, " * (state.networks > 1)
        unit = "step" if state.phase == "training" else "batch"
        count = f"{unit} {state.step:,} of {state.steps:,}" if state.steps > 1 else ""
        line = f"{state.phase}: {network}{count}".removesuffix(": ")
        left = self.seconds_left()
        if left is None:
            self.say(f"{line}, {timedelta(seconds=round(now - self._begun))} so far")
            return
        left = max(0.0, left - (now - self._heard[state.network]))
        self.say(f"{line}, {timedelta(seconds=round(left))} left")

    def _watch(self) -> None:
        while not self._ended.wait(_TICK):
            self.tick()


def _peak_memory() -> str:
    used = f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GiB"
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        used += f", on the GPU {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB"
    return used
