import re
from collections.abc import Callable
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from modwatch.records import LABELS
from modwatch.review import queue
from modwatch.review.decision_log import COVERED, GENESIS, row_hash
from modwatch.review.people import Moderator

Fill = Callable[[int], None]


def decide_all(engine: Engine, people: list[Moderator]) -> None:
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
            note="seen",
            idempotency_key=f"k{number}",
        )


def test_the_hash_is_stable() -> None:
    """The format is forever: logs that were sealed once must verify in later versions."""
    row = dict(
        zip(
            COVERED,
            [1, 2, date(2026, 1, 1), "c1", "review", 1, 3, "label", 1, None, "né", 2.5, "k"],
            strict=False,
        )
    ) | {"decided_at": datetime(2026, 1, 2, 3, 4, 5, 6, UTC), "previous_hash": GENESIS}
    assert row_hash(row) == bytes.fromhex(
        "210cf942f3f312b62df94a583bcf8352814c4a20c907abb40dabf9e49e3fe09c"
    )


def test_standing_labels_come_as_batches(
    engine: Engine, ann: Moderator, ben: Moderator, fill: Fill, day: date
) -> None:
    fill(5)
    decide_all(engine, [ann, ben])
    batches = list(queue.decisions(engine, day))
    table = pa.Table.from_batches(batches, schema=LABELS)
    assert table.column("comment_id").to_pylist() == ["c0", "c1", "c2", "c3", "c4"]
    assert table.column("label").to_pylist() == [0, 1, 0, 1, 0]
    assert table.column("moderator").to_pylist() == ["ann", "ben", "ann", "ben", "ann"]
    assert list(queue.decisions(engine, date(2026, 1, 2))) == []


def test_batches_have_the_size_that_was_asked_for(
    engine: Engine, ann: Moderator, fill: Fill, day: date
) -> None:
    fill(5)
    decide_all(engine, [ann])
    assert [batch.num_rows for batch in queue.decisions(engine, day, batch_size=2)] == [2, 2, 1]


def test_skips_and_items_of_other_kinds_are_no_labels(
    engine: Engine, ann: Moderator, fill: Fill, day: date, new_item: Callable[..., object]
) -> None:
    fill(1)
    lease = queue.lease(engine, ann.id)
    assert lease is not None
    queue.skip(
        engine,
        moderator_id=ann.id,
        item_id=lease.item.id,
        lease_token=lease.token,
        idempotency_key="s",
    )
    gold = new_item("c0", kind="gold")
    queue.enqueue(engine, [gold], day, kinds=["gold"])  # type: ignore[list-item]
    decide_all(engine, [ann])
    assert list(queue.decisions(engine, day)) == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE decision SET label = 1 - label",
        "DELETE FROM decision",
        "TRUNCATE decision",
        "TRUNCATE decision, decision_chain",
    ],
)
def test_the_log_is_append_only(engine: Engine, ann: Moderator, fill: Fill, statement: str) -> None:
    fill(2)
    decide_all(engine, [ann])
    with pytest.raises(DBAPIError, match="append-only"), engine.begin() as connection:
        connection.execute(text(statement))
    report = queue.verify_log(engine)
    assert (report.decisions, report.intact) == (2, True)


@pytest.mark.parametrize(
    ("tampering", "finding"),
    [
        ("UPDATE decision SET label = 1 - label WHERE id = 3", "decision 3 .* was changed"),
        ("UPDATE decision SET comment_id = 'c9' WHERE id = 3", "decision 3 .* was changed"),
        (
            "UPDATE decision SET decided_at = decided_at + interval '1 us' WHERE id = 3",
            "decision 3 .* was changed",
        ),
        ("UPDATE decision SET note = NULL WHERE id = 3", "decision 3 .* was changed"),
        ("DELETE FROM decision WHERE id = 3", "before decision 5 .* are missing"),
        ("DELETE FROM decision WHERE id = 6", "ends at position 2, which is not"),
        ("DELETE FROM decision WHERE moderator_id = 2", "ends at position 0, which is not"),
        (
            "UPDATE decision SET position = -position; UPDATE decision SET position = 4 + position",
            "was changed",
        ),
        ("UPDATE decision SET hash = previous_hash WHERE id = 3", "decision 5 .* does not follow"),
        ("DELETE FROM decision_chain WHERE moderator_id = 1", r"on record \(none\)"),
        ("UPDATE decision_chain SET length = 2", "ends at position 3"),
        (
            "DELETE FROM decision WHERE moderator_id = 2; "
            "DELETE FROM decision_chain WHERE moderator_id = 2",
            "item 2 is decided, and the log has no label",
        ),
    ],
)
def test_whoever_disables_the_trigger_is_found_out(
    engine: Engine,
    ann: Moderator,
    ben: Moderator,
    fill: Fill,
    tampering: str,
    finding: str,
) -> None:
    fill(6)
    decide_all(engine, [ann, ben])
    before = queue.verify_log(engine)
    assert (before.decisions, before.problems) == (6, ())
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE decision DISABLE TRIGGER ALL"))
        for statement in tampering.split("; "):
            connection.execute(text(statement))
    after = queue.verify_log(engine)
    assert not after.intact
    assert any(re.search(finding, problem) for problem in after.problems)


def test_the_head_witnesses_every_decision(engine: Engine, ann: Moderator, fill: Fill) -> None:
    empty = queue.verify_log(engine).head
    assert queue.verify_log(engine).head == empty
    fill(1)
    decide_all(engine, [ann])
    assert queue.verify_log(engine).head != empty
