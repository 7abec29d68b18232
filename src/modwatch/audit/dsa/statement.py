"""What a provider states about its automated means in one reporting period.

Accuracy, precision and recall are those of decisions that automated means took. What a person
decided is counted apart, and enters the rates by what automated means had decided of it before, or
not at all: `AutomatedMeans.reviewed_in_rates` says which.
"""

import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date

from modwatch.audit.dsa.characters import HARMFUL
from modwatch.audit.dsa.errors import DsaReportError
from modwatch.audit.dsa.vocabulary import (
    LANGUAGES,
    NAM_TOTAL,
    NAM_TRUSTED_FLAGGER,
    OWN_INITIATIVE,
    TOTAL,
    Indicator,
    Provider,
    counts_of,
)


@dataclass(frozen=True, kw_only=True)
class Missing:
    """Why there is no figure."""

    #: In plain words, for the public; no full stop is needed.
    reason: str
    #: Labels that there were, from 0 on; None: not a matter of labels.
    labels: int | None = None
    #: Labels that would do, more than there were; None: unknown.
    needed: int | None = None

    def __post_init__(self) -> None:
        refuse_unusable("reason", self.reason)
        labels = 0 if self.labels is None else _whole("labels", self.labels)
        if self.needed is not None and _whole("needed", self.needed) <= labels:
            raise DsaReportError("needed: must be more labels than there were.")


@dataclass(frozen=True, kw_only=True)
class Rate:
    """A share with its interval, 0 ≤ low ≤ value ≤ high ≤ 1."""

    value: float
    #: Ends of the interval.
    low: float
    high: float
    #: Labels that it was estimated from, at least 1.
    labels: int
    #: How it was estimated, in plain words, for the public.
    method: str
    #: How often such an interval holds, in (0, 1).
    level: float = 0.95

    def __post_init__(self) -> None:
        refuse_unusable("method", self.method)
        if not 0 <= self.low <= self.value <= self.high <= 1:
            raise DsaReportError("value: a rate needs 0 ≤ low ≤ value ≤ high ≤ 1.")
        if not 0 < self.level < 1:
            raise DsaReportError("level: must lie between 0 and 1.")
        if _whole("labels", self.labels) < 1:
            raise DsaReportError("labels: a rate needs one; without any, state Missing.")


@dataclass(frozen=True, kw_only=True)
class ScopeFigures:
    """The five figures of one scope.

    The counts are of measures, for the two NAM scopes of notices. The rates are those of decisions
    that automated means took.
    """

    #: By automated means alone.
    solely: int | Missing
    #: All others: a person took, confirmed or changed them, with or without a model's help.
    not_solely: int | Missing
    accuracy: Rate | Missing
    precision: Rate | Missing
    recall: Rate | Missing
    #: What else the public is to know of the two counts; it goes into their context.
    note: str = ""

    def __post_init__(self) -> None:
        if self.note:
            refuse_unusable("note", self.note)
        for name, count in (("solely", self.solely), ("not_solely", self.not_solely)):
            if not isinstance(count, Missing):
                _whole(name, count)

    @classmethod
    def missing(cls, reason: str) -> "ScopeFigures":
        """Return a scope of which nothing is known, for one reason.

        >>> ScopeFigures.missing("no comment was in this language").recall.reason
        'no comment was in this language'
        """
        none = Missing(reason=reason)
        return cls(solely=none, not_solely=none, accuracy=none, precision=none, recall=none)

    def of(self, indicator: Indicator) -> "int | Rate | Missing":
        """Return the figure that an indicator of the scope tells."""
        match indicator:
            case Indicator.MEASURES_SOLELY | Indicator.NOTICES_SOLELY:
                return self.solely
            case Indicator.MEASURES_NOT | Indicator.NOTICES_NOT:
                return self.not_solely
            case Indicator.ACCURACY:
                return self.accuracy
            case Indicator.PRECISION:
                return self.precision
            case Indicator.RECALL:
                return self.recall


