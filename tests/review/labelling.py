"""People at work, for tests of what they leave behind."""

from collections.abc import Callable
from datetime import date
from typing import Any

from databases import execute, unguarded
from sqlalchemy import Engine, insert, select, text

from modwatch.review.log.decision_log import Decision
from modwatch.review.people.accounts import Moderator
from modwatch.review.queue import deciding, dismissal, leases
from modwatch.review.queue.dismissal import Dismissal
from modwatch.review.queue.items import Lease
from modwatch.review.tables import lane, review_item


def held(engine: Engine, person: Moderator, **options: Any) -> Lease:
    """Lease the next item; there must be one."""
    lease = leases.lease(engine, person.id, **options)
    assert lease is not None
    return lease


def held_escalated(engine: Engine, lead: Moderator) -> Lease:
    """Lease the next escalated item; there must be one."""
    lease = leases.lease_escalated(engine, lead.id)
    assert lease is not None
    return lease


def label(
    engine: Engine, person: Moderator, lease: Lease, value: int = 1, key: str = "", **more: object
) -> Decision:
    """Decide what the person holds; the same again is the same decision."""
    return deciding.decide(
        engine,
        moderator_id=person.id,
        item_id=lease.item.id,
        lease_token=lease.token,
        label=value,
        idempotency_key=key or lease.token,
        **more,
    )


def skip(
    engine: Engine, person: Moderator, lease: Lease, act: Callable[..., Decision] = deciding.skip,
    **more: Any,
) -> Decision:  # fmt: skip
    """Skip what the person holds; `act` may be `deciding.escalate`, too."""
    request = {"moderator_id": person.id, "item_id": lease.item.id, "lease_token": lease.token}
    return act(engine, **request, **({"idempotency_key": lease.token} | more))


def escalate(engine: Engine, person: Moderator, lease: Lease, **more: Any) -> Decision:
    """Escalate what the person holds."""
    return skip(engine, person, lease, deciding.escalate, **more)


def label_next(engine: Engine, person: Moderator, value: int = 1, **more: object) -> Decision:
    """Decide the next item; there must be one."""
    return label(engine, person, held(engine, person), value, **more)


def label_all(engine: Engine, person: Moderator, judge: Callable[[str], int]) -> list[Decision]:
    """Let a person label all that waits for them, by what `judge` says of a comment's id.

    At the end that which is reserved for them, and for which no other item is left.
    """
    done = []
    while lease := leases.lease(engine, person.id):
        done.append(label(engine, person, lease, judge(lease.item.comment_id)))
    return [*done, *label_reserved(engine, person, judge)]


def label_reserved(
    engine: Engine, person: Moderator, judge: Callable[[str], int] = lambda _: 0
) -> list[Decision]:
    """Let a person label what is reserved for them, without the items whose places it takes."""
    reserved = select(review_item.c.id).where(
        review_item.c.reserved_for == person.id, review_item.c.status == "waiting"
    )
    done = []
    with engine.connect() as connection:
        ids = connection.scalars(reserved.order_by(review_item.c.id)).all()
    for item_id in ids:
        lease = leases.claim(engine, person.id, item_id)
        assert lease is not None
        done.append(label(engine, person, lease, judge(lease.item.comment_id)))
    return done


def routed_like_gold(engine: Engine, day: date, n: int = 60) -> None:
    """Let `n` comments that look like gold have been routed on `day`, and dismissed."""
    rows = text(
        """
        INSERT INTO review_item (dt, comment_id, kind, text, parent_text, shown, queue,
            reason, stratum, inclusion_probability, rank, review_score, prob, uncertainty,
            model_version, status)
        SELECT :day, 'like gold ' || k || gold.comment_id, 'review', gold.text, gold.parent_text,
            gold.shown, COALESCE(lane.queue, 'general'), 'uncertainty', 0, 1, 1,
            0.2, 0.3, 0.21, '1', 'closed'
        FROM gold_comment AS gold
        LEFT JOIN LATERAL (
            SELECT queue FROM lane WHERE queue = gold.shown->>'language' LIMIT 1
        ) AS lane ON true, generate_series(1, :n) AS k
        ORDER BY k, md5(gold.comment_id) LIMIT :n
        ON CONFLICT DO NOTHING
        """
    )
    with engine.begin() as connection:
        connection.execute(rows, {"day": day, "n": n})


def a_later_day(engine: Engine) -> None:
    """Let the items be queued days ago, so that the rules let confirmations be served."""
    execute(engine, "UPDATE review_item SET queued_at = queued_at - interval '3 days'")


def settle(engine: Engine) -> None:
    """Let all decisions and gold be so old that no decision can be undone."""
    with unguarded(engine) as connection:
        for table, column in (("decision", "decided_at"), ("gold_comment", "added_at")):
            earlier = f"UPDATE {table} SET {column} = {column} - interval '11 minutes'"
            connection.execute(text(earlier))


def open_queues(engine: Engine, *names: str) -> None:
    """Make queues known, as their first items do."""
    with engine.begin() as connection:
        connection.execute(insert(lane), [{"queue": name, "reason": "toxicity"} for name in names])


def decide_all(
    engine: Engine, people: list[Moderator], note: str | None = "seen", **more: object
) -> None:
    """Empty the queue, one person after the other, with every second label 1."""
    for number in range(10_000):
        person = people[number % len(people)]
        lease = leases.lease(engine, person.id)
        if lease is None:
            return
        label(engine, person, lease, number % 2, f"k{number}", note=note, **more)


def cancel(engine: Engine, lead_id: int, id: int, **options: int) -> Dismissal:
    """Cancel a dismissal, and bring back all that it closed."""
    dismissal.stop(engine, lead_id, id)
    return dismissal.resume(engine, id, **options)
