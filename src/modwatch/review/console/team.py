"""The team of a lead: decisions by person, agreement, error rates and overturned labels."""

import datetime as dt
from collections.abc import Collection
from typing import Annotated

from fastapi import APIRouter, Query, Response

from modwatch.common.errors import QueueError
from modwatch.review import database, workload
from modwatch.review.console.decision_choices import titles_of
from modwatch.review.console.dismissals import lanes_of
from modwatch.review.console.render import render
from modwatch.review.console.request_context import LeadSession
from modwatch.review.quality_control.agreement import agreement_report
from modwatch.review.quality_control.blindness import last_recognised
from modwatch.review.quality_control.error_rates import (
    MOST_GROUPS,
    MOST_OVERTURNED,
    ErrorRateReport,
    OverturnedLabels,
    error_rate_report,
    newest_labelled_day,
    overturned_labels,
)
from modwatch.review.quality_control.queueing import unlike_gold
from modwatch.review.queue.leases import UNDO_WITHIN
from modwatch.review.workload import Grain
from modwatch.statistics.agreement import MINIMUM_PAIRS
from modwatch.statistics.label_truth import MINIMUM_CONFIRMED

#: Longest period of one request, in days.
MOST_DAYS = 92

#: Date arithmetic fails near the ends of the calendar.
_FIRST_DAY, _LAST_DAY = dt.date(2000, 1, 1), dt.date(2200, 1, 1)


def check_period(first: dt.date, last: dt.date) -> None:
    """Raise `QueueError` unless the days are in order, at most 92, and of this time."""
    in_order = _FIRST_DAY <= first <= last <= _LAST_DAY
    if not in_order or last - first >= dt.timedelta(days=MOST_DAYS):
        raise QueueError(
            f"The period from {first} to {last} is invalid: the days must be in order, at most "
            f"{MOST_DAYS}, and between {_FIRST_DAY} and {_LAST_DAY}."
        )


def within(allowed: Collection[str] | None, queue: str | None) -> Collection[str] | None:
    """Return the queues to read, of the `allowed` ones: all of them, or `queue` if it is one.

    >>> within(None, "de"), within({"en"}, "de"), within({"en"}, None)
    (['de'], [], {'en'})
    """
    if queue is None:
        return allowed
    return [queue] if allowed is None or queue in allowed else []


pages = APIRouter(include_in_schema=False)
_FOUR_WEEKS = dt.timedelta(days=27)


@pages.get("/lead/team")
def show_team(
    session: LeadSession,
    first: dt.date | None = None,
    last: dt.date | None = None,
    grain: Grain = "day",
) -> Response:
    """Return decisions by person, by default of today, and agreement."""
    last = last or database.now(session.engine).date()
    first = first or last
    engine, queues = session.engine, session.person.queues
    rows, quality, problem = [], None, None
    try:
        check_period(first, last)
        rows = workload.throughput(engine, first, last, grain=grain, queues=queues)
        quality = agreement_report(
            engine, min(first, last - _FOUR_WEEKS), last, queues=queues, lag=UNDO_WITHIN
        )
    except QueueError as exc:
        problem = str(exc)
    return render(
        session,
        "team.html",
        problem=problem,
        first=first,
        last=last,
        grain=grain,
        rows=rows,
        quality=quality,
        unlike_gold=unlike_gold(engine),
        recognised=last_recognised(engine),
        minimum=MINIMUM_PAIRS,
    )


@pages.get("/lead/errors")
def show_error_rates(
    session: LeadSession,
    first: dt.date | None = None,
    last: dt.date | None = None,
    queue: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Return error rates and overturned labels, by default of the newest eight weeks with labels.

    The newest week that has any, and the seven before.
    """
    engine, queues = session.engine, session.person.queues
    last = last or newest_labelled_day(engine, queues) or database.now(engine).date()
    first = first or max(last, _FIRST_DAY) - dt.timedelta(days=last.weekday(), weeks=7)
    report, problem = None, None
    overturned = OverturnedLabels(labels=(), more=False)
    try:
        check_period(first, last)
        report = error_rate_report(engine, first, last, queues=queues, lag=UNDO_WITHIN)
        wanted = within(queues, queue or None)
        overturned = overturned_labels(engine, session.person.id, first, last, queues=wanted)
    except QueueError as exc:
        problem = str(exc)
    return render(
        session,
        "error_rates.html",
        problem=problem,
        first=first,
        last=last,
        queue=queue,
        queues=lanes_of(session)[0],
        report=report,
        overturned=overturned,
        titles=titles_of(session.policy, session.locale),
        scales={name: _scale(report, name) for name in ("false_positive", "false_negative")},
        minimum=MINIMUM_CONFIRMED,
        most=MOST_OVERTURNED,
        most_groups=MOST_GROUPS,
    )


def _scale(report: ErrorRateReport | None, rate: str) -> float:
    """Return the highest end of an interval of a rate."""
    if report is None:
        return 1.0
    groups = (report.by_queue, report.by_reason, report.by_week)
    rates = [report.everything, *(rate for group in groups for rate in group.values())]
    return max((getattr(group, rate).high or 0.0 for group in rates), default=0.0) or 1.0
