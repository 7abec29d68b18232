"""Statements as CSV: RFC 4180, UTF-8 without byte order mark, CR LF, minimal quoting.

No mark, as in the Commission's own files: some readers take it for part of the first column's name.
Rates have four decimals, rounded half to even; intervals are rounded outwards, which does not lower
their coverage. Counts are digits.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

from modwatch.audits.dsa.cells import FORMULA_SIGNS
from modwatch.audits.dsa.statement import AutomatedMeans, Missing, Qualitative, Rate, ScopeValues
from modwatch.audits.dsa.vocabulary import (
    ACCURACY_DESCRIPTION,
    ALL_QUALITATIVE,
    APPLICABILITY,
    COLUMNS,
    DESCRIPTION,
    LANGUAGES,
    PURPOSES,
    QUALITATIVE_COLUMNS,
    RATES,
    REQUIRED_OF,
    SAFEGUARDS,
    SECTION,
    TOTAL,
    Indicator,
    counts_of,
    indicators_of,
)

_PLACES = Decimal("0.0001")
_CONTEXT = {
    Indicator.MEASURES_SOLELY: "Measures that no person took, confirmed or changed.",
    Indicator.MEASURES_NOT: (
        "Measures that a person took, confirmed or changed, with or without automated means;"
    ),
    Indicator.NOTICES_SOLELY: "Notices that no person processed.",
    Indicator.NOTICES_NOT: "Notices that a person processed, with or without automated means;",
}
#: Remainder of the context of counts by people, and start of that of rates; by whether the rates
#: include automated decisions that people reviewed.
_IN_RATES = {
    True: "accuracy, precision and recall include the preceding automated decisions.",
    False: "accuracy, precision and recall do not include them.",
}
_RATES_OF = {
    True: "Of all decisions by automated means, including those reviewed by a person afterwards.",
    False: "Of decisions solely by automated means.",
}


def automated_means_csv(report: AutomatedMeans) -> bytes:
    """Return part 8 of a transparency report: a header and a row per scope and indicator.

    Missing values are blank, with the reason in the context. Cells that start like a formula are
    prefixed with an apostrophe.

    >>> from modwatch.audits.dsa import Provider, ScopeValues
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
    value = values.of(indicator)
    if isinstance(value, Missing):
        return "", f"{_reason(value)} Audit: {_sentence(report.audit)}"
    if isinstance(value, Rate):
        context = f"{_RATES_OF[report.reviewed_in_rates]} {interval_text(value)} "
        context += f"Method: {_sentence(value.method)} Audit: {_sentence(report.audit)}"
        return value_text(value), context
    sentences = [_CONTEXT[indicator]]
    if indicator in (Indicator.MEASURES_NOT, Indicator.NOTICES_NOT):
        sentences.append(_IN_RATES[report.reviewed_in_rates])
    if values.note:
        sentences.append(_sentence(values.note))
    return str(int(value)), " ".join(sentences)


def _reason(missing: Missing) -> str:
    sentences = [f"Left blank: {_sentence(missing.reason)}"]
    if missing.labels is not None:
        sentences.append(f"Labels: {int(missing.labels)}.")
    if missing.needed is not None:
        sentences.append(f"About {int(missing.needed)} labels are needed.")
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
    writer.writerows([[_neutral(cell) for cell in row] for row in rows])
    return text.getvalue().encode()


def _neutral(cell: str) -> str:
    return f"'{cell}" if cell.startswith(FORMULA_SIGNS) else cell
