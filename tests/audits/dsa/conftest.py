import csv
import io
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from modwatch.audits.dsa.validation import validate

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "dsa"


@dataclass
class Table:
    """A file as rows that tests change."""

    rows: list[list[str]]
    names: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.names = list(self.rows[0])

    def at(self, *words: str) -> int:
        """Return the index of the first row, header apart, that has these cells."""
        return next(
            at for at, row in enumerate(self.rows) if at and all(word in row for word in words)
        )

    def put(self, at: int, column: str, cell: str) -> None:
        self.rows[at][self.names.index(column)] = cell

    def get(self, at: int, column: str) -> str:
        return self.rows[at][self.names.index(column)]

    def content(self, ending: str = "\r\n", delimiter: str = ",") -> bytes:
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator=ending, delimiter=delimiter).writerows(self.rows)
        return text.getvalue().encode()

    def rules(self) -> list[str]:
        """Return the rules of all findings."""
        return [item.rule for item in validate(self.content())]


def parsed(content: bytes) -> Table:
    return Table([list(row) for row in csv.reader(io.StringIO(content.decode(), newline=""))])


@pytest.fixture
def tables():
    """Files as rows: a very large platform's, an online platform's, and the texts."""
    names = {"vlop": "very_large_platform", "platform": "automated_means", "texts": "qualitative"}
    return {kind: parsed((GOLDEN / f"{name}.csv").read_bytes()) for kind, name in names.items()}
