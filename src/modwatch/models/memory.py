"""Work in batches that fit into the memory: they are halved when it runs out."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import torch
from accelerate.utils.memory import should_reduce_batch_size

from modwatch.errors import ModelError

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

_LEAST_BATCH = 64  # subwords


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

    def sizes(self) -> dict[str, int]:
        """Return both limits by name."""
        return {"batch_size": self.batch_size, "batch_tokens": self.batch_tokens}


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
            if not _is_lack_of_memory(exc):
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


def _is_lack_of_memory(exc: Exception) -> bool:
    return isinstance(exc, MemoryError | torch.OutOfMemoryError) or should_reduce_batch_size(exc)
