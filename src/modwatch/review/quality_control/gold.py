"""Gold comments: those whose label is known, from a panel, a corpus, or people who agreed.

`queueing` lets moderators meet them unmarked, `agreement` counts how often their answer is the
known one. People see a comment's id: let it look like all others.
"""

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import Connection, Engine, and_, case, func, or_, select, update
from sqlalchemy.dialects import postgresql

from modwatch.errors import QueueError
from modwatch.review.log.labels import stands
from modwatch.review.queue.items import LONGEST_ID, storable
from modwatch.review.tables import (
    FINAL_ACTIONS,
    NO_LEASE,
    decision,
    gold_comment,
    moderator,
    review_item,
)

logger = logging.getLogger(__name__)

_OPINIONS = ("review", "second_opinion")


@dataclass(frozen=True, kw_only=True)
class GoldComment:
    """One comment and its known label; its text never stands in its repr.

    >>> GoldComment(comment_id="c1", text="private", label=1, source="panel of March")
    GoldComment(comment_id='c1', label=1, source='panel of March', language=None, platform=None)
    """

    comment_id: str
    text: str = field(repr=False)
    #: 1 toxic, 0 not.
    label: int
    #: Who says so: a person, a panel, a published corpus.
    source: str
    parent_text: str | None = field(default=None, repr=False)
    language: str | None = None
    platform: str | None = None
    policy_code: str | None = field(default=None, repr=False)


_record = TypeAdapter(GoldComment)


def gold_of(values: Mapping[str, Any], where: str) -> GoldComment:
    """Return the gold comment that a record says, whose `values` are named as its fields.

    Other values are ignored; those that are None or empty are absent ones. Raises `QueueError`
    naming `where` and the field, never its value.

    >>> gold_of({"comment_id": "c1", "text": "private", "label": "1", "source": "p"}, "line 2")
    GoldComment(comment_id='c1', label=1, source='p', language=None, platform=None)
    """
    present = {name: value for name, value in values.items() if value not in (None, "")}
    try:
        return _record.validate_python(present)
    except ValidationError as exc:
        problem = exc.errors(include_input=False, include_url=False)[0]
    # Raised here, for the foreign error carries the values.
    raise QueueError(f"the {problem['loc'][0]} of {where} cannot be: {problem['msg']}; mend it")


def add_gold(engine: Engine, comments: Iterable[GoldComment]) -> int:
    """Add gold comments, all or none; return how many are new, or back after `retire_gold`.

    One that is there stays as it is. Raises `QueueError` when it has another text or label there
    (retire it first: what people answered before counts no more then), or cannot be stored.
    """
    rows = [_row(comment) for comment in comments]
    with engine.begin() as connection:
        return sum(_add(connection, row) for row in rows)


def retire_gold(engine: Engine, comment_ids: Collection[str]) -> int:
    """Ask nobody about these any more; return how many were asked about until now.

    Those that wait are withdrawn, and answers given before count no more: a gold comment is retired
    because its label is doubtful, or because everybody knows it.
    """
    ids = list(comment_ids)
    with engine.begin() as connection:
        retired = connection.execute(
            update(gold_comment)
            .where(gold_comment.c.comment_id.in_(ids), gold_comment.c.retired_at.is_(None))
            .values(retired_at=func.now())
        ).rowcount
        withdraw(connection, review_item.c.kind == "gold", review_item.c.comment_id.in_(ids))
    return retired


def withdraw(connection: Connection, *which: Any) -> int:
    """Withdraw the undecided items that fit `which`, leased or not; return how many."""
    return connection.execute(
        update(review_item)
        .where(review_item.c.status.in_(["waiting", "blocked", "escalated"]), *which)
        .values(
            status="withdrawn",
            version=review_item.c.version + 1,
            **NO_LEASE,
        )
    ).rowcount


def gold_from_decisions(engine: Engine, item_ids: Iterable[int]) -> list[str]:
    """Make decided items gold, all or none; return the ids of those that are new.

    Of an item that was escalated, or corrected by somebody else, the label is the one that settled
    it; else two people at least must have labelled the comment, first and second opinion together,
    and all alike. Raises `QueueError` for an item without such a label.
    """
    with engine.begin() as connection:
        rows = [_row(_settled(connection, item_id)) for item_id in item_ids]
        return [row["comment_id"] for row in rows if _add(connection, row)]


