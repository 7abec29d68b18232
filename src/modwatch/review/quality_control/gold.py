"""Gold comments: comments whose label is known, from a panel, a corpus, or unanimous people.

`queueing` serves them to moderators unmarked, and `agreement` computes how often the answer is the
known label. Moderators see a comment's id, so use ids that look like all others.
"""

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import Connection, Engine, RowMapping, and_, case, func, or_, select, update
from sqlalchemy.dialects import postgresql

from modwatch.common.errors import QueueError
from modwatch.review.events import record_event
from modwatch.review.log.labels import in_force
from modwatch.review.log.recorded_state import GOLD_COMMITMENT
from modwatch.review.queue.intake import withdraw
from modwatch.review.queue.items import LONGEST_ID, storable
from modwatch.review.tables import (
    FINAL_ACTIONS,
    ROUTED_KINDS,
    decision,
    gold_comment,
    moderator,
    review_item,
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class GoldComment:
    """One comment and its known label; its repr never contains its text.

    >>> GoldComment(comment_id="c1", text="private", label=1, source="panel of March")
    GoldComment(comment_id='c1', label=1, source='panel of March', language=None, platform=None)
    """

    comment_id: str
    text: str = field(repr=False)
    #: 1 toxic, 0 not.
    label: int
    #: Where the label comes from: a person, a panel, a published corpus.
    source: str
    parent_text: str | None = field(default=None, repr=False)
    language: str | None = None
    platform: str | None = None
    policy_code: str | None = field(default=None, repr=False)


_record = TypeAdapter(GoldComment)


def gold_of(values: Mapping[str, Any], where: str) -> GoldComment:
    """Return the gold comment of a record, whose `values` are named as its fields.

    Other values are ignored, and None or an empty text counts as absent. Raises `QueueError` naming
    `where` and the field, never its value.

    >>> gold_of({"comment_id": "c1", "text": "private", "label": "1", "source": "p"}, "line 2")
    GoldComment(comment_id='c1', label=1, source='p', language=None, platform=None)
    """
    present = {name: value for name, value in values.items() if value not in (None, "")}
    try:
        return _record.validate_python(present)
    except ValidationError as exc:
        problem = exc.errors(include_input=False, include_url=False)[0]
    # Raised outside the handler, because the original error contains the values.
    raise QueueError(f"invalid {problem['loc'][0]} of {where}: {problem['msg']}; correct it")


def add_gold(engine: Engine, comments: Iterable[GoldComment]) -> int:
    """Add gold comments, all or none; return how many are new, or active again after `retire_gold`.

    An existing gold comment stays unchanged. Raises `QueueError` if its text or label differs
    (retire it first: earlier answers then no longer count), or if a comment cannot be stored.
    """
    rows = [_row(comment) for comment in comments]
    with engine.begin() as connection:
        added = [row["comment_id"] for row in rows if _add(connection, row)]
        record_gold(connection, "add_gold", added)
    return len(added)


def retire_gold(engine: Engine, comment_ids: Collection[str]) -> int:
    """Retire gold comments; return how many were active.

    Their open items are withdrawn, and earlier answers no longer count: gold is retired because its
    label is doubtful, or because everyone knows it.
    """
    ids = list(comment_ids)
    with engine.begin() as connection:
        retired = connection.scalars(
            update(gold_comment)
            .where(gold_comment.c.comment_id.in_(ids), gold_comment.c.retired_at.is_(None))
            .values(retired_at=func.now())
            .returning(gold_comment.c.comment_id)
        ).all()
        withdraw(connection, review_item.c.kind == "gold", review_item.c.comment_id.in_(ids))
        record_gold(connection, "retire_gold", retired)
    return len(retired)


def gold_from_decisions(engine: Engine, item_ids: Iterable[int]) -> list[str]:
    """Make the comments of decided items gold, all or none; return the ids of the new ones.

    The label of an item that was escalated, or corrected by another person, is the final one.
    Otherwise at least two people must have labelled the comment, including confirmations, and
    unanimously. Raises `QueueError` for an item without such a label.
    """
    with engine.begin() as connection:
        rows = [_row(_decided_comment(connection, item_id)) for item_id in item_ids]
        added = [row["comment_id"] for row in rows if _add(connection, row)]
        record_gold(connection, "add_gold", added)
    return added


def record_gold(
    connection: Connection,
    action: Literal["add_gold", "retire_gold"],
    comment_ids: Collection[str],
) -> None:
    """Record what was done to gold comments as events, which commit to their texts and labels."""
    rows = select(gold_comment.c.comment_id, GOLD_COMMITMENT).where(
        gold_comment.c.comment_id.in_(comment_ids)
    )
    for comment_id, committed in connection.execute(rows.order_by(gold_comment.c.comment_id)):
        record_event(connection, action, actor_id=None, comment_id=comment_id, commitment=committed)


def _row(comment: GoldComment) -> dict[str, Any]:
    owner = f"gold comment {comment.comment_id!r}"
    row = asdict(comment)
    for name, value in row.items():
        if isinstance(value, str):
            storable(value, name, owner)
    if not 0 < len(comment.comment_id) <= LONGEST_ID:
        raise QueueError(
            f"the id of a gold comment must have 1 to {LONGEST_ID} characters, got "
            f"{len(comment.comment_id)}"
        )
    if comment.label not in (0, 1):
        raise QueueError(f"the label of {owner} must be 0 or 1, got {comment.label!r}")
    if not comment.source.strip():
        raise QueueError(f"{owner} has no source; name where its label comes from")
    return row


def _add(connection: Connection, row: dict[str, Any]) -> bool:
    """Return whether the comment is newly gold; a retired one that differs counts as new."""
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
            f"comment {row['comment_id']!r} is already gold with another text or label; retire it "
            "first"
        )
    return added is not None


