"""Search for comments, and one comment with its history and the correction of its label."""

import datetime as dt
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Response
from fastapi.responses import RedirectResponse
from pydantic import Field, ValidationError

from modwatch.common.errors import LeaseConflictError, QueueError
from modwatch.review.console.decision_choices import codes_of, reasons_of, titles_of
from modwatch.review.console.render import Page, render
from modwatch.review.console.request_context import (
    ContextDep,
    LeadForm,
    Session,
    form_session,
    page_session,
    require,
)
from modwatch.review.console.review import correct
from modwatch.review.console.schemas import (
    FormCode,
    FormKey,
    FormLabel,
    FormNote,
    FormText,
    FormVersion,
    RecordId,
    RecordSchema,
    RequestSchema,
    error_responses,
    new_key,
    problem_of,
)
from modwatch.review.people import ROLE_SCOPES, Moderator
from modwatch.review.queue import LONGEST_NOTE
from modwatch.review.reporting import search
from modwatch.review.reporting.search import (
    LONGEST_TERM,
    MOST_FOUND,
    OWN_DAYS,
    Event,
    Found,
    FoundItem,
    History,
    SearchQuery,
    Viewer,
)
from modwatch.review.tables import STATUSES

api = APIRouter(prefix="/api/v1", tags=["decisions"], responses=error_responses(401, 403, 503))
SearcherDep = Annotated[Moderator, Depends(require("decisions:read", "review"))]
_Term = Annotated[str, Field(min_length=1, max_length=LONGEST_TERM)]


class SearchRequest(RequestSchema):
    """What to search for; in the body, since search terms must not appear in URLs."""

    comment_id: _Term | None = None
    text: _Term | None = Field(None, description="Part of the comment; requires both days.")
    pseudonym: _Term | None = None
    first_day: dt.date | None = None
    last_day: dt.date | None = None
    status: _Term | None = None
    queue: _Term | None = None
    policy_code: _Term | None = Field(None, description="Requires both days.")
    limit: Annotated[int, Field(ge=1, le=MOST_FOUND)] = 50
    cursor: Annotated[str | None, Field(max_length=40)] = None

    @property
    def query(self) -> SearchQuery:
        """The query as `search` takes it."""
        return SearchQuery(**self.model_dump(exclude={"limit", "cursor"}))


class FoundSchema(RecordSchema):
    """Items, latest first; fields that the person may not see are null.

    Texts are cut to 2,000 characters; the history of an item has the full text.
    """

    items: tuple[FoundItem, ...]
    cursor: str | None = Field(description="For the next page; null on the last.")


class HistorySchema(RecordSchema):
    """Everything that happened to one comment."""

    comment_id: str
    items: tuple[FoundItem, ...]
    events: tuple[Event, ...]


@api.post("/items/search", responses=error_responses(413, 422))
def find_items(request: SearchRequest, context: ContextDep, person: SearcherDep) -> FoundSchema:
    """Return matching items; moderators find items that they decided in the last 14 days."""
    found = search.find(
        context.engine,
        request.query,
        viewer_of(person),
        limit=request.limit,
        cursor=request.cursor,
    )
    return FoundSchema.model_validate(found)


@api.get("/items/{item_id}/history", responses=error_responses(404, 422))
def read_history(item_id: RecordId, context: ContextDep, person: SearcherDep) -> HistorySchema:
    """Return everything that happened to the comment of an item."""
    history = search.history(context.engine, viewer_of(person), item_id=item_id)
    return HistorySchema.model_validate(history)


def viewer_of(person: Moderator) -> Viewer:
    """Return what `person` may see of other people's work.

    What is shown is by the scopes of the token; what is hidden, by the role: whoever may be served
    an item with one token does not read about it with another.
    """
    role = ROLE_SCOPES[person.role]
    return Viewer(
        moderator_id=person.id,
        everybody=person.may("decisions:read"),
        scores=person.may("lead") or person.may("admin"),
        notes=person.reads_notes,
        reviews="review" in role,
        audits="audit" in role,
        queues=person.queues,
    )


pages = APIRouter(include_in_schema=False)
SearchSession = Annotated[Session, Depends(page_session("decisions:read", "review"))]
SearchForm = Annotated[Session, Depends(form_session("decisions:read", "review"))]
Term = Annotated[str, Form(max_length=600)]


