"""The decision log as a download."""

import datetime as dt

from fastapi import HTTPException
from fastapi.responses import StreamingResponse

from modwatch.review.console.desk import Desk
from modwatch.review.log.export import Format, export
from modwatch.review.people import Moderator, record_event

_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
}


def export_answer(
    desk: Desk,
    person: Moderator,
    format: Format,
    *,
    first: dt.date | None,
    last: dt.date | None,
    with_notes: bool,
) -> StreamingResponse:
    """Return the file, streamed; that somebody took it is written down first.

    403 for notes that this person may not read.
    """
    if with_notes and not (person.may("lead") or person.may("admin")):
        raise HTTPException(403, "notes are for leads and admins; leave them out")
    parts = export(desk.engine, format, first=first, last=last, with_notes=with_notes)
    with desk.engine.begin() as connection:
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
    disposition = f'attachment; filename="{name}.{format}"'
    headers = {"Content-Disposition": disposition}
    return StreamingResponse(parts, media_type=_TYPES[format], headers=headers)
