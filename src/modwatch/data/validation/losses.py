"""What a day has lost: values that could not be read, and rows that are all of one kind."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import special

from modwatch.data.lake.schemas import LANDED
from modwatch.data.validation.result import InvalidRows, percentage
from modwatch.data.validation.rows import columns_of, is_valid

#: Share of a group's rows that are lost, at least, where its loss is more than chance.
_MOST = 0.9
#: Largest probability that any group loses so many rows by chance.
_CHANCE = 0.001
#: Reasons of rows that are no loss: another row has the comment.
_KEPT_ELSEWHERE = ("duplicate_id", "id_of_earlier_day")

_READ = ("row", "origin", "created_at", "language", "label", "faults")


@dataclass(kw_only=True)
class Losses:
    """Counts of a day's landed rows, made while they are read."""

    invalid: InvalidRows
    #: Valid rows by optional column and reason why its value is missing.
    faults: Counter[str] = field(default_factory=Counter)
    #: Rows, and lost rows, by kind and name of their group.
    rows: Counter[tuple[str, str]] = field(default_factory=Counter)
    lost: Counter[tuple[str, str]] = field(default_factory=Counter)

    #: The columns that are read.
    columns = _READ

    def reading(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches, and count their rows."""
        schema = pa.schema([LANDED.field(name) for name in _READ])
        for batch in batches:
            yield batch
            valid = pa.array(is_valid(batch, self.invalid))
            lost = pa.array(self._lost[batch.column("row").to_numpy()])
            columns = columns_of(batch, schema)
            self.faults.update(pc.list_flatten(columns["faults"].filter(valid)).to_pylist())
            for kind, names in _groups(columns).items():
                for counter, part in ((self.rows, names), (self.lost, names.filter(lost))):
                    for found in pc.value_counts(part.drop_null()).to_pylist():
                        counter[kind, found["values"]] += found["counts"]

    @cached_property
    def _lost(self) -> NDArray[np.bool_]:
        """(n,) whether each row is lost."""
        known = self.invalid.reasons
        kept = [0, *(known.index(name) + 1 for name in _KEPT_ELSEWHERE if name in known)]
        return np.isin(self.invalid.reason, kept, invert=True)

    @property
    def most_faults(self) -> int:
        """The valid rows of the column with most values that could not be read."""
        columns = Counter[str]()
        for fault, number in self.faults.items():
            columns[fault.partition(":")[0]] += number
        return max(columns.values(), default=0)

    def concentrated(self) -> list[str]:
        """Return the groups that lost (nearly) all rows, where chance loses a few anywhere.

        Of k rows of a group, as many are lost by chance as of a binomial distribution with the
        day's share of lost rows.
        """
        found = []
        for group, number in self.lost.items():
            size = self.rows[group]
            chance = special.bdtrc(number - 1, size, self._lost.mean()) * len(self.rows)
            if number >= _MOST * size and chance < _CHANCE:
                found.append(f"{percentage(number, size)} of {size:,} rows of {' '.join(group)}")
        return found


def _groups(columns: dict[str, pa.Array]) -> dict[str, pa.Array]:
    """Return the name of each row's group by kind; null where it has none."""
    hours = pc.hour(columns["created_at"]).cast(pa.string())
    return {
        "language": columns["language"],
        "label": columns["label"].cast(pa.string()),
        "hour": pc.binary_join_element_wise(hours, "UTC", " "),
        "file": pc.replace_substring_regex(columns["origin"], ":[^:]*$", ""),
    }
