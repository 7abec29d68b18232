"""The status of a day in a few characters, as the list of runs shows it."""

from collections.abc import Sequence

from modwatch.monitoring.incidents.messages.incidents import ActiveAlert

NORMAL = "normal"

CRITICAL = "critical"

_NOTEWORTHY = (CRITICAL, "warning")


def day_status(checks: str, alerts: Sequence[ActiveAlert]) -> str:
    """Return `normal`, `rejected`, or the highest severity of the active alerts and since when.

    The severities are `critical` and `warning`; an alert of severity `info` and the warning of a
    validation rule, which has an alert rule of its own when it lasts, leave a day normal.

    >>> from datetime import date
    >>> late = ActiveAlert(rule="queue_old", subject="", severity="warning",
    ...                    since=date(2026, 1, 5), description="")
    >>> day_status("passed", [late]), day_status("warned", []), day_status("rejected", [late])
    ('warning since 2026-01-05', 'normal', 'rejected')
    """
    if checks == "rejected":
        return checks
    for severity in _NOTEWORTHY:
        since = [alert.since for alert in alerts if alert.severity == severity]
        if since:
            return f"{severity} since {min(since)}"
    return NORMAL


def is_bad(status: str) -> bool:
    """Return whether a day with this status is marked in red.

    >>> is_bad("critical since 2026-01-05"), is_bad("rejected"), is_bad("warning since 2026-01-05")
    (True, True, False)
    """
    return status.startswith((CRITICAL, "rejected", "failed"))
