"""Which items a closing gives up."""

import datetime as dt
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, func, or_

from modwatch.errors import QueueError
from modwatch.review.queue.items import storable
from modwatch.review.tables import review_item, waiting

#: The others are measurements: given up, they would bend an estimate.
CLOSABLE = ("review", "imported")

#: Comment ids that one closing may name.
MOST_IDS = 10_000


@dataclass(frozen=True, kw_only=True)
class Criteria:
    """Which waiting items to give up: those that fit every field that is set.

    >>> Criteria(queue="de", last_day=dt.date(2026, 1, 31)).chosen
    {'queue': 'de', 'last_day': datetime.date(2026, 1, 31)}
    """

    queue: str | None = None
    #: Why they were sent: uncertainty | toxicity | hybrid | random_slice | imported
    reason: str | None = None
    language: str | None = None
    platform: str | None = None
    #: The days of the comments, both included.
    first_day: dt.date | None = None
    last_day: dt.date | None = None
    #: In the queue since before this moment.
    queued_before: dt.datetime | None = None
    comment_ids: tuple[str, ...] | None = None

    @property
    def chosen(self) -> dict[str, Any]:
        """The fields that are set."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def as_json(self) -> dict[str, Any]:
        """Return what `of_json` reads."""
        return {
            name: value.isoformat() if isinstance(value, dt.date) else value
            for name, value in self.chosen.items()
        }

    @classmethod
    def of_json(cls, content: dict[str, Any]) -> "Criteria":
        """Return the criteria that `as_json` wrote down."""
        read: dict[str, Any] = {
            "first_day": dt.date.fromisoformat,
            "last_day": dt.date.fromisoformat,
            "queued_before": dt.datetime.fromisoformat,
            "comment_ids": tuple,
        }
        return cls(**{name: read.get(name, str)(value) for name, value in content.items()})


def matches(criteria: Criteria) -> ColumnElement[bool]:
    """Return the condition of what to give up. Raises `QueueError` for no criteria, or odd ones."""
    _check(criteria)
    item = review_item.c
    ranges: dict[str, Callable[[Any], ColumnElement[bool]]] = {
        "first_day": lambda day: item.dt >= day,
        "last_day": lambda day: item.dt <= day,
        "queued_before": lambda moment: item.queued_at < moment,
        "comment_ids": lambda ids: item.comment_id.in_(list(ids)),
    }
    return and_(
        waiting,
        item.kind.in_(CLOSABLE),
        or_(item.leased_until.is_(None), item.leased_until <= func.now()),
        *(
            ranges[name](value) if name in ranges else item[name] == value
            for name, value in criteria.chosen.items()
        ),
    )


def _check(criteria: Criteria) -> None:
    chosen = criteria.chosen
    if not chosen:
        raise QueueError("a closing without criteria would give up the whole queue; choose some")
    for name, value in chosen.items():
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, str):
                storable(each, name, "this closing")
    if len(criteria.comment_ids or ()) > MOST_IDS:
        raise QueueError(f"a closing names at most {MOST_IDS} comments; make several of it")
    moment = criteria.queued_before
    if moment is not None and moment.tzinfo is None:
        raise QueueError("the moment of queued_before has no time zone; say which it is in")
