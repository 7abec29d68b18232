"""Find comments, see what happened to one, and correct what stands."""

import datetime as dt
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from fastapi import APIRouter, Depends, Form, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import ValidationError

from modwatch.errors import LeaseConflictError, QueueError
from modwatch.review.console.api import ItemId
from modwatch.review.console.api.decisions import SearchRequest
from modwatch.review.console.desk import DeskDep, FormText, Visit, page_visit
from modwatch.review.console.i18n import N_
from modwatch.review.console.pages.lead import LeadVisit
from modwatch.review.console.pages.parts import (
    ListPage,
    codes_of,
    new_key,
    reasons_of,
    titles_of,
)
from modwatch.review.console.render import render, shell_of
from modwatch.review.console.viewing import viewer_of
from modwatch.review.policy.tree import check, check_reason
from modwatch.review.queue import LONGEST_NOTE, amendments
from modwatch.review.reporting import search
from modwatch.review.reporting.search import OWN_DAYS, Found, FoundItem, History, SearchQuery
from modwatch.review.tables import STATUSES

router = APIRouter(include_in_schema=False)

SearchVisit = Annotated[Visit, Depends(page_visit("decisions:read", "review"))]

NOTICES = {"corrected": N_("Corrected. The log keeps both.")}

#: The label of these may be replaced; comparing labels with them is the purpose of the others.
CORRECTABLE = ("review", "imported")

Term = Annotated[str, Form(max_length=600)]


@dataclass(frozen=True, kw_only=True)
class SearchPage(ListPage):
    """`search.html`."""

    template: ClassVar[str] = "search.html"

    #: What is in the form.
    form: dict[str, str]
    problem: str | None
    found: Found
    statuses: tuple[str, ...]
    titles: dict[str, str]
    #: None: of everybody.
    own_days: int | None
    #: Whether it is told why items were sent.
    scores: bool


@dataclass(frozen=True, kw_only=True)
class ItemPage(ListPage):
    """`item.html`."""

    template: ClassVar[str] = "item.html"

    item: FoundItem
    history: History
    notice: str | None
    problem: str | None
    #: What came after this decision is new to the reader.
    seen: int | None
    #: Whether the form to correct is there.
    correctable: bool
    key: str
    codes: dict[int, tuple[tuple[str, str], ...]]
    reasons: dict[str, str]
    titles: dict[str, str]
    longest_note: int = LONGEST_NOTE

    @property
    def last(self) -> int:
        """The last decision of the comment; 0 when there is none."""
        return max((each.decision_id or 0 for each in self.history.events), default=0)


@router.get("/search")
def ask(request: Request, desk: DeskDep, visit: SearchVisit) -> Response:
    """Return the form, and what came last."""
    return _answer(request, desk, visit, {})


