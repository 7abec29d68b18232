"""Where torch computes, and batches that fit into the memory there."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict, TypeVar

import torch
from accelerate.utils.memory import should_reduce_batch_size

from modwatch.common.errors import ModelError

logger = logging.getLogger(__name__)
Result = TypeVar("Result")
_LEAST_BATCH = 64  # subwords
#: Pieces of work without a shortage before `LastingLimits` are doubled. Each attempt repeats one
#: piece at most, so that a shortage that lasts costs a twentieth of the time.
_SUCCESSES = 20


def device_of(name: str) -> torch.device:
    """Return the device that `name` means: auto, cpu, cuda or cuda:n.

    `auto` is the first CUDA device, or the CPU where there is none.

    Raises:
        ModelError: there is no such device.

    >>> device_of("cpu").type
    'cpu'
    """
    if name == "auto":
        return torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
    if name == "cpu":
        return torch.device("cpu")
    kind, _, number = name.partition(":")
    if kind != "cuda" or not (number.isdecimal() or name == "cuda"):
        raise ModelError(f"the device must be auto, cpu, cuda or cuda:n, got {name!r}")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if int(number or 0) >= count:
        raise ModelError(
            f"the device {name} does not exist: torch sees {count} CUDA devices; "
            "set MODWATCH_DEVICE to auto or cpu"
        )
    return torch.device("cuda", int(number or 0))


def devices_of(name: str) -> list[torch.device]:
    """Return the devices that training may use: every CUDA device for `auto` and `cuda`.

    Raises:
        ModelError: there is no such device.

    >>> [device.type for device in devices_of("cpu")]
    ['cpu']
    """
    first = device_of(name)
    if first.type == "cuda" and ":" not in name:
        return [torch.device("cuda", number) for number in range(torch.cuda.device_count())]
    return [first]


def has_bf16(device: torch.device) -> bool:
    """Return whether the device multiplies matrices in bfloat16 faster than in fp32."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    supported = torch.cpu._is_avx512_bf16_supported, torch.cpu._is_amx_tile_supported
    return any(check() for check in supported)


class Sizes(TypedDict):
    """The limits of a batch, as arguments."""

    batch_size: int
    batch_tokens: int


@dataclass(frozen=True, kw_only=True)
class BatchLimits:
    """The limits of a batch.

    >>> limits = BatchLimits(batch_size=32, batch_tokens=4_096)
    >>> limits.halved()
    BatchLimits(batch_size=16, batch_tokens=2048, halvings=1)
    >>> limits.without_gradients(torch.device("cpu")).sizes()
    {'batch_size': 256, 'batch_tokens': 4096}
    """

    #: Most comments.
    batch_size: int
    #: Most subwords, with padding.
    batch_tokens: int
    #: How often the limits were halved.
    halvings: int = 0

    def halved(self) -> "BatchLimits":
        """Return half the limits; at least one comment."""
        return BatchLimits(
            batch_size=max(1, self.batch_size // 2),
            batch_tokens=max(1, self.batch_tokens // 2),
            halvings=self.halvings + 1,
        )

    def without_gradients(self, device: torch.device) -> "BatchLimits":
        """Return the limits for work that keeps no activations, of which more fits.

        A CPU gets more comments, not more subwords: a batch that is too large for its caches takes
        up to twice as long.
        """
        more = 1 if device.type == "cpu" else 4
        return BatchLimits(batch_size=8 * self.batch_size, batch_tokens=more * self.batch_tokens)

    def sizes(self) -> Sizes:
        """Return both limits by name."""
        return {"batch_size": self.batch_size, "batch_tokens": self.batch_tokens}


class LastingLimits:
    """Limits of the batches of one piece of work after another, in a process that may live long.

    They are halved when memory runs out, as in `within_memory`, and doubled again after some pieces
    of work without a shortage: what took the memory may be gone.
    """

    def __init__(self, most: BatchLimits) -> None:
        """Begin with `most`, which is never exceeded."""
        self._most = self._current = most
        self._successes = 0

    @property
    def current(self) -> BatchLimits:
        """The limits of the next piece of work."""
        return self._current

    def run(
        self, run: Callable[[BatchLimits], Result], *, work: str, device: torch.device
    ) -> Result:
        """Return `run(limits)`; arguments and errors are those of `within_memory`."""

        def attempt(limits: BatchLimits) -> Result:
            if limits.halvings > self._current.halvings:
                self._current, self._successes = limits, 0
            return run(limits)

        result = within_memory(attempt, self._current, work=work, device=device)
        self._successes += 1
        if self._current != self._most and self._successes >= _SUCCESSES:
            self._current, self._successes = self._doubled(), 0
        return result

    def _doubled(self) -> BatchLimits:
        """Return the limits with one halving less, without the remainders that halving dropped."""
        limits = self._most
        for _ in range(self._current.halvings - self._most.halvings - 1):
            limits = limits.halved()
        return limits


def within_memory(
    run: Callable[[BatchLimits], Result], limits: BatchLimits, *, work: str, device: torch.device
) -> Result:
    """Return `run(limits)`, called again with half the limits as often as memory runs out.

    Args:
        run: does all the work, from its start.
        limits: of a batch.
        work: what the log calls it.
        device: where it is done.

    Raises:
        ModelError: a batch of one comment does not fit into the memory.
    """
    while True:
        try:
            return run(limits)
        except (RuntimeError, MemoryError) as exc:
            lacks_memory = isinstance(exc, MemoryError | torch.OutOfMemoryError)
            if not (lacks_memory or should_reduce_batch_size(exc)):
                raise
            if limits.batch_size == 1 or limits.batch_tokens < _LEAST_BATCH:
                raise ModelError(
                    f"{work}: out of memory on {device} with a batch of one comment; use a smaller "
                    "encoder, a smaller `max_length` or a larger machine"
                ) from exc
            limits = limits.halved()
        # Outside the handler, which would keep the tensors of the failed call alive.
        logger.warning(
            "Out of memory: %s starts again with half the batch, at most %d comments and %d "
            "subwords.",
            work,
            limits.batch_size,
            limits.batch_tokens,
            extra={"event": "batch_halved", "work": work, **limits.sizes()},
        )
