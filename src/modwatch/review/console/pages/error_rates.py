"""Error rates of one label, and overturned labels."""

import datetime as dt
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Response

from modwatch.common.errors import QueueError
from modwatch.review import database
from modwatch.review.console.api.lead import period, within
from modwatch.review.console.decision_choices import titles_of
from modwatch.review.console.pages.dismissals import lanes_of
from modwatch.review.console.render import Page, render
from modwatch.review.console.request_context import LeadSession
from modwatch.review.quality_control.error_rates import (
    MOST_GROUPS,
    ErrorRateReport,
    error_rate_report,
)
from modwatch.review.quality_control.overturned import (
    MOST_OVERTURNED,
    OverturnedLabels,
    overturned_labels,
)
from modwatch.statistics.true_labels import MINIMUM_CONFIRMED

router = APIRouter(include_in_schema=False)

_SEVEN_WEEKS = dt.timedelta(weeks=7)


@dataclass(frozen=True, kw_only=True)
class ErrorRatesPage(Page, template="error_rates.html"):
    """Error rates by queue, reason and week, and overturned labels."""

    problem: str | None
    first: dt.date
    last: dt.date
    #: The queue of the overturned labels; empty: all `queues`.
    queue: str
    queues: tuple[str, ...]
    #: None for an invalid period.
    report: ErrorRateReport | None
    overturned: OverturnedLabels
    #: Title of every policy code.
    titles: dict[str, str]
    minimum: int = MINIMUM_CONFIRMED
    most: int = MOST_OVERTURNED
    most_groups: int = MOST_GROUPS

    def scale(self, rate: str) -> float:
        """Return the highest end of an interval of `false_positive` or `false_negative`."""
        if self.report is None:
            return 1.0
        groups = (self.report.by_queue, self.report.by_reason, self.report.by_week)
        rates = [self.report.everything, *(each for group in groups for each in group.values())]
        return max((getattr(each, rate).high or 0.0 for each in rates), default=0.0) or 1.0


@router.get("/lead/errors")
def show(
    session: LeadSession,
    first: dt.date | None = None,
    last: dt.date | None = None,
    queue: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Return error rates and overturned labels, by default of this week and the seven before."""
    last = last or database.now(session.engine).date()
    first = first or last - dt.timedelta(days=last.weekday()) - _SEVEN_WEEKS
    engine, queues = session.engine, session.person.queues
    report, problem = None, None
    overturned = OverturnedLabels(labels=(), more=False)
    try:
        period(first, last)
        report = error_rate_report(engine, first, last, queues=queues)
        wanted = within(queues, queue or None)
        overturned = overturned_labels(engine, session.person.id, first, last, queues=wanted)
    except QueueError as exc:
        problem = str(exc)
    page = ErrorRatesPage(
        problem=problem,
        first=first,
        last=last,
        queue=queue,
        queues=lanes_of(session)[0],
        report=report,
        overturned=overturned,
        titles=titles_of(session.policy, session.locale),
    )
    return render(page, session, 422 if problem else 200)
