"""Search for comments in the queue, and the history of one comment.

What is shown depends on the `Viewer` alone, and `_visible` and `_plain` decide it for every search
and history: a person who may be served items learns the kind of none of them.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Annotated, Any

import psycopg
from pydantic import ConfigDict, Field
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Double,
    Engine,
    FromClause,
    ScalarSelect,
    Select,
    Subquery,
    all_,
    and_,
    any_,
    case,
    cast,
    exists,
    func,
    literal,
    literal_column,
    not_,
    or_,
    select,
    text,
    true,
    tuple_,
)
from sqlalchemy.dialects.postgresql import JSONB

from modwatch.common.errors import DatabaseError, ItemNotFoundError, QueueError
from modwatch.review.log.labels import current_decision, decided_between, in_force
from modwatch.review.queue.items import storable
from modwatch.review.queue.leases import UNDO_WITHIN
from modwatch.review.tables import (
    ACTIONABLE_KINDS,
    FINAL_ACTIONS,
    HIDDEN,
    OPEN_STATUSES,
    decision,
    gold_comment,
    is_open,
    moderator,
    review_item,
)

#: Maximum number of days of a search through texts, which reads every item.
MOST_DAYS = 31

#: Number of items per page, and characters of each of their texts. A history is complete.
PER_PAGE = 50
BEGINNING = 2_000

LONGEST_TERM = 512

_Term = Annotated[str, Field(min_length=1, max_length=LONGEST_TERM)]


@dataclass(frozen=True, kw_only=True)
class Viewer:
    """Who searches, and what they may see."""

    moderator_id: int
    #: All items; otherwise only those that this person decided, and only their own decisions.
    sees_all: bool
    #: Why an item was queued, and its scores.
    scores: bool
    #: The notes of others.
    notes: bool
    #: May be served items: sees no comment that waits for their label, and of those that they hold
    #: or labelled neither ids and times nor why they were queued.
    reviews: bool
    #: Labels audits: labels of a comment are hidden while an audit item of it is open.
    audits: bool = False
    #: None: all.
    queues: frozenset[str] | None = None


@dataclass(frozen=True, kw_only=True)
class SearchQuery:
    """What to search for: items that match every field that is set."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    #: Of items whose id is shown.
    comment_id: _Term | None = None
    #: Part of the comment, ignoring case, without wildcards; requires both days.
    text: _Term | None = field(default=None, repr=False)
    #: Who made a decision on it.
    pseudonym: _Term | None = None
    #: Of the comment, or of one's own decision where the day of the comment is not shown.
    first_day: date | None = None
    last_day: date | None = None
    status: _Term | None = None
    queue: _Term | None = None
    #: Of one of its decisions; requires both days.
    policy_code: _Term | None = None
    #: Of the last page; None: the first page.
    cursor: Annotated[str | None, Field(max_length=40)] = None


@dataclass(frozen=True, kw_only=True)
class FoundItem:
    """One item; fields that the viewer may not see are None."""

    id: int
    dt: date | None
    comment_id: str | None
    text: str = field(repr=False)
    parent_text: str | None = field(repr=False)
    #: See `queue.items.content_of`.
    shown: Mapping[str, Any] = field(repr=False)
    queue: str
    status: str | None
    version: int | None
    queued_at: datetime | None
    due_at: datetime | None
    kind: str | None
    reason: str | None
    prob: float | None
    uncertainty: float | None
    model_version: str | None
    #: The current label of a decided item.
    label: int | None


@dataclass(frozen=True, kw_only=True)
class Found:
    """One page of the result of a search.

    Those queued last come first, or those decided last for people who may be served items.
    """

    items: tuple[FoundItem, ...]
    #: Cursor of the next page; None on the last one.
    cursor: str | None


@dataclass(frozen=True, kw_only=True)
class Event:
    """An event of an item: it was queued, or a person made a decision."""

    at: datetime
    item_id: int
    #: None for `queued`.
    decision_id: int | None
    pseudonym: str | None
    #: queued, or an action of the decision log.
    action: str
    label: int | None
    policy_code: str | None
    reason: str | None
    note: str | None = field(repr=False)
    seconds: float | None
    #: The decision that this one reverts or replaces.
    refers_to: int | None


@dataclass(frozen=True, kw_only=True)
class History:
    """The events of one comment that the viewer may see."""

    #: None if the viewer may not see it.
    comment_id: str | None
    items: tuple[FoundItem, ...]
    #: In order of time.
    events: tuple[Event, ...]


#: A search that takes longer is cancelled, so that it does not slow down decisions.
PATIENCE = timedelta(seconds=5)

#: People see their own decisions for so long; retests come later, and must not find the answer.
OWN_DAYS = timedelta(days=14)


