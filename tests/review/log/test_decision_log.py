from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from databases import as_owner
from sqlalchemy import Engine, select, text
from sqlalchemy.exc import DBAPIError

from modwatch.review import queue
from modwatch.review.log.decision_log import Decision, append, entry_of, start_chain
from modwatch.review.people import Moderator
from modwatch.review.tables import decision_chain, review_item
from review.labelling import decide_all

Fill = Callable[[int], None]


def contents(engine: Engine) -> list[dict[str, object]]:
    """Return a skip of every item, as `append` takes it."""
    with engine.connect() as connection:
        items = connection.execute(select(review_item).order_by("id")).mappings().all()
    return [
        entry_of(
            item,
            action="skip",
            outcome="waiting",
            reason="unsure",
            idempotency_key=f"skip {item['id']}",
            decided_at=datetime(2026, 1, 2, tzinfo=UTC),
        )
        for item in items
    ]


def test_several_decisions_are_appended_at_once(engine: Engine, ann: Moderator, fill: Fill) -> None:
    fill(3)
    with engine.begin() as connection:
        done = append(connection, ann.id, contents(engine))
    assert [each.position for each in done] == [1, 2, 3]
    assert [each.id for each in done] == sorted(each.id for each in done)
    assert [each.previous_hash for each in done[1:]] == [each.hash for each in done[:-1]]
    report = queue.verify_log(engine)
    assert (report.decisions, report.problems) == (3, ())


def test_nothing_to_append_appends_nothing(engine: Engine, ann: Moderator) -> None:
    with engine.begin() as connection:
        assert append(connection, ann.id, []) == []
    assert queue.verify_log(engine).decisions == 0


def test_what_was_appended_goes_with_its_transaction(
    engine: Engine, ann: Moderator, fill: Fill
) -> None:
    fill(2)
    with engine.connect() as connection:
        append(connection, ann.id, contents(engine))
        connection.rollback()
    report = queue.verify_log(engine)
    assert (report.decisions, report.problems) == (0, ())


def test_a_chain_is_begun_once(engine: Engine, ann: Moderator, fill: Fill) -> None:
    fill(1)
    decide_all(engine, [ann])
    with engine.begin() as connection:
        start_chain(connection, ann.id)
        assert connection.scalars(select(decision_chain.c.length)).all() == [1]


def test_a_decision_keeps_its_note_to_itself(engine: Engine, ann: Moderator, fill: Fill) -> None:
    fill(1)
    with engine.begin() as connection:
        (done,) = append(connection, ann.id, [contents(engine)[0] | {"note": "private"}])
    assert isinstance(done, Decision)
    assert "private" not in repr(done)


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
    with pytest.raises(DBAPIError, match="append-only"), as_owner(engine) as connection:
        connection.execute(text(statement))
    with pytest.raises(DBAPIError, match="permission denied"), engine.begin() as connection:
        connection.execute(text(statement))
    report = queue.verify_log(engine)
    assert (report.decisions, report.intact) == (2, True)
