"""An index of comment ids: finds equal ids exactly, in little memory.

Ids are compared by a 64-bit hash first; only ids whose hashes agree are compared as strings. So a
collision, even a deliberate one, costs time and never a valid row.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from modwatch.quality.schema import bools

Hashing = Callable[[pa.Array], NDArray[np.uint64]]


@dataclass(frozen=True, kw_only=True)
class IdIndex:
    """The n ids of a day in their order, hashed and sorted; null ids equal nothing."""

    #: n ids.
    ids: pa.ChunkedArray
    #: (m,) uint64, ascending: hashes of the ids that are not null.
    hashes: NDArray[np.uint64]
    #: (m,) int64: where in `ids` each hash belongs; ascending among equal hashes.
    order: NDArray[np.int64]

    #: (k,) uint64 from k ids that are not null.
    hashing: Hashing

    @classmethod
    def of(cls, chunks: Sequence[pa.Array], *, hashing: Hashing | None = None) -> "IdIndex":
        """Return an index over `chunks` of strings; `hashing` is SipHash if None.

        >>> IdIndex.of([pa.array(["a", None, "b"])]).order.size
        2
        """
        ids = pa.chunked_array([_large(chunk) for chunk in chunks], type=pa.large_string())
        present = np.flatnonzero(bools(ids.is_valid()))
        hashing = hashing or _siphash
        parts = [hashing(chunk.drop_null()) for chunk in ids.chunks]
        hashes = np.concatenate([np.empty(0, np.uint64), *parts])
        by_hash = np.argsort(hashes, kind="stable")
        return cls(ids=ids, hashes=hashes[by_hash], order=present[by_hash], hashing=hashing)

    def groups(self) -> NDArray[np.int64]:
        """Return (n,) int64: equal numbers for equal ids, a number of its own for each null.

        >>> groups = IdIndex.of([pa.array(["a", "b", "a"])]).groups()
        >>> bool(groups[0] == groups[2]), bool(groups[0] == groups[1])
        (True, False)
        """
        groups = np.arange(len(self.ids), dtype=np.int64)
        equals_next = self.hashes[1:] == self.hashes[:-1]
        candidate = np.zeros(len(self.hashes), dtype=bool)
        candidate[1:] |= equals_next
        candidate[:-1] |= equals_next
        rows = self.order[candidate]
        if len(rows):
            encoded = pc.dictionary_encode(self.ids.take(pa.array(rows)).combine_chunks())
            groups[rows] = len(groups) + encoded.indices.to_numpy()
        return groups

    def found_in(self, other: Iterable[pa.Array]) -> NDArray[np.bool_]:
        """Return (n,) bool: whether each id occurs in the chunks of `other`, which are streamed.

        >>> IdIndex.of([pa.array(["a", "b"])]).found_in([pa.array(["b", "c"])]).tolist()
        [False, True]
        """
        found = np.zeros(len(self.ids), dtype=bool)
        for chunk in other:
            strings = _large(chunk).drop_null()
            hashes = self.hashing(strings)
            start = np.searchsorted(self.hashes, hashes, side="left")
            stop = np.searchsorted(self.hashes, hashes, side="right")
            rows = self.order[np.unique(_ranges(start, stop))]
            if len(rows):
                same_hash = strings.filter(pa.array(stop > start))
                ids = self.ids.take(pa.array(rows))
                found[rows] |= bools(pc.is_in(ids, value_set=same_hash))
        return found

    def positions(self, ids: pa.Array) -> NDArray[np.int64]:
        """Return (k,) int64: where each of k ids stands in the index, n for one that does not.

        An id that occurs more than once stands where it first occurs.

        >>> IdIndex.of([pa.array(["a", "b"])]).positions(pa.array(["b", "c", None])).tolist()
        [1, 2, 2]
        """
        strings = _large(ids)
        result = np.full(len(strings), len(self.ids), dtype=np.int64)
        present = np.flatnonzero(bools(strings.is_valid()))
        hashes = self.hashing(strings.drop_null())
        start = np.searchsorted(self.hashes, hashes, side="left")
        stop = np.searchsorted(self.hashes, hashes, side="right")
        step = 0
        while len(open_ := np.flatnonzero(start + step < stop)):
            asked, rows = present[open_], self.order[start[open_] + step]
            same = pc.equal(strings.take(pa.array(asked)), _flat(self.ids.take(pa.array(rows))))
            found = bools(same)
            result[asked[found]] = rows[found]
            stop[open_[found]] = 0
            step += 1
        return result


def _large(chunk: pa.Array) -> pa.Array:
    """The chunk with 64-bit offsets: a day may hold more than 2 GiB of ids."""
    return chunk.cast(pa.large_string())


def _flat(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else column.combine_chunks()


def _siphash(ids: pa.Array) -> NDArray[np.uint64]:
    strings = ids.to_numpy(zero_copy_only=False)
    return pd.util.hash_array(strings.astype(object), categorize=False)


def _ranges(start: NDArray[np.int64], stop: NDArray[np.int64]) -> NDArray[np.int64]:
    """All whole numbers of the half-open ranges [start_i, stop_i), one after another."""
    length = stop - start
    offset = np.repeat(start - (np.cumsum(length) - length), length)
    return np.asarray(offset + np.arange(length.sum()), dtype=np.int64)