def find(
    engine: Engine,
    query: SearchQuery,
    viewer: Viewer,
    *,
    patience: timedelta = PATIENCE,
) -> Found:
    """Return a page of items that match `query`.

    Texts are shortened. A search for a text or a policy code covers at most 31 days, unless the
    comment id is given too. Raises `QueueError` for an invalid query, or one that takes longer than
    `patience`.
    """
    _check(query)
    last = _last_decisions(viewer)
    queued = cast(1_000_000 * func.extract("epoch", review_item.c.queued_at), BigInteger)
    place = last.c.decision_id if viewer.reviews else queued
    before = tuple_(place, review_item.c.id) < tuple_(*_after(query.cursor))
    matching = select(review_item.c.id, place.label("place")).where(
        *_visible(viewer), *_conditions(query, viewer), before
    )
    if viewer.reviews:
        matching = matching.join(last, last.c.item_id == review_item.c.id)
    first = (
        matching.order_by(place.desc(), review_item.c.id.desc())
        .limit(PER_PAGE + 1)
        .cte("first")
        # The other columns are computed for these items only.
        .prefix_with("MATERIALIZED")
    )
    statement = (
        _items(viewer, BEGINNING)
        .add_columns(first.c.place)
        .join(first, first.c.id == review_item.c.id)
        .order_by(first.c.place.desc(), review_item.c.id.desc())
    )
    with engine.begin() as connection, _time_limit(connection, patience):
        rows = [dict(row) for row in connection.execute(statement).mappings()]
    places = [row.pop("place") for row in rows]
    items = tuple(FoundItem(**row) for row in rows[:PER_PAGE])
    more = len(rows) > PER_PAGE
    return Found(items=items, cursor=f"{places[-2]}-{items[-1].id}" if more else None)


def history(engine: Engine, viewer: Viewer, item_id: int) -> History:
    """Return the events of the comment of this item, over all its items.

    Raises `ItemNotFoundError` if there is no such item that the viewer may see.
    """
    named = review_item.alias("named")
    comment_id = select(named.c.comment_id).where(named.c.id == item_id).scalar_subquery()
    with engine.begin() as connection, _time_limit(connection, PATIENCE):
        rows = connection.execute(
            _items(viewer)
            .where(review_item.c.comment_id == comment_id, *_visible(viewer))
            .order_by(review_item.c.queued_at, review_item.c.id)
        ).mappings()
        items = tuple(FoundItem(**row) for row in rows)
        if item_id not in [item.id for item in items]:
            raise ItemNotFoundError(
                "the comment is not in the queue, or you may not see it; search for it"
            )
        rows = connection.execute(_events(viewer, [item.id for item in items])).mappings()
        events = [Event(**row) for row in rows]
    queued = [_queued(item) for item in items if item.queued_at is not None]
    return History(
        comment_id=max((item.comment_id for item in items if item.comment_id), default=None),
        items=items,
        events=tuple(sorted(queued + events, key=lambda event: (event.at, event.decision_id or 0))),
    )


_PLAIN = ("id", "queue")
_TEXTS = ("text", "parent_text")
#: What is shown to everyone.
_UNHIDDEN = literal_column(f"review_item.shown - '{HIDDEN}'", JSONB)
#: These tell whether others go on with an item that the viewer skipped.
_STATE = ("status", "version")
#: These reveal the kind of an item.
_TELLING = ("dt", "comment_id", "queued_at", "due_at")
_SECRET = ("kind", "reason", "model_version")
_SECRET_NUMBERS = ("prob", "uncertainty")


def _items(viewer: Viewer, longest: int | None = None) -> Select[Any]:
    item = review_item.c
    # Items of every kind alike: a kind of which alone something were hidden would be known by that.
    plain = _plain(viewer)
    told = and_(literal(viewer.sees_all), not_(plain))
    shown = and_(literal(viewer.scores), not_(plain))
    resolved = and_(literal(viewer.sees_all), item.status == "escalated")  # not blind
    return select(
        *(item[name] for name in _PLAIN),
        case((or_(told, resolved), item.shown), else_=_UNHIDDEN).label("shown"),
        *(func.left(item[name], longest).label(name) if longest else item[name] for name in _TEXTS),
        *(case((_state_shown(viewer), item[name])).label(name) for name in _STATE),
        *(case((told, item[name])).label(name) for name in _TELLING),
        *(case((shown, item[name])).label(name) for name in _SECRET),
        *(case((shown, cast(item[name], Double))).label(name) for name in _SECRET_NUMBERS),
        case((_labels_shown(viewer), _current_label(viewer))).label("label"),
    )


def _plain(viewer: Viewer) -> ColumnElement[bool]:
    """Return the condition that an item is shown without what would reveal its kind."""
    return and_(literal(viewer.reviews), or_(is_open, _acted_on(viewer)))


