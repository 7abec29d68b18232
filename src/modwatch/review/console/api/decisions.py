"""What was decided: search, history, export, and the feed for platforms that pull."""

import datetime as dt
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, HTTPException, Query
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from modwatch.review.console.api import ItemId
from modwatch.review.console.desk import DeskDep, require
from modwatch.review.console.exporting import export_answer
from modwatch.review.console.shapes import Asked, refusals
from modwatch.review.console.viewing import viewer_of
from modwatch.review.log.export import Format
from modwatch.review.log.verification import LogReport, verify_log
from modwatch.review.outbox.feed import LONGEST_PAGE, feed
from modwatch.review.people import Moderator
from modwatch.review.reporting import search
from modwatch.review.reporting.search import LONGEST_TERM, MOST_FOUND, Event, FoundItem, SearchQuery

router = APIRouter(prefix="/api/v1", tags=["decisions"], responses=refusals(401, 403, 503))

ReaderDep = Annotated[Moderator, Depends(require("decisions:read"))]
SearcherDep = Annotated[Moderator, Depends(require("decisions:read", "review"))]
CheckerDep = Annotated[Moderator, Depends(require("audit", "admin"))]

_Term = Annotated[str, Field(min_length=1, max_length=LONGEST_TERM)]


class SearchRequest(Asked):
    """What to look for; in a body, since what people search for must not stand in an address."""

    comment_id: _Term | None = None
    text: _Term | None = Field(None, description="Part of the comment; needs the days.")
    pseudonym: _Term | None = None
    first_day: dt.date | None = None
    last_day: dt.date | None = None
    status: _Term | None = None
    queue: _Term | None = None
    policy_code: _Term | None = Field(None, description="Needs the days.")
    limit: Annotated[int, Field(ge=1, le=MOST_FOUND)] = 50
    cursor: Annotated[str | None, Field(max_length=40)] = None

    @property
    def query(self) -> SearchQuery:
        """The same for `search`."""
        return SearchQuery(**self.model_dump(exclude={"limit", "cursor"}))


class FoundShape(BaseModel):
    """Items, latest first; what the person may not see is null.

    Of a text come the first 2,000 characters; the history of an item has all of it.
    """

    items: tuple[FoundItem, ...]
    cursor: str | None = Field(description="Send it for more; null at the end.")


class HistoryShape(BaseModel):
    """What happened to one comment."""

    comment_id: str
    items: tuple[FoundItem, ...]
    events: tuple[Event, ...]


class FeedShape(BaseModel):
    """A piece of the decision feed, as the webhooks post it."""

    events: tuple[Mapping[str, Any], ...]
    next_cursor: str = Field(description="What to ask with next, also when there was nothing.")


class CheckRequest(Asked):
    """What the log is compared with, beside itself."""

    witness: Annotated[
        str | None, Field(max_length=900_000, description="Of an earlier check.")
    ] = None


class CheckShape(BaseModel):
    """What a check of the decision log found."""

    intact: bool
    decisions: int
    problems: tuple[str, ...]
    head: str = Field(description="The same log has the same head.")
    witness: str = Field(description="Keep it elsewhere; a later check takes it.")


@router.post("/items/search", responses=refusals(413, 422))
def find_items(request: SearchRequest, desk: DeskDep, person: SearcherDep) -> FoundShape:
    """Return items that fit; moderators find what they decided in the last fourteen days."""
    found = search.find(
        desk.engine,
        request.query,
        viewer_of(person),
        limit=request.limit,
        cursor=request.cursor,
    )
    return FoundShape(items=found.items, cursor=found.cursor)


@router.get("/items/{item_id}/history", responses=refusals(404, 422))
def read_history(item_id: ItemId, desk: DeskDep, person: SearcherDep) -> HistoryShape:
    """Return everything that happened to the comment of an item."""
    told = search.history(desk.engine, viewer_of(person), item_id=item_id)
    return HistoryShape(comment_id=told.comment_id, items=told.items, events=told.events)


@router.get("/decisions", responses=refusals(422))
def read_feed(
    desk: DeskDep,
    person: ReaderDep,
    after: Annotated[str | None, Query(max_length=100, description="The last cursor.")] = None,
    limit: Annotated[int, Query(ge=1, le=LONGEST_PAGE)] = 100,
) -> FeedShape:
    """Return what was decided after a cursor, oldest first."""
    refuse_part(person)
    page = feed(desk.engine, after, limit)
    return FeedShape(events=page.events, next_cursor=page.next_cursor)


@router.get(
    "/decisions/export",
    response_class=StreamingResponse,
    responses={200: {"description": "The file."}, **refusals(422)},
)
def export_log(
    desk: DeskDep,
    person: ReaderDep,
    format: Format = "jsonl",
    first: Annotated[dt.date | None, Query(description="UTC, included.")] = None,
    last: Annotated[dt.date | None, Query(description="UTC, included.")] = None,
    with_notes: Annotated[bool, Query(description="For leads and admins.")] = False,
) -> StreamingResponse:
    """Stream the decision log, however long; written down as an event of the account."""
    refuse_part(person)
    return export_answer(desk, person, format, first=first, last=last, with_notes=with_notes)


@router.post("/log/checks", responses=refusals(413, 422))
def check_log(
    desk: DeskDep,
    person: CheckerDep,  # noqa: ARG001 - who may
    request: Annotated[CheckRequest | None, Body()] = None,
) -> CheckShape:
    """Walk along the whole log and tell whether anything was changed, removed or reordered."""
    return _shape(verify_log(desk.engine, request.witness if request else None))


def refuse_part(person: Moderator) -> None:
    """Raise 403 for a person of some queues: the whole log is of all of them."""
    if person.queues is not None:
        raise HTTPException(403, "this holds all queues, and you work some; ask an admin")


def _shape(report: LogReport) -> CheckShape:
    return CheckShape(
        intact=report.intact,
        decisions=report.decisions,
        problems=report.problems,
        head=report.head,
        witness=report.witness,
    )
