"""Whether rows that share the id of a comment contradict each other."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class DuplicateTexts:
    """K duplicate rows of a day of N, and the rows that keep their ids."""

    #: (K,) int64: the duplicates, by their `row`.
    duplicates: NDArray[np.int64]
    #: (K,) int64: the row that keeps the id of each.
    kept: NDArray[np.int64]
    #: (N,) uint64: hashes of the texts of both, once they have been read; empty without duplicates.
    hashes: NDArray[np.uint64]

    @classmethod
    def of(
        cls, id_group: NDArray[np.int64], duplicate: NDArray[np.bool_], kept: NDArray[np.bool_]
    ) -> "DuplicateTexts":
        """Return those of a day.

        >>> found = DuplicateTexts.of(
        ...     np.array([0, 1, 0, 0]), np.array([0, 0, 1, 1], bool), np.array([1, 1, 0, 0], bool))
        >>> day = pa.record_batch({"row": [3, 2, 1, 0], "text": ["new", "old", "b", "old"]})
        >>> for _ in found.reading([day]): pass
        >>> found.contradicting
        1

        Args:
            id_group: (N,) equal for rows with the same id, from 0 to N.
            duplicate: (N,) whether a row repeats the id of one that is kept.
            kept: (N,) whether a row is kept; of each id with duplicates exactly one is.
        """
        keeper = np.zeros(len(id_group) + 1, np.int64)
        keeper[id_group[kept]] = np.flatnonzero(kept)
        rows = np.flatnonzero(duplicate)
        hashes = np.zeros(len(id_group) if rows.size else 0, np.uint64)
        return cls(duplicates=rows, kept=keeper[id_group[rows]], hashes=hashes)

    def reading(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches as they are, each with `row` and `text`, and keep the hashes."""
        wanted = np.zeros(self.hashes.size, bool)
        wanted[self.duplicates] = wanted[self.kept] = True
        for batch in batches:
            yield batch  # whoever reads it makes sure that its rows are those of the day
            if not wanted.size:
                continue
            rows = batch.column("row").to_numpy()
            here = wanted[rows]
            texts = batch.column("text").filter(pa.array(here)).to_numpy(zero_copy_only=False)
            self.hashes[rows[here]] = pd.util.hash_array(texts.astype(object), categorize=False)

    @property
    def contradicting(self) -> int:
        """How many duplicates have another text than the row that is kept."""
        return int(np.count_nonzero(self.hashes[self.duplicates] != self.hashes[self.kept]))
