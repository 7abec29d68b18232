"""Batches of comments of similar length, within a budget of subwords."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Sampler

#: Lengths are rounded up to multiples, among which the comments of a batch are drawn at random.
_ROUNDED = 8


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Padded subword ids of N comments."""

    ids: Tensor  # (N, T) int64
    mask: Tensor  # (N, T) int64; 1 for subwords, 0 for padding

    def to(self, device: torch.device) -> "Batch":
        """Return the batch on `device`; a copy to CUDA from pinned memory is not waited for."""
        free = device.type == "cuda"
        ids, mask = (part.to(device, non_blocking=free) for part in (self.ids, self.mask))
        return Batch(ids=ids, mask=mask)


def padded(sequences: Sequence[Sequence[int]], pad_id: int) -> Batch:
    """Return sequences of ids as one batch, padded to the longest.

    >>> padded([[7, 8], [9]], pad_id=0).ids.tolist()
    [[7, 8], [9, 0]]
    """
    lengths = np.fromiter(map(len, sequences), dtype=np.int64, count=len(sequences))
    mask = np.arange(lengths.max()) < lengths[:, None]  # (N, T)
    ids = np.full(mask.shape, pad_id, dtype=np.int64)
    ids[mask] = np.fromiter(chain.from_iterable(sequences), dtype=np.int64, count=lengths.sum())
    return Batch(ids=torch.from_numpy(ids), mask=torch.from_numpy(mask.astype(np.int64)))


def on_device(batches: Iterable[Batch], device: torch.device) -> Iterator[Batch]:
    """Yield the batches on `device`, each made when it is asked for.

    On CUDA they are copied in a stream of their own: while the device works on one batch, the next
    is made and copied. The work on a batch must be in the stream that is current here.
    """
    if device.type != "cuda":
        yield from (batch.to(device) for batch in batches)
        return
    work = torch.cuda.current_stream(device)
    copies = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    for batch in batches:
        pinned = Batch(ids=batch.ids.pin_memory(), mask=batch.mask.pin_memory())
        with torch.cuda.stream(copies):
            there = pinned.to(device)
        work.wait_stream(copies)
        for part in (there.ids, there.mask):
            part.record_stream(work)  # its memory is not reused before the work is done
        yield there


def length_buckets(
    lengths: Sequence[int] | NDArray[np.int64], *, token_budget: int, most: int
) -> Iterator[NDArray[np.intp]]:
    """Yield the rows of batches of similar length, shortest comments first; each row once.

    A batch, padded to its longest comment, has at most `token_budget` tokens and at most `most`
    comments; a comment longer than the budget is a batch of its own. The sort is stable, so the
    same lengths give the same batches.

    >>> [rows.tolist() for rows in length_buckets([5, 1, 1], token_budget=6, most=8)]
    [[1, 2], [0]]
    """
    length = np.asarray(lengths, dtype=np.int64)
    order = np.argsort(length, kind="stable")
    start = 0
    while start < len(order):
        end = _end(length[order], start, token_budget, most)
        yield order[start:end]
        start = end


class ShuffledBuckets(Sampler[list[int]]):
    """Batches for training: similar length, in random order, the same for the same epoch and seed.

    Every epoch has the same number of batches.
    """

    def __init__(self, lengths: Sequence[int], *, token_budget: int, most: int, seed: int) -> None:
        self._lengths = -(-np.asarray(lengths, dtype=np.int64) // _ROUNDED) * _ROUNDED
        self._limits = {"token_budget": token_budget, "most": most}
        self._seed, self._epoch = seed, 0
        self._count = sum(1 for _ in length_buckets(self._lengths, **self._limits))

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch whose batches follow."""
        self._epoch = epoch

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[list[int]]:
        rng = np.random.default_rng([self._seed, self._epoch])
        order = rng.permutation(len(self._lengths))
        buckets = list(length_buckets(self._lengths[order], **self._limits))
        for bucket in rng.permutation(len(buckets)):
            yield order[buckets[bucket]].tolist()


def _end(sorted_length: NDArray[np.int64], start: int, token_budget: int, most: int) -> int:
    """Return the end of the batch that begins at `start`, at least `start + 1`."""
    candidates = sorted_length[start : start + most]
    padded = candidates * np.arange(1, len(candidates) + 1)  # ascending
    return start + max(1, int(np.searchsorted(padded, token_budget, side="right")))
