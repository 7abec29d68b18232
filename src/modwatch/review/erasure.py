"""Erasure of texts and notes from the review database, as an entry of the log.

Decisions commit to texts and notes by salted hashes: with text and salt gone, every chain, witness
and sealed audit stays valid, and nobody can guess the text. The event `erase` names what was erased
and commits to what is left, so `log.verification` accepts exactly that.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from sqlalchemy import Connection, Engine, Text, TextClause, cast, func, select, text

from modwatch.common.text import ERASED
from modwatch.review.database import at_once
from modwatch.review.events import record_event
from modwatch.review.log.decision_log import text_commitment_sql
from modwatch.review.log.recorded_state import day_of, parsed
from modwatch.review.quality_control.gold import record_gold
from modwatch.review.tables import (
    NO_LEASE,
    OPEN_STATUSES,
    decision,
    event,
    event_chain,
    gold_comment,
    review_item,
)

_COMMITTED = f"encode({text_commitment_sql('review_item')}, 'hex')"

_OPEN = f"status IN {OPEN_STATUSES}"

#: Whoever holds an open item loses it: they may not decide what they no longer see.
_PARENT_ERASED = ", ".join(
    (
        "text_salt = DEFAULT",
        f"version = version + CAST({_OPEN} AS integer)",
        "parent_text = CASE WHEN parent_text IS NOT NULL THEN :erased END",
        *(f"{name} = CASE WHEN NOT {_OPEN} THEN {name} END" for name in NO_LEASE),
    )
)


def _erasing(changes: str, which: str) -> TextClause:
    """Return the statement that erases the items of `which`, with commitments to what is left."""
    return text(
        f"UPDATE review_item SET {_PARENT_ERASED}{changes} WHERE {which} "  # noqa: S608 - our own
        f"RETURNING id, {_COMMITTED} AS committed"
    )


_WHOLE = f", text = :erased, status = CASE WHEN {_OPEN} THEN 'withdrawn' ELSE status END"
_LEFT = "(text <> :erased OR parent_text <> :erased)"

_ITEMS = _erasing(_WHOLE, f"comment_id = ANY (:ids) AND {_LEFT}")

_PARENTS = _erasing("", "parent_text = ANY (:texts)")

#: Items of old days on which nobody works, but of days that open audits hold.
_OLD = _erasing(
    _WHOLE,
    "dt < :before AND (leased_until IS NULL OR leased_until <= now()) "
    f"AND NOT dt = ANY (:held) AND {_LEFT}",
)

_NOTES = text(
    """
    SELECT erase_notes(array(
        SELECT id FROM review_item WHERE comment_id = ANY (:ids) OR dt < :before AND text = :erased
    ))
    """
)

_GOLD = text(
    f"""
    UPDATE gold_comment SET salt = DEFAULT, retired_at = coalesce(retired_at, now()),
        text = CASE WHEN comment_id = ANY (:ids) THEN :erased ELSE text END,
        parent_text = CASE WHEN parent_text IS NOT NULL THEN :erased END
    WHERE comment_id = ANY (:ids) AND {_LEFT} OR parent_text = ANY (:texts)
    RETURNING comment_id
    """  # noqa: S608 - our own text
)


@dataclass(frozen=True, kw_only=True)
class ErasedReviews:
    """What was erased, and the event that records it."""

    #: Items and gold comments of erased comments, or of answers to them; notes of moderators.
    items: int
    gold: int
    notes: int
    #: The entry of the chain of events.
    position: int
    hash: bytes


def queued_texts(engine: Engine, comment_ids: Collection[str]) -> list[tuple[date, str, str]]:
    """Return day, id and text of each item and gold comment of these comments."""
    ids = list(comment_ids)
    item, gold = review_item.c, gold_comment.c
    added = func.date(gold.added_at)
    queued = select(item.dt, item.comment_id, item.text).where(item.comment_id.in_(ids))
    known = select(added, gold.comment_id, gold.text).where(gold.comment_id.in_(ids))
    rows = at_once(engine, queued.union(known))
    return [(row["dt"], row["comment_id"], row["text"]) for row in rows]


def erase_reviews(
    engine: Engine,
    parts: Mapping[tuple[date, str], str],
    texts: Collection[str],
    *,
    dry_run: bool = False,
) -> ErasedReviews:
    """Erase the texts of comments, the notes on them, and `texts` where others answer them.

    `parts`, by day and comment, are `comment`, or `parent` for answers; the event names them all.
    Open items are withdrawn, also leased ones; gold comments are retired. One transaction; the same
    call again erases nothing more, and is recorded again. With `dry_run` nothing is changed.
    """
    ids = list({comment_id for (_, comment_id), part in parts.items() if part == "comment"})
    values = {"ids": ids, "texts": list(texts), "erased": ERASED, "before": date.min}
    with engine.connect() as connection:
        notes = connection.scalars(_NOTES, values).all()
        items: dict[str, Any] = {}
        for statement in (_ITEMS, _PARENTS):
            items |= {str(row.id): row.committed for row in connection.execute(statement, values)}
        gold = connection.scalars(_GOLD, values).all()
        record_gold(connection, "retire_gold", gold)
        record_event(
            connection,
            "erase",
            actor_id=None,
            comments=[[str(day), comment_id, part] for (day, comment_id), part in parts.items()],
            items=items,
            notes=list(notes),
        )
        chain = connection.execute(select(event_chain.c.length, event_chain.c.hash)).one()
        if not dry_run:
            connection.commit()
    return ErasedReviews(
        items=len(items), gold=len(gold), notes=len(notes), position=chain[0], hash=chain[1]
    )


def erase_old(connection: Connection, before: date, held: Collection[date]) -> int:
    """Erase texts and notes of the items of days before `before`; return of how many items.

    Items that are leased now, or of days that open audits hold, are kept; other open ones are
    withdrawn. The event also says that comments of the other days are removed from the lake.
    """
    values = {"ids": [], "before": before, "held": list(held), "erased": ERASED}
    items = connection.scalars(_OLD, values).all()
    connection.execute(_NOTES, values)
    record_event(connection, "erase", actor_id=None, before=str(before), held=list(map(str, held)))
    return len(items)


def recorded_erasures(
    engine: Engine, position: int | None = None, digest: bytes | None = None
) -> dict[tuple[date, str], str]:
    """Return the comments that the log says were erased, with the part as in `erase_reviews`.

    With `position` and `digest`, by the event with this hash at this position, if there is one.
    """
    query = select(cast(event.c.details, Text).label("details")).where(event.c.action == "erase")
    if position is not None:
        query = query.where(event.c.position == position, event.c.hash == digest)
    found: dict[tuple[date, str], str] = {}
    for row in at_once(engine, query):
        match parsed(row["details"]):  # `log.verification` names what is malformed
            case {"comments": [*rows]}:
                found |= dict(filter(None, map(_comment, rows)))
    return found


def _comment(row: object) -> tuple[tuple[date, str], str] | None:
    match row:
        case [str(written), str(comment_id), str(part)] if (day := day_of(written)) > date.min:
            return (day, comment_id), part
    return None


def decisions_about(engine: Engine, comment_ids: Collection[str]) -> list[dict[str, Any]]:
    """Return the decisions on comments, without who made them and why they were asked."""
    names = ("dt", "comment_id", "action", "label", "policy_code", "reason", "note", "decided_at")
    columns = (decision.c[name] for name in names)
    query = select(*columns).where(decision.c.comment_id.in_(list(comment_ids)))
    return [dict(row) for row in at_once(engine, query.order_by(decision.c.id))]


def compact(owner: Engine) -> None:
    """Remove erased texts from the files of the database, and from its write-ahead log.

    PostgreSQL keeps the old version of a row until its space is needed. Needs a superuser, and
    locks each table while it is written anew.
    """
    with owner.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for table in (review_item, decision, gold_comment):
            connection.execute(text(f"VACUUM (FULL) {table.name}"))
        for statement in ("CHECKPOINT", "SELECT pg_switch_wal()", "CHECKPOINT"):
            connection.execute(text(statement))
