"""The decision log: feed, export and verification; and the current policy."""

import datetime as dt
from typing import Annotated

from fastapi import APIRouter, Depends, Form, HTTPException, Query, Response
from fastapi.responses import StreamingResponse

from modwatch.common.errors import LedgerError, QueueError
from modwatch.review.console.render import render
from modwatch.review.console.request_context import (
    Context,
    ContextDep,
    Session,
    form_session,
    page_session,
    require,
)
from modwatch.review.console.schemas import FormText, error_responses
from modwatch.review.events import record_event
from modwatch.review.log.export import Format, export
from modwatch.review.log.verification import LogReport
from modwatch.review.log.witnesses import Newest, newest
from modwatch.review.outbox.decision_events import LONGEST_PAGE, FeedPage, feed
from modwatch.review.people.accounts import REVIEWERS, Moderator

api = APIRouter(prefix="/api/v1", tags=["decisions"], responses=error_responses(401, 403, 503))
FeedReaderDep = Annotated[Moderator, Depends(require("feed:read"))]

_MEDIA_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
}


@api.get("/decisions", responses=error_responses(422))
def read_feed(
    context: ContextDep,
    person: FeedReaderDep,
    after: Annotated[str | None, Query(max_length=100, description="The last cursor.")] = None,
    limit: Annotated[int, Query(ge=1, le=LONGEST_PAGE)] = 100,
) -> FeedPage:
    """Return decisions after a cursor, oldest first."""
    if problem := _hides_log(person):
        raise HTTPException(403, problem)
    return feed(context.engine, after, limit)


def _witness(context: Context, given: str | None) -> Newest:
    """Return the witness that was given, or else the newest one that is kept."""
    if given:
        return Newest(text=given)
    return newest(context.options.witness_folder, context.options.authority)


def _hides_log(person: Moderator) -> str | None:
    """Return why this person may not read the whole log; None: they may."""
    if person.role in REVIEWERS:
        return "this has the labels of comments that you may be asked to label; ask an auditor"
    if person.queues is not None:
        return "this covers all queues, and you have access to some; ask an admin"
    return None


pages = APIRouter(include_in_schema=False)


@pages.get("/records")
def show(
    session: Annotated[Session, Depends(page_session("decisions:read"))],
) -> Response:
    """Return the forms for verification and export, and the policy."""
    return _log_page(session)


@pages.post("/records/check")
def verify(
    session: Annotated[Session, Depends(form_session("audit", "admin"))],
    witness: Annotated[str, Form(max_length=900_000)] = "",
) -> Response:
    """Verify the whole log, and show the result."""
    report, problem = None, None
    used = _witness(session.context, witness.strip())
    try:
        report = used.report(session.engine)
    except LedgerError as exc:
        problem = str(exc)
    return _log_page(session, report=report, used=used, problem=problem)


@pages.post("/records/export")
def download(
    session: Annotated[Session, Depends(form_session("decisions:read"))],
    format: Annotated[Format, Form()],
    first: FormText = "",
    last: FormText = "",
    with_notes: FormText = "",
) -> Response:
    """Stream the decision log; a form, since the audit log records the export.

    Notes are for leads and admins.
    """
    person, engine = session.person, session.engine
    if problem := _hides_log(person):
        raise HTTPException(403, problem)
    if with_notes and not person.reads_notes:
        raise HTTPException(403, "notes are for leads and admins; leave them out")
    start, end, notes = _day(first), _day(last), bool(with_notes)
    parts = export(engine, format, first=start, last=end, with_notes=notes)
    with engine.begin() as connection:
        record_event(
            connection,
            "export",
            actor_id=person.id,
            format=format,
            first=None if start is None else str(start),
            last=None if end is None else str(end),
            with_notes=notes,
        )
    name = "-".join(["decisions", *(str(day) for day in (start, end) if day)])
    headers = {"Content-Disposition": f'attachment; filename="{name}.{format}"'}
    return StreamingResponse(parts, media_type=_MEDIA_TYPES[format], headers=headers)


def _day(typed: str) -> dt.date | None:
    try:
        return dt.date.fromisoformat(typed) if typed else None
    except ValueError:
        raise QueueError("invalid date in the export; use the format 2026-01-31") from None


def _log_page(
    session: Session,
    *,
    report: LogReport | None = None,
    used: Newest | None = None,
    problem: str | None = None,
) -> Response:
    """Return the forms, the policy, and the report with the witness that was `used`."""
    return render(
        session,
        "decision_log.html",
        policy=session.policy,
        may_export=_hides_log(session.person) is None,
        report=report,
        used=used,
        problem=problem,
    )
