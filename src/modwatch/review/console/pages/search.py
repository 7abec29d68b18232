"""Search for comments."""

import datetime as dt
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Response
from pydantic import ValidationError

from modwatch.common.errors import QueueError
from modwatch.review.console.api.decisions import SearchRequest, viewer_of
from modwatch.review.console.decision_choices import titles_of
from modwatch.review.console.forms import FormText, problem_of
from modwatch.review.console.render import Page, render
from modwatch.review.console.request_context import (
    Session,
    form_session,
    page_session,
)
from modwatch.review.reporting import search
from modwatch.review.reporting.search import OWN_DAYS, Found, SearchQuery
from modwatch.review.tables import STATUSES

router = APIRouter(include_in_schema=False)

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


@router.get("/search")
def show(session: SearchSession) -> Response:
    """Return the form and the latest items."""
    return _results(session, {})


@router.post("/search")
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
