"""A provider's statement about its automated means in one reporting period, and its CSV files.

Accuracy, precision and recall refer to all decisions by automated means, also where a person
reviewed them afterwards. Decisions by people are counted separately.

Files are RFC 4180 in UTF-8 without byte order mark, CR LF, minimal quoting. No mark, as in the
Commission's own files: some readers take it for part of the first column's name. Rates have four
decimals, rounded half to even; intervals are rounded outwards, which does not lower their coverage.
Counts are digits.
"""

import csv
import io
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

from modwatch.audits.dsa.cells import FORMULA_SIGNS, HARMFUL
from modwatch.audits.dsa.vocabulary import (
    ACCURACY_DESCRIPTION,
    ALL_QUALITATIVE,
    APPLICABILITY,
    COLUMNS,
    DESCRIPTION,
    LANGUAGES,
    NAM_TOTAL,
    NAM_TRUSTED_FLAGGER,
    OWN_INITIATIVE,
    PURPOSES,
    QUALITATIVE_COLUMNS,
    RATES,
    REQUIRED_OF,
    SAFEGUARDS,
    SECTION,
    TOTAL,
    Indicator,
    Provider,
    counts_of,
    indicators_of,
)
from modwatch.common.errors import DsaReportError

_PLACES = Decimal("0.0001")
_CONTEXT = {
    Indicator.MEASURES_SOLELY: "Measures that no person took, confirmed or changed.",
    Indicator.MEASURES_NOT: (
        "Measures that a person took, confirmed or changed, with or without automated means;"
    ),
    Indicator.NOTICES_SOLELY: "Notices that no person processed.",
    Indicator.NOTICES_NOT: "Notices that a person processed, with or without automated means;",
}
#: Remainder of the context of counts by people, and start of that of rates.
_IN_RATES = "accuracy, precision and recall include the preceding automated decisions."
_RATES_OF = "Of all decisions by automated means, including those reviewed by a person afterwards."


@dataclass(frozen=True, kw_only=True)
class Missing:
    """The reason why there is no value."""

    #: In plain language, for the public; without a full stop.
    reason: str
    #: Labels that there were, at least 0; None: the reason is not a lack of labels.
    labels: int | None = None

    def __post_init__(self) -> None:
        refuse_unusable("reason", self.reason)
        _whole_number("labels", self.labels or 0)


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

    def value_of(self, indicator: Indicator) -> "int | Rate | Missing":
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
            if not isinstance(count := values.value_of(indicator), Missing | Rate)
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


def automated_means_csv(report: AutomatedMeans) -> bytes:
    """Return part 8 of a transparency report: a header and a row per scope and indicator.

    Missing values are blank, with the reason in the context. Cells that start like a formula are
    prefixed with an apostrophe.

    >>> report = AutomatedMeans(
    ...     service="Forum", start=date(2026, 1, 1), end=date(2026, 12, 31), audit="2026",
    ...     provider=Provider.INTERMEDIARY,
    ...     scopes=dict.fromkeys(
    ...         Provider.INTERMEDIARY.scopes, ScopeValues.missing("no automated means are used")
    ...     ),
    ... )
    >>> automated_means_csv(report).splitlines()[3].decode().split(",")[5:]
    ['Total number', '', 'Left blank: no automated means are used. Audit: 2026.']
    """
    period = _period(report.start, report.end)
    rows = []
    for scope, indicator in _order(report.provider.scopes):
        value, context = _cells(report, report.scopes[scope], indicator)
        rows.append(
            (
                APPLICABILITY[REQUIRED_OF[scope]],
                *(report.service, period, SECTION, indicator.value, scope, value, context),
            )
        )
    return _csv(COLUMNS, rows)


