"""What the page shows.

It shows the worst that is open, the newest day, the week, the queue, the last audit. Every
part is read on its own: what cannot be reached is named, and the rest is shown.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TypeVar

from sqlalchemy import Engine

from modwatch.common.addresses import Site
from modwatch.common.errors import ModwatchError
from modwatch.common.html import render_html
from modwatch.data.lake.delta import Lake
from modwatch.data.validation.result import CheckStore
from modwatch.monitoring.incidents.actions import OpenIncident, open_incidents
from modwatch.monitoring.incidents.delivery import Channels
from modwatch.monitoring.incidents.rules import AlertRule
from modwatch.monitoring.publishing.days import HEADINGS, Day, read_days
from modwatch.review.queue.metrics import shown_counts
from modwatch.review.workload import LaneWork, measurements_left, work_left
from modwatch.statistics.live.figures import FIGURES

_WEEK = 7

#: Incidents that are listed; the others are counted.
_MOST_INCIDENTS = 30

#: Lanes of items as moderators and leads see them, lanes of items that only measure, which these
#: pages do not show, and how many items of both are in review.
Queue = tuple[Sequence[LaneWork], Sequence[LaneWork], int]

_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class OpsData:
    """What the pages read; functions open their part at the first use, and may fail."""

    lake: Lake
    checks: CheckStore
    database: Callable[[], Engine]
    channels: Callable[[], Channels]
    rules: Callable[[], Sequence[AlertRule]]
    #: The published audit whose period ended last, in a sentence without full stop; None: no audit
    #: was published.
    last_audit: Callable[[], str | None]
    site: Site


def overview_page(data: OpsData) -> str:
    """Return the page as HTML text, as it is now."""
    problems: list[str] = []
    week = _or_none(problems, lambda: read_days(data.lake, last=_WEEK)[::-1])
    incidents = _or_none(problems, lambda: open_incidents(data.database()))
    queue = _or_none(problems, lambda: _read_queue(data.database()))
    before = len(problems)
    audit = _or_none(problems, data.last_audit)
    return render_overview(
        week=week,
        incidents=incidents,
        queue=queue,
        audit=audit,
        audit_unknown=len(problems) > before,
        site=data.site,
        problems=list(dict.fromkeys(problems)),
        now=datetime.now(UTC),
    )


def _read_queue(engine: Engine) -> Queue:
    return work_left(engine), measurements_left(engine), shown_counts(engine).leased


def worst_open(incidents: Sequence[OpenIncident]) -> tuple[str, str] | None:
    """Return the highest severity, critical or warning, and its open incidents as a sentence.

    None: neither a critical incident nor a warning is open.
    """
    for severity in ("critical", "warning"):
        if since := [incident.since for incident in incidents if incident.severity == severity]:
            are = "incident is" if len(since) == 1 else "incidents are"
            return severity, f"{len(since):,} {severity} {are} open, since {min(since)}"
    return None


def _or_none(problems: list[str], read: Callable[[], _T]) -> _T | None:
    """Return what `read` returns; after an error of Modwatch, None, and note the error."""
    try:
        return read()
    except ModwatchError as error:
        problems.append(str(error))
        return None


def render_overview(
    *,
    week: Sequence[Day] | None,
    incidents: Sequence[OpenIncident] | None,
    queue: Queue | None,
    audit: str | None,
    audit_unknown: bool,
    site: Site,
    problems: Sequence[str],
    now: datetime,
) -> str:
    """Return the page as HTML text; what is None could not be read.

    Args:
        week: the newest days, latest first; none before the first was published.
        incidents: those that are open, the most severe first.
        queue: as the console's pages count it.
        audit: the last one, as `OpsData.last_audit`; None before the first.
        audit_unknown: whether audits could not be read.
        site: where the review console and Airflow are.
        problems: what could not be read, as sentences.
        now: when it was read, with a zone.
    """
    newest, now = week[0] if week else None, now.astimezone(UTC)
    return render_html(
        "modwatch.monitoring.ops_page",
        "overview.html",
        headings=[*HEADINGS],
        explained="; ".join(
            f"{figure.short or figure.title}: {figure.meaning}"
            for figure in FIGURES.values()
            if figure.of_day
        ),
        week=week,
        newest=newest,
        incidents=incidents and incidents[:_MOST_INCIDENTS],
        more_incidents=len((incidents or [])[_MOST_INCIDENTS:]),
        worst=worst_open(incidents or []),
        queue=queue,
        audit=audit,
        audit_unknown=audit_unknown,
        console_url=site.console_url,
        airflow_url=site.airflow_url,
        problems=problems,
        days_late=_days_late(newest.day, now.date()) if newest else 0,
        now=f"{now:%Y-%m-%d %H:%M} UTC",
    )


def _days_late(day: date, today: date) -> int:
    """Return how old a day is; 0 if it is not older than the day before.

    >>> _days_late(date(2026, 11, 24), date(2026, 11, 25))
    0
    >>> _days_late(date(2026, 10, 20), date(2026, 11, 25))
    36
    """
    age = (today - day).days
    return age if age > 1 else 0