@router.post("/search")
def find(
    request: Request,
    desk: DeskDep,
    visit: SearchVisit,
    csrf: FormText,
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
    """Return what fits; a form, since what people search for must not stand in an address."""
    visit.check(csrf)
    names = ("comment_id", "text", "pseudonym", "first_day", "last_day", "status", "queue")
    typed = (comment_id, text, pseudonym, first_day, last_day, status, queue)
    form = dict(zip(names, typed, strict=True)) | {"policy_code": policy_code}
    return _answer(request, desk, visit, form, cursor or None)


@router.get("/items/{item_id}")
def show(
    request: Request,
    item_id: ItemId,
    desk: DeskDep,
    visit: SearchVisit,
    notice: Annotated[str, Query(max_length=20)] = "",
) -> Response:
    """Return what happened to the comment of an item."""
    page = _item_page(request, desk, visit, item_id, notice=NOTICES.get(notice))
    return render(page, request, visit)


@router.post("/items/{item_id}/correct")
def correct(
    request: Request,
    item_id: ItemId,
    desk: DeskDep,
    visit: LeadVisit,
    csrf: FormText,
    version: Annotated[int, Form(ge=1, le=2**31 - 1)],
    seen: Annotated[int, Form(ge=0, le=2**63 - 1)],
    key: Annotated[str, Form(min_length=1, max_length=200)],
    label: Annotated[Literal["0", "1"], Form()],
    reason: Annotated[str, Form(max_length=60)],
    policy_code: Annotated[str, Form(max_length=60)] = "",
    note: Annotated[str, Form(max_length=LONGEST_NOTE)] = "",
) -> Response:
    """Replace the label that stands; when the item has changed, tell what, and ask again."""
    visit.check(csrf)
    search.history(desk.engine, viewer_of(visit.person), item_id=item_id)  # of their queues, or 404
    try:
        required = desk.options.require_code and label == "1"
        check(desk.policy, int(label), policy_code or None, required=required)
        check_reason(desk.policy, "correct", reason)
        amendments.correct(
            desk.engine,
            moderator_id=visit.person.id,
            item_id=item_id,
            label=int(label),
            version=version,
            idempotency_key=key,
            reason=reason,
            others_too=True,
            queues=visit.person.queues,
            policy_version=desk.policy.version,
            policy_code=policy_code or None,
            note=note.strip() or None,
        )
    except LeaseConflictError as refusal:
        page = _item_page(request, desk, visit, item_id, problem=str(refusal), seen=seen)
        return render(page, request, visit, 409)
    except QueueError as refusal:
        page = _item_page(request, desk, visit, item_id, problem=str(refusal))
        return render(page, request, visit, 422)
    return RedirectResponse(f"../{item_id}?notice=corrected", 303)


def _answer(
    request: Request,
    desk: DeskDep,
    visit: Visit,
    form: dict[str, str],
    cursor: str | None = None,
) -> Response:
    viewer = viewer_of(visit.person)
    problem, found = None, Found(items=(), cursor=None)
    try:
        found = search.find(desk.engine, _query(form), viewer, cursor=cursor)
    except (QueueError, ValidationError) as refusal:
        problem = str(refusal) if isinstance(refusal, QueueError) else _problem(refusal)
    page = SearchPage(
        form={name: form.get(name, "") for name in SearchQuery.__dataclass_fields__},
        problem=problem,
        found=found,
        statuses=STATUSES if viewer_of(visit.person).everybody else (),
        titles=titles_of(desk.policy, shell_of(request, visit).locale),
        own_days=None if viewer.everybody else OWN_DAYS // dt.timedelta(days=1),
        scores=viewer.scores,
    )
    return render(page, request, visit, 422 if problem else 200)


def _query(form: dict[str, str]) -> SearchQuery:
    typed: dict[str, Any] = {
        name: value if name == "text" else value.strip()
        for name, value in form.items()
        if value.strip()
    }
    return SearchRequest.model_validate(typed).query


def _problem(refusal: ValidationError) -> str:
    names = sorted({str(error["loc"][0]) for error in refusal.errors()})
    return f"these fields cannot be read: {', '.join(names)}; mend them and search again"


def _item_page(
    request: Request,
    desk: DeskDep,
    visit: Visit,
    item_id: int,
    *,
    notice: str | None = None,
    problem: str | None = None,
    seen: int | None = None,
) -> ItemPage:
    locale = shell_of(request, visit).locale
    told = search.history(desk.engine, viewer_of(visit.person), item_id=item_id)
    item = next(each for each in told.items if each.id == item_id)
    return ItemPage(
        item=item,
        history=told,
        notice=notice,
        problem=problem,
        seen=seen,
        correctable=visit.person.may("lead")
        and item.status == "decided"
        and item.kind in CORRECTABLE,
        key=new_key(),
        codes={label: codes_of(desk.policy, label, locale) for label in (1, 0)},
        reasons=reasons_of(desk.policy, "correct", locale),
        titles=titles_of(desk.policy, locale),
    )
