"""Automated means in the transparency reports of the EU's Digital Services Act.

Commission Implementing Regulation (EU) 2024/2835 defines the templates. Two files are about
automated means: part 8 (quantitative) and part 11 (qualitative). `automated_means_csv` and
`qualitative_csv` write them from a provider's statement; `validate` validates files of any
provider. Pure functions: no files, clocks or databases.
"""

from modwatch.audits.dsa.findings import RULES, Finding, Severity, exit_status, printed
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
from modwatch.audits.dsa.vocabulary import Provider
from modwatch.common.errors import DsaReportError

__all__ = [
    "RULES",
    "AutomatedMeans",
    "DsaReportError",
    "Finding",
    "Missing",
    "Provider",
    "Qualitative",
    "Rate",
    "ScopeValues",
    "Severity",
    "automated_means_csv",
    "exit_status",
    "printed",
    "qualitative_csv",
    "validate",
]