@dataclass(frozen=True, kw_only=True)
class SearchPage(Page, template="search.html"):
    """The form and its results."""

    #: Content of the form.
    form: dict[str, str]
    problem: str | None
    found: Found
    statuses: tuple[str, ...]
    titles: dict[str, str]
    #: Days for which a moderator finds their own decisions; None: everyone's decisions.
    own_days: int | None
    #: Whether this person may see why items were sent.
    scores: bool


@pages.get("/search")
def show_search(session: SearchSession) -> Response:
    """Return the form and the latest items."""
    return _results(session, {})


@pages.post("/search")
def find(
    session: SearchForm,
    comment_id: Term = "",
    text: Term = "",
    pseudonym: Term = "",
    first_day: FormText = "",
    last_day: FormText = "",
    status: FormText = "",
    queue: Term = "",
    policy_code: Term = "",
    cursor: FormText = "",
) -> Response:
    """Return matching items; a form, since search terms must not appear in URLs."""
    names = ("comment_id", "text", "pseudonym", "first_day", "last_day", "status", "queue")
    typed = (comment_id, text, pseudonym, first_day, last_day, status, queue)
    form = dict(zip(names, typed, strict=True)) | {"policy_code": policy_code}
    return _results(session, form, cursor or None)


def _results(session: Session, form: dict[str, str], cursor: str | None = None) -> Response:
    viewer = viewer_of(session.person)
    problem, found = None, Found(items=(), cursor=None)
    try:
        found = search.find(session.engine, _query(form), viewer, cursor=cursor)
    except (QueueError, ValidationError) as exc:
        problem = problem_of(exc)
    page = SearchPage(
        form={name: form.get(name, "") for name in SearchQuery.__dataclass_fields__},
        problem=problem,
        found=found,
        statuses=STATUSES if viewer.everybody else (),
        titles=titles_of(session.policy, session.locale),
        own_days=None if viewer.everybody else OWN_DAYS // dt.timedelta(days=1),
        scores=viewer.scores,
    )
    return render(page, session, 422 if problem else 200)


def _query(form: dict[str, str]) -> SearchQuery:
    typed: dict[str, Any] = {
        name: value if name == "text" else value.strip()
        for name, value in form.items()
        if value.strip()
    }
    return SearchRequest.model_validate(typed).query


#: Kinds whose label may be replaced; labels of the others exist for comparison.
CORRECTABLE = ("review", "imported")


@dataclass(frozen=True, kw_only=True)
class ItemPage(Page, template="item.html"):
    """One comment with its history."""

    item: FoundItem
    history: History
    problem: str | None
    #: Events after this decision are new to the reader; None: mark none.
    seen: int | None
    #: Whether to show the form for a correction.
    correctable: bool
    #: Idempotency key of the form.
    key: str
    codes: dict[int, tuple[tuple[str, str], ...]]
    reasons: dict[str, str]
    titles: dict[str, str]
    longest_note: int = LONGEST_NOTE

    @property
    def last(self) -> int:
        """The last decision on the comment; 0 if there is none."""
        return max((each.decision_id or 0 for each in self.history.events), default=0)


@pages.get("/items/{item_id}")
def show_item(item_id: RecordId, session: SearchSession) -> Response:
    """Return the comment of an item, with its history."""
    return render(_item_page(session, item_id), session)


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
            session.context,
            session.person,
            item_id,
            label=int(label),
            version=version,
            key=key,
            reason=reason,
            others_too=True,
            policy_code=policy_code or None,
            note=note.strip() or None,
        )
    except LeaseConflictError as exc:
        page = _item_page(session, item_id, problem=str(exc), seen=seen)
        return render(page, session, 409)
    except QueueError as exc:
        page = _item_page(session, item_id, problem=str(exc))
        return render(page, session, 422)
    return RedirectResponse(f"../{item_id}?notice=corrected", 303)


def _item_page(
    session: Session, item_id: int, *, problem: str | None = None, seen: int | None = None
) -> ItemPage:
    locale = session.locale
    history = search.history(session.engine, viewer_of(session.person), item_id=item_id)
    item = next(each for each in history.items if each.id == item_id)
    return ItemPage(
        item=item,
        history=history,
        problem=problem,
        seen=seen,
        correctable=session.person.may("lead")
        and item.status == "decided"
        and item.kind in CORRECTABLE,
        key=new_key(),
        codes={label: codes_of(session.policy, label, locale) for label in (1, 0)},
        reasons=reasons_of(session.policy, "correct", locale),
        titles=titles_of(session.policy, locale),
    )