def _acted_on(viewer: Viewer) -> ColumnElement[bool]:
    """Return the condition that a person who may be served items made a decision on the item."""
    theirs = review_item.c.id.in_(select(decision.c.item_id).where(_mine(viewer)))
    return and_(literal(viewer.reviews), theirs)


def _state_shown(viewer: Viewer) -> ColumnElement[bool]:
    labelled = and_(_mine(viewer), in_force(*FINAL_ACTIONS))
    theirs = review_item.c.id.in_(select(decision.c.item_id).where(labelled))
    return and_(literal(viewer.sees_all), or_(not_(_acted_on(viewer)), theirs))


def _visible(viewer: Viewer) -> Iterator[ColumnElement[bool]]:
    item = review_item.c
    if viewer.queues is not None:
        yield item.queue.in_(list(viewer.queues))
    mine = item.id.in_(select(decision.c.item_id).where(*_own(viewer)))
    if not viewer.sees_all:
        yield mine
    elif viewer.reviews:
        yield or_(mine, _settled(viewer))
    # While a person holds an item, they see nothing of its comment, unless they resolve it.
    other = review_item.alias("other")
    held = exists().where(other.c.comment_id == item.comment_id, *_held(viewer, other))
    yield or_(not_(held), and_(item.status == "escalated", *_held(viewer, review_item)))


def _settled(viewer: Viewer) -> ColumnElement[bool]:
    """Return the condition that this person will not be asked to label the item's comment.

    Decided items of a comment tell that another item of it, which waits, is a confirmation, a
    retest or gold, and what the answer is. Escalated items are not blind.
    """
    item, other, again = review_item.c, review_item.alias("waiting_one"), decision.alias("long_ago")
    asked = exists().where(
        other.c.comment_id == item.comment_id,
        other.c.status == "waiting",
        literal(viewer.moderator_id) != all_(other.c.excluded),
        func.coalesce(other.c.reserved_for, viewer.moderator_id) == viewer.moderator_id,
    )
    gold = exists().where(
        gold_comment.c.comment_id == item.comment_id, gold_comment.c.retired_at.is_(None)
    )
    # Who may still undo would label again, knowing the answer.
    retested_or_undone = exists().where(
        again.c.comment_id == item.comment_id,
        again.c.moderator_id == viewer.moderator_id,
        or_(
            again.c.decided_at > func.now() - UNDO_WITHIN,
            and_(again.c.action == "label", again.c.decided_at <= func.now() - OWN_DAYS),
        ),
    )
    closed = or_(
        and_(item.kind.in_(ACTIONABLE_KINDS), item.status.not_in(OPEN_STATUSES)),
        and_(item.kind == "confirmation", item.status == "decided"),
    )
    return or_(
        item.status == "escalated",
        and_(closed, not_(asked), not_(gold), not_(retested_or_undone)),
    )


def _mine(viewer: Viewer) -> ColumnElement[bool]:
    return decision.c.moderator_id == viewer.moderator_id


def _last_decisions(viewer: Viewer) -> Subquery:
    """Return the last decision of each item that a person who may be served items finds."""
    last = func.max(decision.c.id).label("decision_id")
    query = select(decision.c.item_id, last).where(_shown(viewer))
    return query.group_by(decision.c.item_id).subquery()


def _held(viewer: Viewer, item: FromClause) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions that the viewer has a lease of `item`."""
    return (item.c.leased_by == viewer.moderator_id, item.c.leased_until > func.now())


def _own(viewer: Viewer) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions of those of their own decisions that a person may see."""
    since = func.now() - OWN_DAYS
    return (_mine(viewer), decision.c.decided_at > since)


def _shown(viewer: Viewer) -> ColumnElement[bool]:
    """Return the condition that a decision is shown: of items that they were served, their own."""
    if not viewer.sees_all:
        return and_(*_own(viewer))
    if not viewer.reviews:
        return true()
    served = decision.alias("served")
    blind = select(served.c.item_id).where(
        served.c.moderator_id == viewer.moderator_id,
        served.c.action.in_(("label", "skip", "escalate")),
    )
    return or_(_mine(viewer), decision.c.item_id.not_in(blind))


def _labels_shown(viewer: Viewer) -> ColumnElement[bool]:
    """Return the condition that labels of the item's comment are shown: not while labelling it."""
    open_one = review_item.alias("open_one")
    audited = and_(literal(viewer.audits), open_one.c.kind == "audit")
    return not_(
        exists().where(
            open_one.c.comment_id == review_item.c.comment_id,
            open_one.c.status.in_(OPEN_STATUSES),
            or_(and_(*_held(viewer, open_one)), audited),
        )
    )