@dataclass(frozen=True, kw_only=True)
class AutomatedMeans:
    """Part 8 of a transparency report: one service, one period.

    Raises DsaReportError where scopes are left out or too many, or a part exceeds its whole.
    """

    service: str
    #: First and last day, both included.
    start: date
    end: date
    provider: Provider
    #: Which audit the rates come from.
    audit: str
    #: By scope: exactly those of `provider.scopes`.
    scopes: Mapping[str, ScopeFigures]
    #: Whether the rates are of all that automated means decided, also where a person decided
    #: afterwards; otherwise they are of what no person looked at.
    reviewed_in_rates: bool = False

    def __post_init__(self) -> None:
        _about(self.service, self.start, self.end)
        refuse_unusable("audit", self.audit)
        asked, told = set(self.provider.scopes), set(self.scopes)
        if asked != told:
            names = ", ".join(sorted(map(str, asked ^ told))[:5])
            raise DsaReportError(
                f"scopes: of {self.provider} exactly its own are asked; too many or left out: "
                f"{names}. State ScopeFigures.missing where nothing is known."
            )
        for part, whole, indicator in exceeding(self._counts()):
            raise DsaReportError(f"scopes: {part} exceeds {whole} in '{indicator.value}'.")

    def _counts(self) -> dict[tuple[Indicator, str], int]:
        return {
            (indicator, scope): count
            for scope, figures in self.scopes.items()
            for indicator in counts_of(scope)
            if not isinstance(count := figures.of(indicator), Missing | Rate)
        }


@dataclass(frozen=True, kw_only=True)
class Qualitative:
    """What part 11 of a transparency report says on automated means, in free text."""

    service: str
    #: First and last day, both included.
    start: date
    end: date
    #: What the automated means are.
    description: str
    #: Indicators of their accuracy and their possible rate of error.
    accuracy: str
    #: What exactly they are used for.
    purposes: str
    #: What keeps them from doing harm.
    safeguards: str

    def __post_init__(self) -> None:
        _about(self.service, self.start, self.end)
        for name in ("description", "accuracy", "purposes", "safeguards"):
            refuse_unusable(name, getattr(self, name))


def exceeding(
    counts: Mapping[tuple[Indicator, str], int],
) -> Iterator[tuple[str, str, Indicator]]:
    """Yield part, whole and indicator wherever a scope counts more than the one it is part of.

    >>> counts = {(Indicator.MEASURES_NOT, TOTAL): 3, (Indicator.MEASURES_NOT, "de"): 4}
    >>> [(part, whole) for part, whole, _ in exceeding(counts)]
    [('de', 'Total number')]
    """
    wholes = dict.fromkeys((OWN_INITIATIVE, *LANGUAGES), TOTAL)
    wholes[NAM_TRUSTED_FLAGGER] = NAM_TOTAL
    for (indicator, scope), count in counts.items():
        whole = wholes.get(scope)
        if whole is not None and count > counts.get((indicator, whole), count):
            yield scope, whole, indicator


def _about(service: str, start: date, end: date) -> None:
    refuse_unusable("service", service)
    if end < start:
        raise DsaReportError("end: the period ends before it begins.")


def refuse_unusable(name: str, text: str) -> None:
    """Raise DsaReportError for a text of the report that is empty or has control characters."""
    if not text.strip():
        raise DsaReportError(f"{name}: must not be empty.")
    harm = HARMFUL.search(text)
    if harm:
        raise DsaReportError(
            f"{name}: character {harm.start() + 1} is a control character; remove it."
        )


def _whole(name: str, count: int) -> int:
    try:
        whole = operator.index(count)
    except TypeError as error:
        raise DsaReportError(f"{name}: must be a whole number.") from error
    if whole < 0:
        raise DsaReportError(f"{name}: must not be negative.")
    return whole
