"""The validation rules for a file, and findings: one code per rule."""

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from types import MappingProxyType
from typing import Literal

Severity = Literal["error", "warning", "note"]

_ERRORS = {
    "file-empty": "The file must not be empty.",
    "file-too-large": "At most 16 MiB and 20 000 rows.",
    "encoding": "The text must be UTF-8.",
    "delimiter": "Cells must be separated by commas.",
    "stray-quote": "Quotation marks are allowed only in quoted cells, doubled.",
    "unclosed-quote": "Quoted cells must be closed.",
    "ragged-row": "Every row must have as many cells as the header.",
    "control-character": "No NUL, other control characters or bidirectional controls.",
    "header": "The columns must be those of the template, in its order.",
    "section": "The section must be that of the template.",
    "service-missing": "Each row must name the service.",
    "several-services": "A file must be about one service.",
    "period-format": "The period must be two valid dates, YYYY-MM-DD/YYYY-MM-DD.",
    "period-order": "The period must not end before it starts.",
    "several-periods": "A file must be about one period.",
    "applicability": "The first column must have one of the template's texts.",
    "indicator": "The indicator must be one of the template's.",
    "scope": "The scope must be one of the template's, or an official language of the EU.",
    "country-code": "Languages must be named by language code, not by country code.",
    "indicator-scope": "Measures are counted by origin and language, notices by NAM scopes.",
    "blank-without-reason": "The context must give the reason for a blank value.",
    "value-not-number": "A value must be a number.",
    "percent-sign": "A rate must be a fraction, without a percent sign.",
    "rate-range": "A rate must be from 0 to 1.",
    "decimal-comma": "Decimals must be separated by a point.",
    "thousands-separator": "Numbers must have no thousands separators.",
    "count-not-whole": "A count must be a whole number.",
    "count-negative": "A count must not be negative.",
    "duplicate-row": "No duplicate rows; rates may recur if the context names the system.",
    "missing-row": "All scopes, indicators and texts of the template must be present.",
    "automation-unpaired": "Counts solely by automated means and counts not by them come in pairs.",
    "rate-without-count": "Rates require the count of decisions solely by automated means.",
    "part-exceeds-whole": "A part must not exceed its total.",
    "too-many-findings": "At most 1 000 findings are reported.",
}

_WARNINGS = {
    "byte-order-mark": "No byte order mark: some readers take it for part of the first name.",
    "line-ending": "Rows should end with CR LF.",
    "blank-row": "No empty rows.",
    "header-spelling": "Columns should be spelled as in the template.",
    "formula": "No cell should start like a formula.",
    "period-unusual": "A year, or a half-year for very large platforms, from 2026 on.",
    "applicability-scope": "The first column should match the template for the scope.",
    "indicator-spelling": "Indicators should be spelled as in the template.",
    "scope-spelling": "Scopes should be spelled as in the template, languages in lower case.",
    "codes-ambiguous": "Language codes are ambiguous together with country codes.",
    "placeholder": "No placeholders or unfilled rows of the template.",
    "count-decimals": "A count should be written without decimals.",
    "rate-of-nothing": "With no decisions solely by automated means, the context should state "
    "what a rate refers to.",
    "totals-differ": "Own initiative and notices should add up to the total.",
}

_BY_SEVERITY: Mapping[Severity, Mapping[str, str]] = {
    "error": _ERRORS,
    "warning": _WARNINGS,
    "note": {"other-part": "Of the template's eleven parts, only 8 and 11 are validated."},
}


@dataclass(frozen=True, kw_only=True)
class ValidationRule:
    """Severity and requirement of a rule."""

    severity: Severity
    requirement: str


#: Every rule by its code.
RULES: Mapping[str, ValidationRule] = MappingProxyType(
    {
        code: ValidationRule(severity=severity, requirement=text)
        for severity, rules in _BY_SEVERITY.items()
        for code, text in rules.items()
    }
)


@dataclass(frozen=True)
class Finding:
    """A broken rule in a file."""

    #: Code of the rule, a key of `RULES`.
    rule: str
    #: One sentence; quotes at most 40 safe characters of the file.
    message: str
    _: KW_ONLY
    #: Row number as in a spreadsheet, the header is 1; None: the whole file.
    row: int | None = None
    #: Name of the column; None: the whole row.
    column: str | None = None

    @property
    def severity(self) -> Severity:
        """Errors contradict the template or each other; warnings should be reviewed."""
        return RULES[self.rule].severity


def printed(findings: Iterable[Finding]) -> str:
    """Return one line per finding, `row, column: message [severity code]`.

    >>> finding = Finding("rate-range", "'7' is above 1.", row=4, column="Value")
    >>> print(printed([finding]), end="")
    4, Value: '7' is above 1. [error rate-range]
    """
    return "".join(
        f"{_place(finding)}: {finding.message} [{finding.severity} {finding.rule}]\n"
        for finding in findings
    )


def _place(finding: Finding) -> str:
    row = "file" if finding.row is None else str(finding.row)
    return row if finding.column is None else f"{row}, {finding.column}"


def exit_status(findings: Iterable[Finding]) -> int:
    """Return 1 if there are errors, else 0.

    >>> exit_status([])
    0
    """
    return int(any(finding.severity == "error" for finding in findings))
