"""Who looks at the queue, what they look for, and what they are shown."""

from dataclasses import dataclass, field
from datetime import date, datetime


@dataclass(frozen=True, kw_only=True)
class Viewer:
    """Who looks, and so what is shown."""

    moderator_id: int
    #: The items of everybody; else only those that this person decided, and only their decisions.
    everybody: bool
    #: Why and with which scores an item was sent.
    scores: bool
    #: May be served blind items: what tells them apart is kept back until they are decided.
    reviews: bool
    #: Labels audits: no label of a comment is shown as long as an audit of it is open.
    audits: bool = False
    #: None: all.
    queues: frozenset[str] | None = None


@dataclass(frozen=True, kw_only=True)
class SearchQuery:
    """What to look for: items that fit every field that is set."""

    comment_id: str | None = None
    #: Part of the comment, in whichever case; every character stands for itself.
    text: str | None = field(default=None, repr=False)
    #: Somebody did something with it.
    pseudonym: str | None = None
    first_day: date | None = None
    last_day: date | None = None
    status: str | None = None
    queue: str | None = None
    #: A decision names it.
    policy_code: str | None = None


@dataclass(frozen=True, kw_only=True)
class FoundItem:
    """One item, as far as the viewer may see it; None where not."""

    id: int
    dt: date
    comment_id: str
    text: str = field(repr=False)
    parent_text: str | None = field(repr=False)
    language: str | None
    platform: str | None
    queue: str
    status: str | None
    version: int | None
    queued_at: datetime | None
    due_at: datetime | None
    kind: str | None
    reason: str | None
    prob: float | None
    uncertainty: float | None
    review_score: float | None
    model_version: str | None
    #: The label that stands of a decided item.
    label: int | None


@dataclass(frozen=True, kw_only=True)
class Found:
    """Some of what a search found, latest first."""

    items: tuple[FoundItem, ...]
    #: Hand it to the next call for more; None at the end.
    cursor: str | None


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happened to an item."""

    at: datetime
    item_id: int
    #: None for what nobody did: it was queued.
    decision_id: int | None
    pseudonym: str | None
    #: queued, or an action of the log.
    action: str
    label: int | None
    policy_version: str | None
    policy_code: str | None
    reason: str | None
    note: str | None = field(repr=False)
    seconds: float | None
    #: The decision that this one takes back or replaces.
    refers_to: int | None


@dataclass(frozen=True, kw_only=True)
class History:
    """Everything that happened to one comment, as far as the viewer may see it."""

    comment_id: str
    items: tuple[FoundItem, ...]
    #: In order.
    events: tuple[Event, ...]
