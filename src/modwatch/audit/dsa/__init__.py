"""The automated means of a service, as the EU's transparency reports tell them.

Commission Implementing Regulation (EU) 2024/2835 gives the templates. Two of their files are about
automated means: part 8 in numbers, part 11 in words. `automated_means_csv` and `qualitative_csv`
write them from what a provider states; `validate` reads those of any provider. Nothing here touches
files, clocks or databases.
"""

from modwatch.audit.dsa.errors import DsaReportError
from modwatch.audit.dsa.findings import RULES, Finding, Severity, exit_status, printed
from modwatch.audit.dsa.statement import AutomatedMeans, Missing, Qualitative, Rate, ScopeFigures
from modwatch.audit.dsa.validation import validate
from modwatch.audit.dsa.vocabulary import Provider
from modwatch.audit.dsa.writing import automated_means_csv, qualitative_csv

__all__ = [
    "RULES",
    "AutomatedMeans",
    "DsaReportError",
    "Finding",
    "Missing",
    "Provider",
    "Qualitative",
    "Rate",
    "ScopeFigures",
    "Severity",
    "automated_means_csv",
    "exit_status",
    "printed",
    "qualitative_csv",
    "validate",
]
