"""Items of the queue as they come in, as moderators see them, and as leases of them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime

from modwatch.common.errors import QueueError
from modwatch.common.text import SURROGATES


@dataclass(frozen=True, kw_only=True)
class NewItem:
    """A comment to queue; its repr never contains its text.

    >>> NewItem(comment_id="c1", text="private", reason="uncertainty", stratum=0, rank=1,
    ...         inclusion_probability=1.0, review_score=0.2, prob=0.4, uncertainty=0.24,
    ...         model_version="3").language is None
    True
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
    language: str | None = None
    platform: str | None = None


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
    language: str | None
    platform: str | None
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
