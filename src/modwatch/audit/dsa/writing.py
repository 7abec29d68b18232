"""Statements as CSV: RFC 4180, UTF-8 without byte order mark, CR LF, quotes where they are needed.

No mark, because the Commission's own files have none and readers that do not expect one take it
for part of the first column's name. Rates have four decimals after a point, rounded half to even;
intervals are rounded outwards, so that what is printed holds at least as often. Counts are digits.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

from modwatch.audit.dsa.characters import FORMULA_SIGNS
from modwatch.audit.dsa.statement import (
    AutomatedMeans,
    Missing,
    Qualitative,
    Rate,
    ScopeFigures,
)
from modwatch.audit.dsa.vocabulary import (
    ACCURACY_DESCRIPTION,
    ALL_QUALITATIVE,
    APPLICABILITY,
    ASKED_OF,
    COLUMNS,
    DESCRIPTION,
    LANGUAGES,
    PURPOSES,
    QUALITATIVE_COLUMNS,
    RATES,
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
        "Measures that a person took, confirmed or changed, with or without automated help;"
    ),
    Indicator.NOTICES_SOLELY: "Notices that no person processed.",
    Indicator.NOTICES_NOT: "Notices that a person processed, with or without automated help;",
}
#: How the context of what people did goes on, and that of a rate begins; by whether rates are also
#: of what people decided afterwards.
_IN_RATES = {
    True: "accuracy, precision and recall are of what automated means decided of them before.",
    False: "none is in accuracy, precision or recall.",
}
_RATES_OF = {
    True: "Of all that automated means decided, whether a person decided afterwards or not.",
    False: "Of decisions that automated means took alone.",
}


def automated_means_csv(report: AutomatedMeans) -> bytes:
    """Return part 8 of a transparency report: a header and a row by scope and indicator.

    A missing figure leaves its value blank; the context says why. Cells that begin like a formula
    get an apostrophe in front.

    >>> from modwatch.audit.dsa import Provider, ScopeFigures
    >>> report = AutomatedMeans(
    ...     service="Forum", start=date(2026, 1, 1), end=date(2026, 12, 31), audit="2026",
    ...     provider=Provider.INTERMEDIARY,
    ...     scopes=dict.fromkeys(
    ...         Provider.INTERMEDIARY.scopes, ScopeFigures.missing("no automated means are used")
    ...     ),
    ... )
    >>> automated_means_csv(report).splitlines()[3].decode().split(",")[5:]
    ['Total number', '', 'Left blank: no automated means are used. Audit: 2026.']
    """
    period = _period(report.start, report.end)
    rows = []
    for scope, indicator in _order(report.provider.scopes):
        value, context = _told(report, report.scopes[scope], indicator)
        rows.append(
            (
                APPLICABILITY[ASKED_OF[scope]],
                *(report.service, period, SECTION, indicator.value, scope, value, context),
            )
        )
    return _csv(COLUMNS, rows)


def qualitative_csv(statement: Qualitative) -> bytes:
    """Return the four rows of part 11 that are about automated means, under its header.

    The other rows of part 11 are not about automated means; a provider adds them.

    >>> words = Qualitative(
    ...     service="Forum", start=date(2026, 1, 1), end=date(2026, 12, 31), description="a model",
    ...     accuracy="audited", purposes="to remove hate", safeguards="people review",
    ... )
    >>> qualitative_csv(words).splitlines()[4].decode()
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


def interval_in_words(rate: Rate) -> str:
    """Return the interval of a rate, rounded outwards, and the number of its labels.

    >>> interval_in_words(Rate(value=0.9, low=0.85, high=0.94, labels=300, method="a sample"))
    '95 % interval: 0.8500 to 0.9400. Labels: 300.'
    """
    level = format((Decimal(repr(float(rate.level))) * 100).normalize(), "f")
    low, high = _rounded(rate.low, ROUND_FLOOR), _rounded(rate.high, ROUND_CEILING)
    return f"{level} % interval: {low} to {high}. Labels: {int(rate.labels)}."


def value_in_words(rate: Rate) -> str:
    """Return a rate as a fraction with four decimals, rounded half to even.

    >>> value_in_words(Rate(value=0.9, low=0.85, high=0.94, labels=300, method="a sample"))
    '0.9000'
    """
    return _rounded(rate.value, ROUND_HALF_EVEN)


def _order(scopes: Sequence[str]) -> Iterator[tuple[str, Indicator]]:
    """Yield the rows in the template's order: the origins one by one, then languages."""
    languages = [scope for scope in scopes if scope in LANGUAGES]
    for scope in scopes:
        if scope not in LANGUAGES:
            yield from ((scope, indicator) for indicator in indicators_of(scope))
    for indicator in (*counts_of(TOTAL), *RATES):
        yield from ((language, indicator) for language in languages)


def _told(report: AutomatedMeans, figures: ScopeFigures, indicator: Indicator) -> tuple[str, str]:
    """Return value and context of one row."""
    figure = figures.of(indicator)
    if isinstance(figure, Missing):
        return "", f"{_why(figure)} Audit: {_sentence(report.audit)}"
    if isinstance(figure, Rate):
        context = f"{_RATES_OF[report.reviewed_in_rates]} {interval_in_words(figure)} "
        context += f"Method: {_sentence(figure.method)} Audit: {_sentence(report.audit)}"
        return value_in_words(figure), context
    words = [_CONTEXT[indicator]]
    if indicator in (Indicator.MEASURES_NOT, Indicator.NOTICES_NOT):
        words.append(_IN_RATES[report.reviewed_in_rates])
    if figures.note:
        words.append(_sentence(figures.note))
    return str(int(figure)), " ".join(words)


def _why(missing: Missing) -> str:
    words = [f"Left blank: {_sentence(missing.reason)}"]
    if missing.labels is not None:
        words.append(f"Labels: {int(missing.labels)}.")
    if missing.needed is not None:
        words.append(f"About {int(missing.needed)} labels would do.")
    return " ".join(words)


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _rounded(share: float, rounding: str) -> str:
    # By its shortest decimal form: 0.96 is not the 0.95999… that a float holds.
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
