"""Erasure of texts and notes from the review database, as an entry of the log.

Decisions commit to texts and notes by salted hashes: with text and salt gone, every chain, witness
and sealed audit stays valid, and nobody can guess the text. The event `erase` names what was erased
and commits to what is left, so `log.verification` accepts exactly that.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection, Engine, Text, TextClause, cast, select, text

from modwatch.common.text import ERASED
from modwatch.review.database import at_once
from modwatch.review.events import record_event
from modwatch.review.log.decision_log import compared_sql, text_commitment_sql
from modwatch.review.log.recorded_state import parsed
from modwatch.review.quality_control.gold import record_gold
from modwatch.review.queue.intake import withdraw
from modwatch.review.tables import (
    NO_LEASE,
    OPEN_STATUSES,
    decision,
    event,
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


#: Values in which comments differ go with the text; those that it shares with many stay.
_WHOLE = (
    f", text = :erased, shown = {compared_sql('review_item')}"
    f", status = CASE WHEN {_OPEN} THEN 'withdrawn' ELSE status END"
)
_LEFT = f"(text <> :erased OR parent_text <> :erased OR {_OPEN})"

#: Days and ids; another day may have the id of another comment.
_KEYED = "(dt, comment_id) IN (SELECT * FROM unnest(CAST(:days AS date[]), CAST(:ids AS text[])))"

_ITEMS = _erasing(_WHOLE, f"{_KEYED} AND {_LEFT}")

_PARENTS = _erasing("", "parent_text = ANY (:texts)")

#: Items of old days on which nobody works, but of days that open audits hold.
_OLD = _erasing(
    _WHOLE,
    "dt < :before AND (leased_until IS NULL OR leased_until <= now()) "
    f"AND NOT dt = ANY (:held) AND {_LEFT}",
)

_NOTES = text(
    f"""
    SELECT erase_notes(array(
        SELECT id FROM review_item WHERE {_KEYED} OR dt < :before AND text = :erased
    ))
    """  # noqa: S608 - our own text
)

_OWN_GOLD = "(comment_id = ANY (:ids) AND text = ANY (:texts))"

_GOLD = text(
    f"""
    UPDATE gold_comment SET salt = DEFAULT, retired_at = coalesce(retired_at, now()),
        text = CASE WHEN {_OWN_GOLD} THEN :erased ELSE text END,
        shown = CASE WHEN {_OWN_GOLD} THEN {compared_sql("gold_comment")} ELSE shown END,
        parent_text = CASE WHEN parent_text IS NOT NULL THEN :erased END
    WHERE {_OWN_GOLD} OR parent_text = ANY (:texts)
    RETURNING comment_id
    """  # noqa: S608 - our own text
)


@dataclass(frozen=True, kw_only=True)
class ErasedReviews:
    """What was erased, and the event that records it."""

    #: `places`, with items and gold comments (of answers, too) and notes of moderators.
    places: dict[str, int]
    erased_at: datetime
    #: The entry of the chain of events.
    position: int
    hash: bytes


_KEPT = text(
    f"""
    SELECT dt, comment_id, text, parent_text, shown FROM (
        SELECT dt, comment_id, text, parent_text, shown, kind IN ('gold', 'retest') AS copied
        FROM review_item UNION ALL
        SELECT date(added_at), comment_id, text, parent_text, shown, true FROM gold_comment
    ) AS kept
    WHERE {_KEYED} OR comment_id = ANY (:named) OR copied AND {_OWN_GOLD}
    """  # noqa: S608 - our own text
)


def queued_texts(
    engine: Engine,
    keys: Collection[tuple[date, str]],
    texts: Collection[str] = (),
    named: Collection[str] = (),
) -> list[Mapping[Any, Any]]:
    """Return items and gold of comments; copies of any day if their text is one of `texts`.

    With all of the ids `named`. Their columns: `dt`, `comment_id`, `text`, `parent_text`, `shown`.
    """
    days, ids = _columns(keys)
    values = {"days": days, "ids": ids, "texts": _held(texts), "named": list(named)}
    return list(at_once(engine, _KEPT, values))


def _columns(keys: Collection[tuple[date, str]]) -> tuple[list[date], list[str]]:
    return [day for day, _ in keys], [comment_id for _, comment_id in keys]


def _held(texts: Collection[str]) -> list[str]:
    """Return the texts that PostgreSQL can have."""
    return [one for one in texts if "\0" not in one]


def erase_reviews(
    engine: Engine,
    parts: Mapping[tuple[date, str], str],
    texts: Collection[str],
    *,
    reference: str = "",
    places: Mapping[str, int] = MappingProxyType({}),
    dry_run: bool = False,
) -> ErasedReviews:
    """Erase the texts of comments, the notes on them, and `texts` where others answer them.

    `parts`, by day and comment, are `comment`, or `parent` for answers; the event names them all.
    Open items are withdrawn, also leased ones; gold comments are retired. One transaction; the same
    call again erases nothing more, and is recorded again. With `dry_run` nothing is changed.
    """
    days, ids = _columns([key for key, part in parts.items() if part == "comment"])
    values = {"days": days, "ids": ids, "texts": _held(texts), "erased": ERASED, "before": date.min}
    with engine.connect() as connection:
        notes = connection.scalars(_NOTES, values).all()
        items: dict[str, Any] = {}
        for statement in (_ITEMS, _PARENTS):
            items |= {str(row.id): row.committed for row in connection.execute(statement, values)}
        gold = connection.scalars(_GOLD, values).all()
        withdraw(connection, review_item.c.kind == "gold", review_item.c.comment_id.in_(gold))
        record_gold(connection, "retire_gold", gold)
        counted = {**places, "queue": len(items), "gold": len(gold), "notes": len(notes)}
        record_event(
            connection,
            "erase",
            actor_id=None,
            reference=reference,
            places=counted,
            comments=[[str(day), id_, part] for (day, id_), part in sorted(parts.items())],
            items=items,
            notes=list(notes),
        )
        last = select(event.c.position, event.c.hash, event.c.happened_at)
        at = connection.execute(last.order_by(event.c.position.desc()).limit(1)).one()
        if not dry_run:
            connection.commit()
    return ErasedReviews(
        places=counted, position=at.position, hash=at.hash, erased_at=at.happened_at
    )


def erase_old(connection: Connection, before: date, held: Collection[date]) -> int:
    """Erase texts and notes of the items of days before `before`; return of how many items.

    Items that are leased now, or of days that open audits hold, are kept; other open ones are
    withdrawn. The event also says that comments of the other days are removed from the lake.
    """
    values = {"days": [], "ids": [], "before": before, "held": list(held), "erased": ERASED}
    items = connection.scalars(_OLD, values).all()
    connection.execute(_NOTES, values)
    record_event(connection, "erase", actor_id=None, before=str(before), held=list(map(str, held)))
    return len(items)


def recorded_erasure(engine: Engine, position: int) -> dict[str, Any]:
    """Return details, `hash` and `erased_at` of the event at a position of the log."""
    details = cast(event.c.details, Text).label("details")
    query = select(details, event.c.hash, event.c.happened_at)
    for row in at_once(engine, query.where(event.c.position == position)):
        found = parsed(row["details"])
        if isinstance(found, dict):
            return found | {"hash": row["hash"], "erased_at": row["happened_at"]}
    return {}


_DECISIONS = text(
    f"""
    SELECT dt, comment_id, action, label, policy_code, reason, note, decided_at
    FROM decision WHERE {_KEYED} ORDER BY id
    """  # noqa: S608 - our own text
)


def decisions_about(engine: Engine, keys: Collection[tuple[date, str]]) -> list[dict[str, Any]]:
    """Return the decisions on comments, without who made them and why they were asked."""
    days, ids = _columns(keys)
    return [dict(row) for row in at_once(engine, _DECISIONS, {"days": days, "ids": ids})]


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