def qualitative_csv(statement: Qualitative) -> bytes:
    """Return the header of part 11 and its four rows on automated means.

    The provider adds the other rows.

    >>> statement = Qualitative(
    ...     service="Forum", start=date(2026, 1, 1), end=date(2026, 12, 31), description="a model",
    ...     accuracy="audited", purposes="to remove hate", safeguards="people review",
    ... )
    >>> qualitative_csv(statement).splitlines()[4].decode()
    'All,Forum,2026-01-01/2026-12-31,Safeguards applied to the use of automated means,people review'
    """
    period = _period(statement.start, statement.end)
    texts = {
        DESCRIPTION: statement.description,
        ACCURACY_DESCRIPTION: statement.accuracy,
        PURPOSES: statement.purposes,
        SAFEGUARDS: statement.safeguards,
    }
    rows = [
        (APPLICABILITY[ALL_QUALITATIVE[name]], statement.service, period, name, text)
        for name, text in texts.items()
    ]
    return _csv(QUALITATIVE_COLUMNS, rows)


def interval_text(rate: Rate) -> str:
    """Return the interval of a rate, rounded outwards, and its number of labels.

    >>> interval_text(Rate(value=0.9, low=0.85, high=0.94, labels=300, method="a sample"))
    '95 % confidence interval: 0.8500 to 0.9400. Labels: 300.'
    """
    if rate.complete:
        return (
            "All comments were labelled, so there is no sampling error; errors of the people who "
            f"labelled them are not included. Labels: {int(rate.labels)}."
        )
    level = format((Decimal(repr(float(rate.level))) * 100).normalize(), "f")
    low, high = _rounded(rate.low, ROUND_FLOOR), _rounded(rate.high, ROUND_CEILING)
    return f"{level} % confidence interval: {low} to {high}. Labels: {int(rate.labels)}."


def value_text(rate: Rate) -> str:
    """Return a rate with four decimals, rounded half to even.

    >>> value_text(Rate(value=0.9, low=0.85, high=0.94, labels=300, method="a sample"))
    '0.9000'
    """
    return _rounded(rate.value, ROUND_HALF_EVEN)


def _order(scopes: Sequence[str]) -> Iterator[tuple[str, Indicator]]:
    """Yield the rows in the order of the template: by origin, then by indicator and language."""
    languages = [scope for scope in scopes if scope in LANGUAGES]
    for scope in scopes:
        if scope not in LANGUAGES:
            yield from ((scope, indicator) for indicator in indicators_of(scope))
    for indicator in (*counts_of(TOTAL), *RATES):
        yield from ((language, indicator) for language in languages)


def _cells(report: AutomatedMeans, values: ScopeValues, indicator: Indicator) -> tuple[str, str]:
    """Return value and context of one row."""
    value = values.value_of(indicator)
    if isinstance(value, Missing):
        return "", f"{_reason(value)} Audit: {_sentence(report.audit)}"
    if isinstance(value, Rate):
        context = f"{_RATES_OF} {interval_text(value)} "
        context += f"Method: {_sentence(value.method)} Audit: {_sentence(report.audit)}"
        return value_text(value), context
    sentences = [_CONTEXT[indicator]]
    if indicator in (Indicator.MEASURES_NOT, Indicator.NOTICES_NOT):
        sentences.append(_IN_RATES)
    if values.note:
        sentences.append(_sentence(values.note))
    return str(int(value)), " ".join(sentences)


def _reason(missing: Missing) -> str:
    sentences = [f"Left blank: {_sentence(missing.reason)}"]
    if missing.labels is not None:
        sentences.append(f"Labels: {int(missing.labels)}.")
    return " ".join(sentences)


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _rounded(share: float, rounding: str) -> str:
    # From the shortest decimal form: 0.96, not the 0.95999… of the float.
    return str(Decimal(repr(float(share))).quantize(_PLACES, rounding=rounding))


def _period(start: date, end: date) -> str:
    return f"{date.isoformat(start)}/{date.isoformat(end)}"


def _csv(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows(
        [f"'{cell}" if cell.startswith(FORMULA_SIGNS) else cell for cell in row] for row in rows
    )
    return text.getvalue().encode()
