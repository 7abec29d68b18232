"""Decision log: verification, export, and the current policy."""

import datetime as dt
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Response

from modwatch.common.errors import QueueError
from modwatch.review.console.api.decisions import export_response
from modwatch.review.console.forms import FormText
from modwatch.review.console.render import Page, render
from modwatch.review.console.request_context import (
    Session,
    form_session,
    page_session,
)
from modwatch.review.log.export import Format
from modwatch.review.log.verification import LogReport, verify_log
from modwatch.review.policy.tree import Policy

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, kw_only=True)
class DecisionLogPage(Page, template="decision_log.html"):
    """Forms for verification and export, the report, and the policy."""

    policy: Policy
    may_verify: bool
    may_read_notes: bool
    #: False for a person of some queues: the log covers all of them.
    may_export: bool
    problem: str | None
    report: LogReport | None


@router.get("/records")
def show(
    session: Annotated[Session, Depends(page_session("decisions:read"))],
) -> Response:
    """Return the forms for verification and export, and the policy."""
    return render(_page(session), session)


@router.post("/records/check")
def verify(
    session: Annotated[Session, Depends(form_session("audit", "admin"))],
    witness: Annotated[str, Form(max_length=900_000)] = "",
) -> Response:
    """Verify the whole log, and show the result."""
    report, problem = None, None
    try:
        report = verify_log(session.engine, witness.strip() or None)
    except QueueError as exc:
        problem = str(exc)
    page = _page(session, report=report, problem=problem)
    return render(page, session, 422 if problem else 200)


@router.post("/records/export")
def export_log(
    session: Annotated[Session, Depends(form_session("decisions:read"))],
    format: Annotated[Format, Form()],
    first: FormText = "",
    last: FormText = "",
    with_notes: FormText = "",
) -> Response:
    """Stream the decision log; a form, since the audit log records the export."""
    days = _day(first), _day(last)
    return export_response(
        session.context, session.person, format, *days, with_notes=bool(with_notes)
    )


def _day(typed: str) -> dt.date | None:
    try:
        return dt.date.fromisoformat(typed) if typed else None
    except ValueError:
        raise QueueError("invalid date in the export; use the format 2026-01-31") from None


def _page(
    session: Session, *, report: LogReport | None = None, problem: str | None = None
) -> DecisionLogPage:
    person = session.person
    return DecisionLogPage(
        policy=session.policy,
        may_verify=person.may("audit") or person.may("admin"),
        may_read_notes=person.reads_notes,
        may_export=person.may("decisions:read") and person.queues is None,
        problem=problem,
        report=report,
    )
