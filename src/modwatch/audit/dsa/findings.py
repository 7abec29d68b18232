"""What can be found in a file: one code a rule, the same whoever's file it is."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Severity = Literal["error", "warning"]

_ERRORS = {
    "file-empty": "The file holds something.",
    "file-too-large": "At most 16 MiB and 20 000 rows.",
    "encoding": "The text is UTF-8.",
    "delimiter": "Cells are parted by commas.",
    "stray-quote": "A quotation mark stands only in a quoted cell, doubled.",
    "unclosed-quote": "A quoted cell ends.",
    "ragged-row": "Every row has as many cells as the header.",
    "control-character": "No NUL or other control character, and none that turns text around.",
    "header": "The columns are the template's, in its order.",
    "section": "The section is the template's.",
    "service-missing": "Each row names the service.",
    "several-services": "One file is about one service.",
    "period-format": "The period is two dates that exist, YYYY-MM-DD/YYYY-MM-DD.",
    "period-order": "The period does not end before it begins.",
    "several-periods": "One file is about one period.",
    "applicability": "The first column has the template's words.",
    "indicator": "The indicator is one of the template's.",
    "scope": "The scope is one of the template's, or an official language of the EU.",
    "country-code": "Languages are named by the code of the language, not of a country.",
    "indicator-scope": "Measures are counted by origin and language, notices by NAM scopes.",
    "blank-without-reason": "Where the value is blank, the context says why.",
    "value-not-number": "A value is one number.",
    "percent-sign": "A rate is a fraction, without a percent sign.",
    "rate-range": "A rate lies in 0 to 1.",
    "decimal-comma": "Decimals come after a point.",
    "thousands-separator": "Digits are not grouped.",
    "count-not-whole": "A count is whole.",
    "count-negative": "A count is not negative.",
    "duplicate-row": "No row comes twice; rates may, by moderation system, if the context tells.",
    "missing-row": "No scope, indicator or text that the template asks for is left out.",
    "automation-unpaired": "Counts by automated means alone stand beside those that are not.",
    "rate-without-count": "Rates stand beside the count of what automated means alone did.",
    "part-exceeds-whole": "No part is larger than what it is part of.",
    "too-many-findings": "At most 1 000 findings are looked for.",
}

_WARNINGS = {
    "byte-order-mark": "No byte order mark: some readers take it for part of the first name.",
    "line-ending": "Rows end in CR LF.",
    "blank-row": "No row is empty.",
    "header-spelling": "Columns are spelled as in the template.",
    "formula": "No cell begins like a formula.",
    "period-unusual": "A year, or a half-year for very large platforms, from 2026 on.",
    "applicability-scope": "The first column is the template's for the scope.",
    "indicator-spelling": "Indicators are spelled as in the template.",
    "scope-spelling": "Scopes are spelled as in the template, languages in lower case.",
    "codes-ambiguous": "Beside codes of countries, codes that could be either say nothing.",
    "placeholder": "Nothing is left over from the empty template.",
    "count-decimals": "A count is written without decimals.",
    "rate-of-nothing": "A rate where automated means alone did nothing says in the context of what "
    "it is.",
    "totals-differ": "Own initiative and notices together make the total.",
}


@dataclass(frozen=True, kw_only=True)
class Rule:
    """How much a finding weighs, and what is asked for."""

    severity: Severity
    asks: str


#: Every rule by its code.
RULES: Mapping[str, Rule] = MappingProxyType(
    {
        **{code: Rule(severity="error", asks=asks) for code, asks in _ERRORS.items()},
        **{code: Rule(severity="warning", asks=asks) for code, asks in _WARNINGS.items()},
    }
)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is wrong, or odd, in a file."""

    #: The code; a key of `RULES`.
    rule: str
    #: Row as a spreadsheet counts it, the header being 1; None: the file as a whole.
    row: int | None
    #: Name of the column; None: the row as a whole.
    column: str | None
    #: One sentence. Of what stands in the file it repeats 40 harmless characters at most.
    message: str

    @property
    def severity(self) -> Severity:
        """An error breaks the template or says what cannot be; a warning wants a look."""
        return RULES[self.rule].severity


def printed(findings: Iterable[Finding]) -> str:
    """Return one line a finding, `row, column: message [severity code]`, each with its line end.

    >>> found = Finding(rule="rate-range", row=4, column="Value", message="'7' is above 1.")
    >>> print(printed([found]), end="")
    4, Value: '7' is above 1. [error rate-range]
    """
    return "".join(
        f"{_place(each)}: {each.message} [{each.severity} {each.rule}]\n" for each in findings
    )


def _place(finding: Finding) -> str:
    row = "file" if finding.row is None else str(finding.row)
    return row if finding.column is None else f"{row}, {finding.column}"


def exit_status(findings: Iterable[Finding]) -> int:
    """Return 1 where there is an error, 0 where there are warnings at most.

    >>> exit_status([])
    0
    """
    return int(any(each.severity == "error" for each in findings))
