"""People at work on chosen comments, for tests of what becomes of their decisions."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from databases import unguarded
from sqlalchemy import Engine, select, text

from modwatch.review.log.decision_log import Decision
from modwatch.review.queue import deciding, leases
from modwatch.review.queue.items import Lease
from modwatch.review.tables import review_item

_KEYS = itertools.count()


@dataclass(frozen=True, kw_only=True)
class Desk:
    """Takes an item of a comment by its name, and does one thing with it."""

    engine: Engine
    keys: Iterator[int] = _KEYS

    def item_id(self, comment_id: str, kind: str = "review") -> int:
        found = select(review_item.c.id).where(
            review_item.c.comment_id == comment_id, review_item.c.kind == kind
        )
        with self.engine.connect() as connection:
            return int(connection.execute(found).scalar_one())

    def label(
        self, who: int, comment_id: str, value: int = 1, *, kind: str = "review", **more: Any
    ) -> Decision:
        return deciding.decide(
            self.engine, label=value, **self._request(who, comment_id, kind), **more
        )

    def skip(self, who: int, comment_id: str) -> Decision:
        return deciding.skip(self.engine, **self._request(who, comment_id, "review"))

    def escalate(self, who: int, comment_id: str) -> Decision:
        return deciding.escalate(self.engine, **self._request(who, comment_id, "review"))

    def undo(self, done: Decision) -> Lease:
        """Undo, and put the item back."""
        again = deciding.undo(
            self.engine,
            moderator_id=done.moderator_id,
            decision_id=done.id,
            idempotency_key=f"undo-{next(self.keys)}",
        )
        leases.release(self.engine, done.moderator_id, again.item.id, again.token)
        return again

    def correct(self, who: int, comment_id: str, value: int, **more: Any) -> Decision:
        item_id = self.item_id(comment_id)
        with self.engine.connect() as connection:
            version = connection.scalar(
                select(review_item.c.version).where(review_item.c.id == item_id)
            )
        return deciding.correct(
            self.engine,
            moderator_id=who,
            item_id=item_id,
            label=value,
            version=version or 0,
            idempotency_key=f"correct-{next(self.keys)}",
            reason="mistake",
            others_too=True,
            **more,
        )

    def _request(self, who: int, comment_id: str, kind: str) -> dict[str, Any]:
        asked = (self.engine, who, self.item_id(comment_id, kind))
        lease = leases.claim(*asked) or leases.claim(*asked, escalated_only=True)
        assert lease is not None
        return {
            "moderator_id": who,
            "item_id": lease.item.id,
            "lease_token": lease.token,
            "idempotency_key": f"key-{next(self.keys)}",
        }


def shift_deliveries(engine: Engine, hours: float) -> None:
    """Let `hours` pass for what is to be delivered."""
    with unguarded(engine) as connection:
        for table, column in (
            ("outbox_delivery", "next_attempt_at"),
            ("outbox_message", "created_at"),
        ):
            connection.execute(
                text(f"UPDATE {table} SET {column} = {column} - make_interval(secs => :seconds)"),
                {"seconds": hours * 3600},
            )
