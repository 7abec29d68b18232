"""The account of what a source holds: each of its lines and records ends in exactly one place."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from modwatch.common.errors import SourceError

#: Places that are no fault, in the order in which they are shown; `used` comes last.
_NAMES = {
    "header": "Header lines",
    "blank_line": "Blank lines",
    "continued": "Further lines of a record",
    "blank_cell": "Blank cells",
    "repeated": "Records that repeat another one in every value",
    "other_day": "Records of other days",
    "unusual_day": "Records of days before 1990 or to come, on no day",
    "undated": "Records without a possible time, on no day",
    "unreadable_file": "Files that cannot be read, of unknown days",
    "deleted": "Records of deleted comments",
    "merged": "Records merged with another",
    "landed": "Landed records",
    "used": "Used records",
}


@dataclass(kw_only=True)
class Account:
    """How many lines and records a source has, and where they ended.

    >>> account = Account(read=3)
    >>> account.count("header")
    >>> account.count("no_label", where="labels.csv, line 2")
    >>> account.count("used")
    >>> account.close("labels.csv")
    >>> account.rows()[1]
    ('no_label', 1, 'labels.csv, line 2')
    """

    #: Lines of text files, records of other sources.
    read: int = 0
    #: Number by place; a reason why records were left out is one.
    places: Counter[str] = field(default_factory=Counter)
    #: Where the first one of a place is, for those that were left out.
    first: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.places = Counter(self.places)

    def count(self, place: str, number: int = 1, *, where: str | None = None) -> None:
        """Count records of one place; `where` is their file and line, without any value."""
        self.places[place] += number
        if where is not None and place != "used":
            self.first.setdefault(place, where)

    def move(self, place: str, parts: Mapping[str, int]) -> None:
        """Replace a place by its parts; `close` finds out whether they are as many."""
        del self.places[place]
        self.places.update(parts)

    def add(self, other: "Account") -> None:
        """Add the account of another source."""
        self.read += other.read
        self.places.update(other.places)
        self.first = other.first | self.first

    def close(self, source: str) -> None:
        """Raise SourceError unless all that was read ended in a place."""
        ended = self.places.total()
        if ended != self.read:
            raise SourceError(
                f"{source} has {self.read:,} lines and records, but {ended:,} are accounted for; "
                "it changed while it was read, or this is a fault of Modwatch: run again, and "
                "report it if it comes back."
            )

    def require_most(self, source: str, causes: Mapping[str, str]) -> None:
        """Raise SourceError if most records were left out for one of the reasons in `causes`."""
        records = sum(self.left_out.values()) + self.places["merged"] + self.places["used"]
        if any(2 * self.places[reason] > records for reason in causes):
            raise SourceError(
                f"{source}: most of {records:,} records are left out: {self.faults(causes)}."
            )

    def faults(self, causes: Mapping[str, str]) -> str:
        """Return how many records were left out, by reason, with the first and the cause.

        >>> account = Account(places={"no_label": 1}, first={"no_label": "a.csv, line 2"})
        >>> account.faults({"no_label": "there is none"})
        'no_label 1 (the first: a.csv, line 2; there is none)'
        """
        return ", ".join(
            f"{name} {number:,} (the first: {'; '.join(filter(None, about))})"
            for name, number in self.left_out.items()
            for about in [(self.first.get(name, ""), causes.get(name))]
        )

    def rows(self) -> list[tuple[str, int, str]]:
        """Return name, number and first occurrence of each place that is not empty."""
        order = [*list(_NAMES)[:-2], *sorted(self.places.keys() - _NAMES), "landed", "used"]
        return [
            (_NAMES.get(place, place), self.places[place], self.first.get(place, ""))
            for place in order
            if self.places[place]
        ]

    @classmethod
    def of(cls, used: int, left_out: Mapping[str, int] | None = None) -> "Account":
        """Return the account of records that were counted by reason only.

        >>> Account.of(2, {"no_label": 1}).read
        3
        """
        places = Counter({"used": used, **(left_out or {})})
        return cls(read=places.total(), places=places)

    @property
    def left_out(self) -> dict[str, int]:
        """The records that were not used, by reason."""
        return {name: n for name, n in self.places.items() if n and name not in _NAMES}