def _decided_comment(connection: Connection, item_id: int) -> GoldComment:
    """Return the item's comment with its final or unanimous label."""
    decided = select(review_item).where(
        review_item.c.id == item_id,
        review_item.c.status == "decided",
        review_item.c.kind.in_(ROUTED_KINDS),
    )
    item = connection.execute(decided).mappings().one_or_none()
    if item is None:
        raise QueueError(f"item {item_id} is not a decided review item; choose one that is")
    label, policy_code, source = _final_label(connection, item)
    copied = ("comment_id", "text", "parent_text", "language", "platform")
    return GoldComment(
        **{name: item[name] for name in copied},
        label=label,
        policy_code=policy_code,
        source=source,
    )


def _final_label(connection: Connection, item: RowMapping) -> tuple[int, str | None, str]:
    columns = ("action", "label", "policy_code", "moderator_id")
    rows = connection.execute(
        select(*(decision.c[name] for name in columns), moderator.c.pseudonym)
        .join(review_item, review_item.c.id == decision.c.item_id)
        .join(moderator, moderator.c.id == decision.c.moderator_id)
        .where(
            or_(
                decision.c.item_id == item["id"],
                and_(
                    review_item.c.dt == item["dt"],
                    review_item.c.comment_id == item["comment_id"],
                    review_item.c.kind.in_(ROUTED_KINDS),
                ),
            ),
            in_force(*FINAL_ACTIONS),
        )
        .order_by(decision.c.id)
    ).all()
    labelled = {row.moderator_id: row for row in rows if row.action == "label"}
    final = [
        row
        for row in rows
        if row.action == "adjudicate"
        or (row.action == "correct" and row.moderator_id not in labelled)
    ]
    if final:
        return final[-1].label, final[-1].policy_code, f"settled by {final[-1].pseudonym}"
    last = {row.moderator_id: row for row in rows}
    if len(last) < 2 or len({row.label for row in last.values()}) > 1:
        raise QueueError(
            f"item {item['id']} has neither a unanimous label of two people nor a lead's label; "
            "choose another item"
        )
    return rows[-1].label, rows[-1].policy_code, f"unanimous, {len(last)} people"
