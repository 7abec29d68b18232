"""Days without comments, as people declare them: entries of the log of events.

A day whose source brings no rows is rejected, as its rows may be lost. Whoever knows that there
were none declares it. Rows that come later count: the declaration has no effect then.
"""

import datetime

from sqlalchemy import Engine, select

from modwatch.review.database import at_once
from modwatch.review.events import record_event
from modwatch.review.log.recorded_state import day_of
from modwatch.review.tables import event

_ACTION = "declare_empty"


def declare_empty(database: Engine, day: datetime.date, person: str) -> None:
    """Record that a day has no comments, and who says so."""
    with database.begin() as connection:
        record_event(connection, _ACTION, actor_id=None, day=str(day), person=person)


def declared_empty(
    database: Engine, first: datetime.date, last: datetime.date
) -> dict[datetime.date, str]:
    """Return who declared which days from `first` to `last`, both included, to have no comments."""
    written = event.c.details["day"].astext
    declared = (
        select(written.label("day"), event.c.details["person"].astext.label("person"))
        .where(event.c.action == _ACTION, written.between(str(first), str(last)))
        .order_by(event.c.position)
    )
    return {day_of(row["day"]): row["person"] or "" for row in at_once(database, declared)}