def _row(comment: GoldComment) -> dict[str, Any]:
    owner = f"gold comment {comment.comment_id!r}"
    row = asdict(comment)
    for name, value in row.items():
        if isinstance(value, str):
            storable(value, name, owner)
    if not 0 < len(comment.comment_id) <= LONGEST_ID:
        raise QueueError(f"the id of a gold comment has 1 to {LONGEST_ID} characters; shorten it")
    if comment.label not in (0, 1):
        raise QueueError(f"the label of {owner} is {comment.label!r}; it must be 0 or 1")
    if not comment.source.strip():
        raise QueueError(f"{owner} has no source; say who knows its label")
    return row


def _add(connection: Connection, row: dict[str, Any]) -> bool:
    """Return whether the comment is gold since now; a retired one begins anew if it differs."""
    insertion = postgresql.insert(gold_comment).values(row)
    new = insertion.excluded
    same = and_(gold_comment.c.text == new.text, gold_comment.c.label == new.label)
    added = connection.scalar(
        insertion.on_conflict_do_update(
            index_elements=["comment_id"],
            set_={
                **{name: new[name] for name in row if name != "comment_id"},
                "retired_at": None,
                "added_at": case((same, gold_comment.c.added_at), else_=func.now()),
            },
            where=gold_comment.c.retired_at.is_not(None),
        ).returning(gold_comment.c.comment_id)
    )
    known = select(gold_comment.c.text, gold_comment.c.label).where(
        gold_comment.c.comment_id == row["comment_id"]
    )
    if tuple(connection.execute(known).one()) != (row["text"], row["label"]):
        raise QueueError(
            f"comment {row['comment_id']!r} is gold already, with another text or label; retire it "
            "first"
        )
    return added is not None


def _settled(connection: Connection, item_id: int) -> GoldComment:
    """Return the item's comment with the label that people settled on."""
    found = select(review_item).where(
        review_item.c.id == item_id,
        review_item.c.status == "decided",
        review_item.c.kind.in_(_OPINIONS),
    )
    item = connection.execute(found).mappings().one_or_none()
    if item is None:
        raise QueueError(f"item {item_id} is not a decided comment; choose one that is")
    label, policy_code, source = _verdict(connection, item["id"], item["dt"], item["comment_id"])
    copied = ("comment_id", "text", "parent_text", "language", "platform")
    return GoldComment(
        **{name: item[name] for name in copied},
        label=label,
        policy_code=policy_code,
        source=source,
    )


def _verdict(
    connection: Connection, item_id: int, day: Any, comment_id: str
) -> tuple[int, str | None, str]:
    columns = ("action", "label", "policy_code", "moderator_id")
    said = connection.execute(
        select(*(decision.c[name] for name in columns), moderator.c.pseudonym)
        .join(review_item, review_item.c.id == decision.c.item_id)
        .join(moderator, moderator.c.id == decision.c.moderator_id)
        .where(
            or_(
                decision.c.item_id == item_id,
                and_(
                    review_item.c.dt == day,
                    review_item.c.comment_id == comment_id,
                    review_item.c.kind.in_(_OPINIONS),
                ),
            ),
            stands(*FINAL_ACTIONS),
        )
        .order_by(decision.c.id)
    ).all()
    labelled = {row.moderator_id: row for row in said if row.action == "label"}
    settling = [
        row
        for row in said
        if row.action == "adjudicate"
        or (row.action == "correct" and row.moderator_id not in labelled)
    ]
    if settling:
        return settling[-1].label, settling[-1].policy_code, f"settled by {settling[-1].pseudonym}"
    last = {row.moderator_id: row for row in said}
    if len(last) < 2 or len({row.label for row in last.values()}) > 1:
        raise QueueError(
            f"item {item_id} has no label that two people gave alike or a lead settled; choose "
            "another one"
        )
    return said[-1].label, said[-1].policy_code, f"unanimous, {len(last)} people"
