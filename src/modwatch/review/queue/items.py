"""What stands in the queue, and what a moderator holds of it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from datetime import date, datetime

import pyarrow as pa

from modwatch.errors import QueueError

#: PostgreSQL cannot index longer ones.
LONGEST_ID = 512


@dataclass(frozen=True, kw_only=True)
class NewItem:
    """One routed comment on its way into the queue; its text never stands in its repr.

    >>> NewItem(comment_id="c1", text="private", reason="uncertainty", stratum=0, rank=1,
    ...         inclusion_probability=1.0, review_score=0.2, prob=0.4, uncertainty=0.24,
    ...         model_version="3").language is None
    True
    """

    comment_id: str
    text: str = field(repr=False)
    #: uncertainty | toxicity | hybrid | random_slice | retest | gold | audit
    reason: str
    #: 0 is the reviewed top.
    stratum: int
    #: In (0, 1].
    inclusion_probability: float
    #: 1 is reviewed first.
    rank: int
    review_score: float
    prob: float
    uncertainty: float
    model_version: str
    #: review | retest | gold | audit | second_opinion | imported
    kind: str = "review"
    #: How many people are to label it; None: what the queue's rules say.
    labels_wanted: int | None = None
    parent_text: str | None = field(default=None, repr=False)
    language: str | None = None
    platform: str | None = None


@dataclass(frozen=True, kw_only=True)
class Item:
    """One item as a moderator sees it: nothing that would sway the label.

    No score, no reason, and no kind: whoever knows that a label is compared takes more care.
    """

    id: int
    dt: date
    comment_id: str
    text: str = field(repr=False)
    parent_text: str | None = field(repr=False)
    language: str | None
    platform: str | None
    #: Counts the changes of the item, from 1.
    version: int


@dataclass(frozen=True, kw_only=True)
class Lease:
    """The right of one moderator to decide one item until `expires_at`."""

    item: Item
    #: Needed to decide; only its digest is stored.
    token: str = field(repr=False)
    claimed_at: datetime
    expires_at: datetime
    #: Of an escalated item, for the lead who settles it; empty for everybody else.
    opinions: tuple["Opinion", ...] = ()


@dataclass(frozen=True, kw_only=True)
class Opinion:
    """What somebody said of an item before a lead is to settle it."""

    pseudonym: str
    #: label | escalate
    action: str
    label: int | None
    policy_code: str | None
    reason: str | None
    note: str | None = field(repr=False)


def new_items(batches: Iterable[pa.RecordBatch]) -> Iterator[NewItem]:
    """Yield one `NewItem` a row of `batches`, whose columns are named as its fields.

    Columns that `NewItem` lacks are ignored; its optional fields may be absent.
    """
    names = {each.name for each in fields(NewItem)}
    for batch in batches:
        present = [name for name in batch.schema.names if name in names]
        for row in batch.select(present).to_pylist():
            yield NewItem(**row)


def storable(value: str | None, name: str, owner: str) -> str | None:
    """Return `value` unchanged if PostgreSQL can store it.

    Raises `QueueError` naming `name` and `owner`, never the value: NUL and lone surrogates have no
    place in a PostgreSQL text.

    >>> storable("plain", "text", "comment 'c1'")
    'plain'
    """
    if value is not None and "\x00" in value:
        raise QueueError(
            f"the {name} of {owner} contains NUL, which PostgreSQL cannot store; remove it"
        )
    try:
        if value is not None:
            value.encode()
    except UnicodeEncodeError:
        # Not chained: the foreign error carries the whole text.
        raise QueueError(
            f"the {name} of {owner} contains half of a surrogate pair; decode its source again"
        ) from None
    return value
