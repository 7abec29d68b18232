import csv
import io
from dataclasses import dataclass, field
from datetime import date

import pytest

from modwatch.audits.dsa.statement import (
    AutomatedMeans,
    Missing,
    Qualitative,
    Rate,
    ScopeValues,
    automated_means_csv,
    qualitative_csv,
)
from modwatch.audits.dsa.validation import validate
from modwatch.audits.dsa.vocabulary import (
    NAM_TOTAL,
    NAM_TRUSTED_FLAGGER,
    OWN_INITIATIVE,
    TOTAL,
    Provider,
)

COUNTS = {
    TOTAL: (900, 400),
    OWN_INITIATIVE: (700, 100),
    NAM_TOTAL: (200, 300),
    NAM_TRUSTED_FLAGGER: (0, 30),
    "de": (500, 200),
    "en": (200, 100),
}


def figures(scope: str) -> ScopeValues:
    """Some of everything: counts, rates, and figures that are missing for different reasons."""
    if scope not in COUNTS:
        return ScopeValues.missing("no content in this language was moderated")
    solely, others = COUNTS[scope]
    if not solely:
        none = Missing(reason="automated means processed none of these notices alone")
        return ScopeValues(solely=0, not_solely=others, accuracy=none, precision=none, recall=none)
    recall: Rate | Missing = Rate(
        value=0.83126, low=0.70006, high=0.91234, labels=1200, method="two-phase sample"
    )
    if scope == "en":
        recall = Missing(reason="too few labels", labels=18)
    return ScopeValues(
        solely=solely,
        not_solely=others,
        accuracy=Rate(value=0.97, low=0.96, high=0.98, labels=800, method="stratified sample"),
        precision=Rate(value=0.9, low=0.85, high=0.94, labels=300, method="sample of removals"),
        recall=recall,
    )


@pytest.fixture
def report():
    """Make a report of a kind of provider."""

    def make(provider: Provider = Provider.PLATFORM, **changes: object) -> AutomatedMeans:
        half = provider is Provider.VLOP
        fields: dict = {
            "service": "Example Forum",
            "start": date(2026, 1, 1),
            "end": date(2026, 6, 30) if half else date(2026, 12, 31),
            "provider": provider,
            "audit": "2026-h1",
            "scopes": {scope: figures(scope) for scope in provider.scopes},
        }
        return AutomatedMeans(**fields | changes)

    return make


@pytest.fixture
def qualitative():
    return Qualitative(
        service="Example Forum",
        start=date(2026, 1, 1),
        end=date(2026, 12, 31),
        description='A model scores each comment, "toxic" or not;\nthe rest people read.',
        accuracy="Recall is audited twice a year, with an interval.",
        purposes="Removal of hate speech in comments.",
        safeguards="Appeals are read by people, and a random sample is labelled twice.",
    )


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
def tables(report, qualitative):
    """The files as rows: a very large platform's, an online platform's, and the texts."""
    return {
        "vlop": parsed(automated_means_csv(report(Provider.VLOP))),
        "platform": parsed(automated_means_csv(report(Provider.PLATFORM))),
        "texts": parsed(qualitative_csv(qualitative)),
    }
