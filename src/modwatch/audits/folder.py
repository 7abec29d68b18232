"""The folder of an audit: its files by name, and what they contain."""

import json

from modwatch.audits.evidence import Event, all_of, read
from modwatch.audits.files import (
    CHAIN,
    NOTES,
    PLAN,
    RESULT,
    labels_file,
    outcomes_file,
    population_file,
    read_labels,
    read_outcomes,
    read_population,
    read_sample,
    sample_file,
)
from modwatch.common.errors import AuditError
from modwatch.statistics.audit.draw import DrawnComment
from modwatch.statistics.audit.labels import AuditLabel, Outcome
from modwatch.statistics.audit.plan import AuditPlan
from modwatch.statistics.audit.results import Document


class AuditFolder(dict[str, bytes]):
    """The files of an audit by name; AuditError for a file that is missing or cannot be read.

    Samples, populations, labels and outcomes are those of a stage, and include earlier stages.
    """

    @property
    def plan(self) -> AuditPlan:
        """The plan."""
        return AuditPlan.from_json(self._text(PLAN))

    @property
    def chain(self) -> list[Event]:
        """The steps with their notes, oldest first."""
        return read(self._text(CHAIN), self.get(NOTES, b""))

    @property
    def result(self) -> Document:
        """The result."""
        try:
            return dict(json.loads(self._text(RESULT)))
        except (ValueError, TypeError, RecursionError):
            raise AuditError(f"{RESULT} cannot be read") from None

    def times(self, action: str) -> int:
        """Return how many times a step was taken: of `drawn` and `labelled`, the last stage."""
        return len(all_of(self.chain, action))

    def sample(self, stage: int) -> tuple[DrawnComment, ...]:
        """Return the comments drawn."""
        return read_sample(self.content(sample_file(stage)))

    def population(self, stage: int) -> dict[tuple[str, str, int], int]:
        """Return the numbers of comments by column, value and stratum."""
        return read_population(self.content(population_file(stage)))

    def labels(self, stage: int) -> list[AuditLabel]:
        """Return the labels."""
        return read_labels(self.content(labels_file(stage)))

    def outcomes(self, stage: int) -> list[Outcome]:
        """Return the outcomes of the comments drawn."""
        return read_outcomes(self.content(outcomes_file(stage)))

    def content(self, name: str) -> bytes:
        """Return a file."""
        if name not in self:
            raise AuditError(f"{name} is missing")
        return self[name]

    def _text(self, name: str) -> str:
        try:
            return self.content(name).decode()
        except UnicodeDecodeError:
            raise AuditError(f"{name} is not UTF-8") from None
