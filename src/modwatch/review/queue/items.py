"""Items of the queue as they come in, as moderators see them, and as leases of them."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from modwatch.common.columns import PLACED, Column, shown
from modwatch.common.errors import QueueError
from modwatch.common.text import SURROGATES
from modwatch.review.tables import HIDDEN, OTHERS


def content_columns(own: Sequence[Column] = ()) -> list[str]:
    """Return the columns that `content_of` reads; `own` are the platform's.

    >>> content_columns()[:3]
    ['comment_id', 'text', 'parent_text']
    """
    return ["comment_id", "text", "parent_text", *(column.name for column in shown(own))]


def content_of(comment: Mapping[str, Any], own: Sequence[Column] = ()) -> dict[str, Any]:
    """Return id and texts of a comment, and as `shown` all else of it that people may see.

    What it lacks is left out, whatever kind of item it becomes.

    >>> karma = Column(name="karma", type="integer", shown_in_queue=True, hidden_when_blind=True)
    >>> row = {"comment_id": "c1", "text": "private", "language": "de", "karma": 0}
    >>> content_of(row, [karma])["shown"]
    {'language': 'de', 'hidden': {'karma': 0}}
    """
    document: dict[str, Any] = {}
    for column in shown(own):
        value = comment.get(column.name)
        if value is None or value == "":
            continue
        written = value.isoformat(timespec="seconds") if isinstance(value, datetime) else value
        other = HIDDEN if column.hidden_when_blind else OTHERS
        part = document if column.is_compared else document.setdefault(other, {})
        part[column.name] = written
    texts = {name: comment.get(name) for name in ("comment_id", "text", "parent_text")}
    return {**texts, "shown": document}


def facts_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a document of `content_of`, by column.

    >>> facts_of({"language": "de", "others": {"topic": "sports"}})
    {'language': 'de', 'topic': 'sports'}
    """
    parts = {name: document.get(name, {}) for name in (OTHERS, HIDDEN)}
    plain = {name: value for name, value in document.items() if name not in parts}
    return {**plain, **parts[OTHERS], **parts[HIDDEN]}


def own_facts(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return titles and values of what pages have no place of their own for.

    >>> own_facts({"language": "de", "user_level": 3, "others": {"subscriber": True}})
    [('User level', '3'), ('Subscriber', 'true')]
    """
    return [
        (
            name.replace("_", " ").capitalize(),
            value if isinstance(value, str) else json.dumps(value),
        )
        for name, value in facts_of(document).items()
        if name not in PLACED
    ]


@dataclass(frozen=True, kw_only=True)
class NewItem:
    """A comment to queue; its repr never contains its text.

    >>> NewItem(comment_id="c1", text="private", reason="uncertainty", stratum=0, rank=1,
    ...         inclusion_probability=1.0, review_score=0.2, prob=0.4, uncertainty=0.24,
    ...         model_version="3").shown
    {}
    """

    comment_id: str
    text: str = field(repr=False)
    #: a review strategy | random_slice | retest | gold | audit
    reason: str
    #: 0 is the top stratum.
    stratum: int
    #: In (0, 1], of the comment.
    inclusion_probability: float
    #: 1 is reviewed first.
    rank: int
    review_score: float
    prob: float
    uncertainty: float
    model_version: str
    #: review | confirmation | retest | gold | audit | imported
    kind: str = "review"
    #: 2 and 3 are the rounds of a confirmation; 1 is every other item.
    round: int = 1
    #: Of a confirmation: the first labels that it confirms. Of an audit: the first labels that a
    #: second person confirms, and a third if these differ; None: see `labels_wanted`.
    confirms: Sequence[int] | None = None
    #: Of a confirmation, in [0, 1]: the probability that a first label 0, 1 of the routed comment
    #: is confirmed.
    confirmation_probability_0: float | None = None
    confirmation_probability_1: float | None = None
    #: How many people label it, independently of each other; None: by the queue's rules.
    labels_wanted: int | None = None
    parent_text: str | None = field(default=None, repr=False)
    #: See `content_of`.
    shown: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, kw_only=True)
class Item:
    """One item, without anything that could influence the label.

    No score, no reason, and no kind: people label more carefully if they know that a label is
    compared. The console sends neither day nor comment id: those of gold items are of other days.
    """

    id: int
    dt: date
    comment_id: str
    text: str = field(repr=False)
    parent_text: str | None = field(repr=False)
    #: See `content_of`; without what is hidden, but of escalated items.
    shown: Mapping[str, Any] = field(repr=False)
    #: Number of the item's revision, from 1.
    version: int


@dataclass(frozen=True, kw_only=True)
class Lease:
    """The right of one moderator to decide one item until `expires_at`."""

    item: Item
    #: Required to decide; only its digest is stored.
    token: str = field(repr=False)
    claimed_at: datetime
    expires_at: datetime
    #: Earlier opinions on an escalated item, for the lead who adjudicates it; empty otherwise.
    opinions: tuple["Opinion", ...] = ()


@dataclass(frozen=True, kw_only=True)
class Opinion:
    """A person's label or escalation of an item that a lead adjudicates."""

    pseudonym: str
    #: label | escalate
    action: str
    label: int | None
    policy_code: str | None
    reason: str | None
    note: str | None = field(repr=False)


def storable(value: str | None, name: str, owner: str) -> str | None:
    """Return `value` unchanged if PostgreSQL can store it.

    Raises `QueueError` naming `name` and `owner`, never the value, if it contains NUL or a lone
    surrogate.

    >>> storable("plain", "text", "comment 'c1'")
    'plain'
    """
    if value is not None and re.search(f"[\0{SURROGATES}]", value):
        raise QueueError(
            f"the {name} of {owner} contains NUL or a lone surrogate, which PostgreSQL cannot "
            "store; decode its source again"
        )
    return value