def _current_label(viewer: Viewer) -> ScalarSelect[int | None]:
    decided = or_(literal(not viewer.sees_all), review_item.c.status == "decided")
    label = current_decision(review_item.c.id, decision.c.label)
    return label.where(decided, _shown(viewer)).scalar_subquery()


def _events(viewer: Viewer, items: Collection[int]) -> Select[Any]:
    row = decision.c
    shown = _labels_shown(viewer)
    noted = and_(shown, or_(literal(viewer.notes), row.moderator_id == viewer.moderator_id))
    hideable = ("label", "policy_code", "reason", "refers_to")
    return (
        select(
            row.decided_at.label("at"),
            row.item_id,
            row.id.label("decision_id"),
            moderator.c.pseudonym,
            row.action,
            row.seconds,
            *(case((shown, row[name])).label(name) for name in hideable),
            case((noted, row.note)).label("note"),
        )
        .join(moderator, moderator.c.id == row.moderator_id)
        .join(review_item, review_item.c.id == row.item_id)
        .where(row.item_id.in_(list(items)), _shown(viewer))
        .order_by(row.decided_at, row.id)
    )


def _queued(item: FoundItem) -> Event:
    nothing: dict[str, Any] = dict.fromkeys(Event.__dataclass_fields__)
    known = {"at": item.queued_at, "item_id": item.id, "action": "queued", "reason": item.reason}
    return Event(**nothing | known)


def _conditions(query: SearchQuery, viewer: Viewer) -> Iterator[ColumnElement[bool]]:
    """Yield the conditions of `query`; columns that the viewer may not see are not searched."""
    item = review_item.c
    if query.status is not None and not viewer.sees_all:
        raise QueueError("only leads and auditors may search by status; leave it out")
    if query.queue is not None:
        yield item.queue == query.queue
    if query.status is not None:
        yield and_(item.status == query.status, _state_shown(viewer))
    if query.comment_id is not None:
        yield and_(item.comment_id == query.comment_id, not_(_acted_on(viewer)))
    first, last = query.first_day or date.min, query.last_day or date.max
    if (first, last) != (date.min, date.max):
        mine = select(decision.c.item_id).where(_mine(viewer), decided_between(first, last))
        yield or_(
            and_(item.dt.between(first, last), not_(_acted_on(viewer))),
            and_(literal(viewer.reviews), item.id == any_(func.array(mine.scalar_subquery()))),
        )
    if query.text is not None:
        yield item.text.icontains(query.text, autoescape=True)
    if query.pseudonym is not None:
        who = moderator.c.id == decision.c.moderator_id
        theirs = select(decision.c.item_id).join(moderator, who).where(_shown(viewer))
        yield item.id.in_(theirs.where(moderator.c.pseudonym == query.pseudonym))
    if query.policy_code is not None:
        named = decision.c.policy_code == query.policy_code
        yield exists().where(decision.c.item_id == item.id, named, _shown(viewer))
        yield _labels_shown(viewer)


def _check(query: SearchQuery) -> None:
    for name in ("comment_id", "text", "pseudonym", "status", "queue", "policy_code"):
        storable(getattr(query, name), name, "this search")
    first, last = query.first_day, query.last_day
    if first is not None and last is not None and first > last:
        raise QueueError(f"the first day, {first}, is after the last, {last}; swap them")
    reads_all = query.text is not None or query.policy_code is not None
    endless = first is None or last is None or (last - first).days >= MOST_DAYS
    if query.comment_id is None and reads_all and endless:
        raise QueueError(
            f"a search for a text or policy code may cover at most {MOST_DAYS} days; set the first "
            "and the last day"
        )


def _after(cursor: str | None) -> tuple[int, int]:
    if cursor is None:
        return (2**63 - 1, 0)
    if not re.fullmatch(r"[0-9]{1,18}-[0-9]{1,18}", cursor):
        raise QueueError("the cursor is not one of a search; start again without it")
    place, _, item_id = cursor.partition("-")
    return int(place), int(item_id)


@contextmanager
def _time_limit(connection: Connection, patience: timedelta) -> Iterator[None]:
    """Cancel statements that take longer than `patience`, and raise `QueueError`."""
    milliseconds = str(max(1, int(patience.total_seconds() * 1_000)))
    limit = text("SELECT set_config('statement_timeout', :milliseconds, true)")
    connection.execute(limit, {"milliseconds": milliseconds})
    try:
        yield
    except DatabaseError as exc:
        if not isinstance(exc.__cause__, psycopg.errors.QueryCanceled):
            raise
        raise QueueError(
            f"the search took longer than {patience.total_seconds():g} seconds; choose fewer days "
            "or name the comment"
        ) from None
