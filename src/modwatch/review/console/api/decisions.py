"""Decisions: search, history, feed, export and verification of the log."""

import datetime as dt
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, HTTPException, Query
from fastapi.responses import StreamingResponse
from pydantic import Field

from modwatch.review.console.api import RecordId
from modwatch.review.console.request_context import Context, ContextDep, require
from modwatch.review.console.schemas import RecordSchema, RequestSchema, error_responses
from modwatch.review.events import record_event
from modwatch.review.log.export import Format, export
from modwatch.review.log.verification import verify_log
from modwatch.review.outbox.feed import LONGEST_PAGE, feed
from modwatch.review.people import ROLE_SCOPES, Moderator
from modwatch.review.reporting import search
from modwatch.review.reporting.search import (
    LONGEST_TERM,
    MOST_FOUND,
    Event,
    FoundItem,
    SearchQuery,
    Viewer,
)

router = APIRouter(prefix="/api/v1", tags=["decisions"], responses=error_responses(401, 403, 503))

ReaderDep = Annotated[Moderator, Depends(require("decisions:read"))]
FeedReaderDep = Annotated[Moderator, Depends(require("feed:read"))]
SearcherDep = Annotated[Moderator, Depends(require("decisions:read", "review"))]

OptionalDay = Annotated[dt.date | None, Query(description="UTC, inclusive.")]

_Term = Annotated[str, Field(min_length=1, max_length=LONGEST_TERM)]

_MEDIA_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
}


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


class FeedSchema(RecordSchema):
    """A page of the decision feed, in the format of the webhooks."""

    events: tuple[Mapping[str, Any], ...]
    next_cursor: str = Field(description="For the next request, also when there are no events.")


class CheckRequest(RequestSchema):
    """What to verify the log against, besides itself."""

    witness: Annotated[
        str | None, Field(max_length=900_000, description="Of an earlier verification.")
    ] = None


class CheckSchema(RecordSchema):
    """Result of a verification of the decision log."""

    intact: bool
    decisions: int
    problems: tuple[str, ...]
    head: str = Field(description="The same log has the same head.")
    witness: str = Field(description="Store it elsewhere, and send it with a later verification.")


@router.post("/items/search", responses=error_responses(413, 422))
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


@router.get("/items/{item_id}/history", responses=error_responses(404, 422))
def read_history(item_id: RecordId, context: ContextDep, person: SearcherDep) -> HistorySchema:
    """Return everything that happened to the comment of an item."""
    history = search.history(context.engine, viewer_of(person), item_id=item_id)
    return HistorySchema.model_validate(history)


@router.get("/decisions", responses=error_responses(422))
def read_feed(
    context: ContextDep,
    person: FeedReaderDep,
    after: Annotated[str | None, Query(max_length=100, description="The last cursor.")] = None,
    limit: Annotated[int, Query(ge=1, le=LONGEST_PAGE)] = 100,
) -> FeedSchema:
    """Return decisions after a cursor, oldest first."""
    _check_all_queues(person)
    return FeedSchema.model_validate(feed(context.engine, after, limit))


@router.get(
    "/decisions/export",
    response_class=StreamingResponse,
    responses={200: {"description": "The file."}, **error_responses(422)},
)
def export_log(
    context: ContextDep,
    person: ReaderDep,
    format: Format = "jsonl",
    first: OptionalDay = None,
    last: OptionalDay = None,
    with_notes: Annotated[bool, Query(description="For leads and admins.")] = False,
) -> StreamingResponse:
    """Stream the decision log; the audit log records the export."""
    return export_response(context, person, format, first, last, with_notes=with_notes)


@router.post(
    "/log/checks",
    responses=error_responses(413, 422),
    dependencies=[Depends(require("audit", "admin"))],
)
def check_log(
    context: ContextDep, request: Annotated[CheckRequest | None, Body()] = None
) -> CheckSchema:
    """Verify the whole log: whether any decision was changed, removed or reordered."""
    report = verify_log(context.engine, request.witness if request else None)
    return CheckSchema.model_validate(report)


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


def export_response(
    context: Context,
    person: Moderator,
    format: Format,
    first: dt.date | None,
    last: dt.date | None,
    *,
    with_notes: bool,
) -> StreamingResponse:
    """Return the streamed file, after recording the export in the audit log.

    403 for a person of some queues, and for notes that this person may not read.
    """
    _check_all_queues(person)
    if with_notes and not person.reads_notes:
        raise HTTPException(403, "notes are for leads and admins; leave them out")
    parts = export(context.engine, format, first=first, last=last, with_notes=with_notes)
    with context.engine.begin() as connection:
        record_event(
            connection,
            "export",
            actor_id=person.id,
            format=format,
            first=None if first is None else str(first),
            last=None if last is None else str(last),
            with_notes=with_notes,
        )
    name = "-".join(["decisions", *(str(day) for day in (first, last) if day)])
    headers = {"Content-Disposition": f'attachment; filename="{name}.{format}"'}
    return StreamingResponse(parts, media_type=_MEDIA_TYPES[format], headers=headers)


def _check_all_queues(person: Moderator) -> None:
    """Raise 403 for a person of some queues: the log covers all of them."""
    if person.queues is not None:
        raise HTTPException(
            403, "this covers all queues, and you have access to some; ask an admin"
        )
