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

_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class LastAudit:
    """The published audit whose period ended last."""

    name: str
    period: str
    #: Precision and recall with their intervals, as text; insufficient ones are absent.
    figures: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class OpsData:
    """What the pages read; functions open their part at the first use, and may fail."""

    lake: Lake
    checks: CheckStore
    database: Callable[[], Engine]
    channels: Callable[[], Channels]
    rules: Callable[[], Sequence[AlertRule]]
    #: None: no audit was published.
    last_audit: Callable[[], LastAudit | None]
    site: Site


@dataclass(frozen=True, kw_only=True)
class WorstOpen:
    """The open incidents of the highest severity."""

    #: critical | warning
    severity: str
    count: int
    #: The first day of the oldest.
    since: date

    @property
    def heading(self) -> str:
        """The heading of the page, as a sentence.

        >>> WorstOpen(severity="critical", count=2, since=date(2026, 10, 20)).heading
        '2 critical incidents are open, since 2026-10-20'
        """
        are = "incident is" if self.count == 1 else "incidents are"
        return f"{self.count:,} {self.severity} {are} open, since {self.since}"


@dataclass(frozen=True, kw_only=True)
class QueueState:
    """The review queue, by the counts of the console's pages."""

    #: As moderators and leads see them, by name and reason.
    lanes: Sequence[LaneWork]
    #: Items that only measure, which these pages do not show.
    measuring: Sequence[LaneWork]
    #: Items of both.
    in_review: int


@dataclass(frozen=True, kw_only=True)
class Overview:
    """The content of the page; the template uses every field."""

    #: The newest days, latest first; none before the first was published. None: they could not be
    #: read.
    week: Sequence[Day] | None
    #: Incidents that are open now, the most severe first. None: they could not be read.
    incidents: Sequence[OpenIncident] | None
    #: How many more are open.
    more_incidents: int
    #: None: neither a critical incident nor a warning is open, or that is not known.
    worst: WorstOpen | None
    #: None: it could not be read.
    queue: QueueState | None
    #: None before the first.
    audit: LastAudit | None
    #: Whether audits could not be read.
    audit_unknown: bool
    #: Where the review console and Airflow are.
    console_url: str
    airflow_url: str
    #: What could not be read, as sentences.
    problems: Sequence[str]

    @property
    def newest(self) -> Day | None:
        """The newest published day."""
        return self.week[0] if self.week else None


def read_overview(data: OpsData) -> Overview:
    """Return the content of the page, as it is now."""
    problems: list[str] = []
    week = _or_none(problems, lambda: read_days(data.lake, last=_WEEK)[::-1])
    incidents = _or_none(problems, lambda: open_incidents(data.database()))
    queue = _or_none(problems, lambda: _read_queue(data.database()))
    before = len(problems)
    audit = _or_none(problems, data.last_audit)
    return Overview(
        week=week,
        incidents=incidents and incidents[:_MOST_INCIDENTS],
        more_incidents=len((incidents or [])[_MOST_INCIDENTS:]),
        worst=worst_open(incidents or []),
        queue=queue,
        audit=audit,
        audit_unknown=len(problems) > before,
        console_url=data.site.console_url,
        airflow_url=data.site.airflow_url,
        problems=list(dict.fromkeys(problems)),
    )


def _read_queue(engine: Engine) -> QueueState:
    return QueueState(
        lanes=work_left(engine),
        measuring=measurements_left(engine),
        in_review=shown_counts(engine).leased,
    )


def worst_open(incidents: Sequence[OpenIncident]) -> WorstOpen | None:
    """Return the critical incidents, without one the warnings; None if there are neither."""
    for severity in ("critical", "warning"):
        if since := [incident.since for incident in incidents if incident.severity == severity]:
            return WorstOpen(severity=severity, count=len(since), since=min(since))
    return None


def _or_none(problems: list[str], read: Callable[[], _T]) -> _T | None:
    """Return what `read` returns; after an error of Modwatch, None, and note the error."""
    try:
        return read()
    except ModwatchError as error:
        problems.append(str(error))
        return None


def render_overview(shown: Overview, *, now: datetime | None = None) -> str:
    """Return the page as HTML text."""
    now = (now or datetime.now(UTC)).astimezone(UTC)
    return render_html(
        "modwatch.monitoring.ops_page",
        "overview.html",
        headings=[*HEADINGS],
        explained="; ".join(
            f"{figure.short or figure.title}: {figure.meaning}"
            for figure in FIGURES.values()
            if figure.of_day
        ),
        shown=shown,
        days_late=_days_late(shown.newest.day, now.date()) if shown.newest else 0,
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
