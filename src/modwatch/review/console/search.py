"""Search for comments, and one comment with its history and the correction of its label."""

import datetime as dt
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Response
from fastapi.responses import RedirectResponse
from pydantic import TypeAdapter, ValidationError

from modwatch.common.errors import LeaseConflictError, QueueError
from modwatch.review import search
from modwatch.review.console.decision_choices import codes_of, reasons_of, titles_of
from modwatch.review.console.render import render
from modwatch.review.console.request_context import LeadForm, Session, form_session, page_session
from modwatch.review.console.review import correct
from modwatch.review.console.schemas import (
    FormCode,
    FormFields,
    FormKey,
    FormLabel,
    FormNote,
    FormVersion,
    RecordId,
    new_key,
    problem_of,
)
from modwatch.review.people.accounts import ROLE_SCOPES, Moderator
from modwatch.review.queue.deciding import LONGEST_NOTE
from modwatch.review.search import OWN_DAYS, Found, SearchQuery, Viewer
from modwatch.review.tables import ACTIONABLE_KINDS, STATUSES


def viewer_of(person: Moderator) -> Viewer:
    """Return what `person` may see of other people's work.

    The scopes of the token decide what is shown; the role decides what is hidden: a person who may
    be served an item with one token does not read about it with another.
    """
    role = ROLE_SCOPES[person.role]
    return Viewer(
        moderator_id=person.id,
        sees_all=person.may("decisions:read"),
        scores=person.may("lead") or person.may("admin"),
        notes=person.reads_notes,
        reviews="review" in role,
        audits="audit" in role,
        queues=person.queues,
    )


pages = APIRouter(include_in_schema=False)
SearchSession = Annotated[Session, Depends(page_session("decisions:read", "review"))]
SearchForm = Annotated[Session, Depends(form_session("decisions:read", "review"))]
_TERMS = tuple(SearchQuery.__dataclass_fields__.keys() - {"cursor"})


@pages.get("/search")
def show_search(session: SearchSession, day: dt.date | None = None) -> Response:
    """Return the form and the latest items, or those of a day."""
    return _results(
        session, {} if day is None else dict.fromkeys(("first_day", "last_day"), str(day))
    )


@pages.post("/search")
def find(session: SearchForm, form: FormFields) -> Response:
    """Return matching items; a form, since search terms must not appear in URLs."""
    return _results(session, form)


def _results(session: Session, form: dict[str, str]) -> Response:
    viewer = viewer_of(session.person)
    problem, found = None, Found(items=(), cursor=None)
    try:
        found = search.find(session.engine, _query(form), viewer)
    except (QueueError, ValidationError) as exc:
        problem = problem_of(exc)
    return render(
        session,
        "search.html",
        form={name: form.get(name, "") for name in _TERMS},
        problem=problem,
        found=found,
        statuses=_statuses(viewer),
        titles=titles_of(session.policy, session.locale),
        own_days=None if viewer.sees_all else OWN_DAYS // dt.timedelta(days=1),
        scores=viewer.scores,
    )


def _statuses(viewer: Viewer) -> tuple[str, ...]:
    """Return the statuses to search for; none for people who find their own decisions only."""
    if not viewer.sees_all:
        return ()
    hidden = ("waiting", "blocked") if viewer.reviews else ()
    return tuple(status for status in STATUSES if status not in hidden)


def _query(form: dict[str, str]) -> SearchQuery:
    typed: dict[str, Any] = {
        name: value if name == "text" else value.strip()
        for name in (*_TERMS, "cursor")
        if (value := form.get(name, "")).strip()
    }
    return TypeAdapter(SearchQuery).validate_python(typed)


@pages.get("/items/{item_id}")
def show_item(item_id: RecordId, session: SearchSession) -> Response:
    """Return the comment of an item, with its history."""
    return _item_page(session, item_id)


@pages.post("/items/{item_id}/correct")
def correct_label(
    item_id: RecordId,
    session: LeadForm,
    version: FormVersion,
    seen: Annotated[int, Form(ge=0, le=2**63 - 1)],
    key: FormKey,
    label: FormLabel,
    reason: FormCode,
    policy_code: FormCode = "",
    note: FormNote = "",
) -> Response:
    """Replace the current label; if the item has changed, show the changes and ask again."""
    viewer = viewer_of(session.person)
    search.history(session.engine, viewer, item_id=item_id)  # 404 for items of other queues
    try:
        correct(
            session,
            item_id,
            key=key,
            label=label,
            version=version,
            reason=reason,
            policy_code=policy_code or None,
            note=note.strip() or None,
            others_too=True,
        )
    except LeaseConflictError as exc:
        return _item_page(session, item_id, 409, problem=str(exc), seen=seen)
    except QueueError as exc:
        return _item_page(session, item_id, problem=str(exc))
    return RedirectResponse(f"../{item_id}?notice=corrected", 303)


def _item_page(
    session: Session,
    item_id: int,
    status: int | None = None,
    *,
    problem: str | None = None,
    seen: int | None = None,
) -> Response:
    """Return the page; events after the decision `seen` are marked as new, if it is given."""
    locale = session.locale
    history = search.history(session.engine, viewer_of(session.person), item_id=item_id)
    item = next(item for item in history.items if item.id == item_id)
    return render(
        session,
        "item.html",
        status,
        problem=problem,
        seen=seen,
        item=item,
        history=history,
        last=max((event.decision_id or 0 for event in history.events), default=0),
        # The kind is None of one's own label; labels of the other kinds exist for comparison.
        correctable=session.person.may("lead")
        and item.status == "decided"
        and item.kind in (None, *ACTIONABLE_KINDS),
        key=new_key(),
        codes={label: codes_of(session.policy, label, locale) for label in (1, 0)},
        reasons=reasons_of(session.policy, "correct", locale),
        titles=titles_of(session.policy, locale),
        longest_note=LONGEST_NOTE,
    )
