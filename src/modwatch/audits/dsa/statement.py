"""A provider's statement about its automated means in one reporting period.

Accuracy, precision and recall refer to decisions by automated means. Decisions by people are
counted separately; the rates include the preceding automated decisions, or exclude them:
`AutomatedMeans.reviewed_in_rates`.
"""

import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date

from modwatch.audits.dsa.cells import HARMFUL
from modwatch.audits.dsa.vocabulary import (
    LANGUAGES,
    NAM_TOTAL,
    NAM_TRUSTED_FLAGGER,
    OWN_INITIATIVE,
    TOTAL,
    Indicator,
    Provider,
    counts_of,
)
from modwatch.common.errors import DsaReportError


@dataclass(frozen=True, kw_only=True)
class Missing:
    """The reason why there is no value."""

    #: In plain language, for the public; without a full stop.
    reason: str
    #: Labels that there were, at least 0; None: the reason is not a lack of labels.
    labels: int | None = None
    #: Labels that would suffice, more than there were; None: unknown.
    needed: int | None = None

    def __post_init__(self) -> None:
        refuse_unusable("reason", self.reason)
        labels = 0 if self.labels is None else _whole_number("labels", self.labels)
        if self.needed is not None and _whole_number("needed", self.needed) <= labels:
            raise DsaReportError("needed: must exceed the number of labels.")


@dataclass(frozen=True, kw_only=True)
class Rate:
    """A share with its interval, 0 ≤ low ≤ value ≤ high ≤ 1."""

    value: float
    #: Ends of the interval.
    low: float
    high: float
    #: Number of labels that it was estimated from, at least 1.
    labels: int
    #: How it was estimated, in plain language, for the public.
    method: str
    #: Confidence level in (0, 1).
    level: float = 0.95
    #: Whether everything that it is about was labelled, so that there is no error of sampling.
    complete: bool = False

    def __post_init__(self) -> None:
        refuse_unusable("method", self.method)
        if not 0 <= self.low <= self.value <= self.high <= 1:
            raise DsaReportError("value: must satisfy 0 ≤ low ≤ value ≤ high ≤ 1.")
        if not 0 < self.level < 1:
            raise DsaReportError("level: must be in (0, 1).")
        if _whole_number("labels", self.labels) < 1:
            raise DsaReportError("labels: must be at least 1; use Missing without labels.")


@dataclass(frozen=True, kw_only=True)
class ScopeValues:
    """The five values of one scope.

    The counts are of measures; for the two NAM scopes, of notices. The rates refer to decisions by
    automated means.
    """

    #: Solely by automated means.
    solely: int | Missing
    #: All others: taken, confirmed or changed by a person, with or without a model.
    not_solely: int | Missing
    accuracy: Rate | Missing
    precision: Rate | Missing
    recall: Rate | Missing
    #: Remark on the two counts, for the public; part of their context.
    note: str = ""

    def __post_init__(self) -> None:
        if self.note:
            refuse_unusable("note", self.note)
        for name, count in (("solely", self.solely), ("not_solely", self.not_solely)):
            if not isinstance(count, Missing):
                _whole_number(name, count)

    @classmethod
    def missing(cls, reason: str) -> "ScopeValues":
        """Return a scope without values, for one reason.

        >>> ScopeValues.missing("no comment was in this language").recall.reason
        'no comment was in this language'
        """
        none = Missing(reason=reason)
        return cls(solely=none, not_solely=none, accuracy=none, precision=none, recall=none)

    def of(self, indicator: Indicator) -> "int | Rate | Missing":
        """Return the value of an indicator of the scope."""
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

    Raises DsaReportError for missing or unknown scopes, or a part that exceeds its total.
    """

    service: str
    #: First and last day, both included.
    start: date
    end: date
    provider: Provider
    #: Name of the audit that estimated the rates.
    audit: str
    #: By scope: exactly those of `provider.scopes`.
    scopes: Mapping[str, ScopeValues]
    #: Whether the rates include automated decisions that a person reviewed afterwards; otherwise
    #: they refer to unreviewed decisions only.
    reviewed_in_rates: bool = False

    def __post_init__(self) -> None:
        _about(self.service, self.start, self.end)
        refuse_unusable("audit", self.audit)
        expected, stated = set(self.provider.scopes), set(self.scopes)
        if expected != stated:
            names = ", ".join(sorted(map(str, expected ^ stated))[:5])
            raise DsaReportError(
                f"scopes: must be exactly those of {self.provider}; missing or unknown: {names}. "
                "Use ScopeValues.missing for scopes without values."
            )
        for part, whole, indicator in exceeding(self._counts()):
            raise DsaReportError(f"scopes: {part} exceeds {whole} in '{indicator.value}'.")

    def _counts(self) -> dict[tuple[Indicator, str], int]:
        return {
            (indicator, scope): count
            for scope, values in self.scopes.items()
            for indicator in counts_of(scope)
            if not isinstance(count := values.of(indicator), Missing | Rate)
        }


@dataclass(frozen=True, kw_only=True)
class Qualitative:
    """The free texts on automated means in part 11 of a transparency report."""

    service: str
    #: First and last day, both included.
    start: date
    end: date
    #: What the automated means are.
    description: str
    #: Indicators of their accuracy and their possible rate of error.
    accuracy: str
    #: Their precise purposes.
    purposes: str
    #: Safeguards applied to their use.
    safeguards: str

    def __post_init__(self) -> None:
        _about(self.service, self.start, self.end)
        for name in ("description", "accuracy", "purposes", "safeguards"):
            refuse_unusable(name, getattr(self, name))


def exceeding(
    counts: Mapping[tuple[Indicator, str], int],
) -> Iterator[tuple[str, str, Indicator]]:
    """Yield part, total and indicator wherever the count of a part exceeds its total.

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
        raise DsaReportError("end: must not be before start.")


def refuse_unusable(name: str, text: str) -> None:
    """Raise DsaReportError for a text of the report that is empty or has control characters."""
    if not text.strip():
        raise DsaReportError(f"{name}: must not be empty.")
    harm = HARMFUL.search(text)
    if harm:
        raise DsaReportError(
            f"{name}: character {harm.start() + 1} is a control character; remove it."
        )


def _whole_number(name: str, count: int) -> int:
    try:
        whole = operator.index(count)
    except TypeError as error:
        raise DsaReportError(f"{name}: must be a whole number.") from error
    if whole < 0:
        raise DsaReportError(f"{name}: must not be negative.")
    return whole
