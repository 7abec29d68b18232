"""What the page shows: the newest day, the week, open incidents, the queue and the last audit.

Every part is read on its own: what cannot be reached is named, and the rest is shown.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from modwatch.alerts.actions import OpenIncident, open_incidents
from modwatch.errors import ModwatchError
from modwatch.html import render_html
from modwatch.review.reporting.workload import LaneState, overview
from modwatch.tracking.history import PublishedAudit, PublishedDay
from modwatch.tracking.runs import latest_audit, published_history

if TYPE_CHECKING:
    from modwatch.resources import Resources

_WEEK = 7

#: Incidents that are listed; the others are counted.
_MOST_INCIDENTS = 30

_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class Overview:
    """The content of the page; the template uses every field."""

    #: The newest days, latest first; none before the first was published. None: MLflow, which also
    #: has the audits, could not be read.
    week: Sequence[PublishedDay] | None
    #: Incidents that are open now, the most severe first. None: they could not be read.
    incidents: Sequence[OpenIncident] | None
    #: How many more are open.
    more_incidents: int
    #: The states of the review queues, by name and reason. None: they could not be read.
    lanes: Sequence[LaneState] | None
    #: None before the first.
    audit: PublishedAudit | None
    #: Where the review console and Airflow are.
    console_url: str
    airflow_url: str
    #: What could not be read, as sentences.
    problems: Sequence[str]

    @property
    def newest(self) -> PublishedDay | None:
        """The newest published day."""
        return self.week[0] if self.week else None


def read_overview(at: "Resources") -> Overview:
    """Return the content of the page, as it is now."""
    problems: list[str] = []
    url = at.settings.mlflow_url
    # Together: MLflow that is down is waited for once.
    published = _or_none(problems, lambda: (published_history(url), latest_audit(url)))
    incidents = _or_none(problems, lambda: open_incidents(at.database))
    return Overview(
        week=None if published is None else published[0][: -_WEEK - 1 : -1],
        incidents=incidents and incidents[:_MOST_INCIDENTS],
        more_incidents=len((incidents or [])[_MOST_INCIDENTS:]),
        lanes=_or_none(problems, lambda: overview(at.database)),
        audit=None if published is None else published[1],
        console_url=at.settings.console_url,
        airflow_url=at.settings.airflow_url,
        problems=list(dict.fromkeys(problems)),
    )


def _or_none(problems: list[str], read: Callable[[], _T]) -> _T | None:
    """Return what `read` returns; after an error of Modwatch, None, and note the error."""
    try:
        return read()
    except ModwatchError as error:
        problems.append(str(error))
        return None


def render_overview(shown: Overview, *, now: datetime | None = None) -> str:
    """Return the page as HTML text."""
    return render_html(
        "modwatch.ops_page",
        "overview.html",
        styled="modwatch.tracking",
        shown=shown,
        now=f"{now or datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    )
