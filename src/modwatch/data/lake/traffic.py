"""How many rows of each table were read and written, for the log of a task."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """Rows by table; a row that was read twice counts twice.

    >>> traffic = Traffic()
    >>> traffic.read["comments"] += 2031
    >>> traffic.written.update(scores=2030, quarantine=1)
    >>> str(traffic)
    'read: comments 2,031; wrote: scores 2,030, quarantine 1'
    """

    read: Counter[str] = field(default_factory=Counter)
    written: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        return f"read: {_listed(self.read)}; wrote: {_listed(self.written)}"


def _listed(rows: Counter[str]) -> str:
    return ", ".join(f"{table} {count:,}" for table, count in rows.items()) or "nothing"
