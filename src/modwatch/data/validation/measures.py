"""The numbers that day-level rules judge; those against trailing days are findings of drift."""

from collections.abc import Callable, Sequence
from itertools import chain

from modwatch.data.validation.result import Measure
from modwatch.data.validation.thresholds import Thresholds
from modwatch.statistics.drift.day_comparison import Finding, Reference, compare, day_metrics
from modwatch.statistics.drift.profile import Profile


def skipped(reason: str) -> Measure:
    """Return a measure without a value.

    >>> skipped("no scores").observed
    'skipped: no scores'
    """
    return Measure(value=None, observed=f"skipped: {reason}")


def measure_of(finding: Finding, observed: Callable[[float], str]) -> Measure:
    """Return the measure of a finding; `observed` describes its value.

    >>> finding = Finding(metric="psi", feature="prob", value=0.25, n=900)
    >>> measure_of(finding, lambda value: f"PSI {value:.3f}")
    Measure(value=0.25, observed='PSI 0.250')
    """
    if finding.value is None:
        return skipped(finding.reason)
    return Measure(value=finding.value, observed=observed(finding.value))


def trailing_findings(
    today: Profile, trailing: Sequence[Profile]
) -> dict[tuple[str, str], Finding]:
    """Return what drift finds on a day against the trailing days, by metric and feature.

    >>> trailing_findings(Profile(comments=5), [])["volume_ratio", "comments"].reason
    '0 trailing days; 3 are needed'
    """
    reference = Reference.of("trailing", trailing)
    findings = chain(compare(today, [reference]), day_metrics(today, trailing))
    return {(finding.metric, finding.feature): finding for finding in findings}


def too_few_days(days: Sequence[Profile], bounds: Thresholds, of: str = "") -> Measure | None:
    """Return a measure without a value when there are too few trailing days, else None."""
    if len(days) >= bounds.min_trailing_days:
        return None
    return skipped(f"{len(days)} trailing days{of}; {bounds.min_trailing_days} are needed")
