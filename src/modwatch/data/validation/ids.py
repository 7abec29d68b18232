"""Comment ids of a day: which rows share one.

Ids are compared by a 64-bit hash first; only ids whose hashes agree are compared as strings. So a
collision, even a deliberate one, costs time and never a valid row.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from modwatch.data.validation.rows import bools

Hashing = Callable[[pa.Array], NDArray[np.uint64]]


@dataclass(frozen=True, kw_only=True)
class IdIndex:
    """The n ids of a day in their order, hashed and sorted; null ids equal nothing."""

    #: n ids.
    ids: pa.LargeStringArray
    #: (m,) uint64, ascending: hashes of the ids that are not null.
    hashes: NDArray[np.uint64]
    #: (m,) int64: where in `ids` each hash belongs; ascending among equal hashes.
    order: NDArray[np.int64]
    #: (k,) uint64 from k ids that are not null.
    hashing: Hashing

    @classmethod
    def from_chunks(
        cls, chunks: Sequence[pa.Array], *, hashing: Hashing | None = None
    ) -> "IdIndex":
        """Return an index over `chunks` of strings; `hashing` is SipHash if None.

        >>> IdIndex.from_chunks([pa.array(["a", None, "b"])]).order.size
        2
        """
        ids = pa.concat_arrays([_large(pa.array([], pa.string())), *map(_large, chunks)])
        present = np.flatnonzero(bools(ids.is_valid()))
        hashing = hashing or siphash
        hashes = np.concatenate(
            [np.empty(0, np.uint64), *(hashing(chunk.drop_null()) for chunk in chunks)]
        )
        by_hash = np.argsort(hashes, kind="stable")
        return cls(ids=ids, hashes=hashes[by_hash], order=present[by_hash], hashing=hashing)

    def positions(self, ids: pa.Array) -> NDArray[np.int64]:
        """Return (k,) int64: where each of k ids first occurs in the index, n if it does not.

        >>> index = IdIndex.from_chunks([pa.array(["a", "b", "a"])])
        >>> index.positions(pa.array(["b", "c", None, "a"])).tolist()
        [1, 3, 3, 0]
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
            same = bools(pc.equal(strings.take(pa.array(asked)), self.ids.take(pa.array(rows))))
            result[asked[same]] = rows[same]
            stop[open_[same]] = 0
            step += 1
        return result


def _large(chunk: pa.Array) -> pa.Array:
    """Return the chunk with 64-bit offsets: a day may hold more than 2 GiB of ids."""
    return chunk.cast(pa.large_string())


def siphash(strings: pa.Array) -> NDArray[np.uint64]:
    """Return a hash of each string; there must be no null."""
    values = strings.to_numpy(zero_copy_only=False).astype(object)
    return pd.util.hash_array(values, categorize=False)
