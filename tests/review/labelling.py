"""People at work, for tests of what they leave behind."""

from sqlalchemy import Engine

from modwatch.review import queue
from modwatch.review.people import Moderator


def decide_all(
    engine: Engine, people: list[Moderator], note: str | None = "seen", **more: object
) -> None:
    """Empty the queue, one person after the other, with every second label 1."""
    for number in range(10_000):
        person = people[number % len(people)]
        lease = queue.lease(engine, person.id)
        if lease is None:
            return
        queue.decide(
            engine,
            moderator_id=person.id,
            item_id=lease.item.id,
            lease_token=lease.token,
            label=number % 2,
            note=note,
            idempotency_key=f"k{number}",
            **more,
        )
