import hashlib
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from databases import as_owner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, bindparam, select, text
from sqlalchemy.exc import DBAPIError

from modwatch.common.ledger.chain import GENESIS
from modwatch.review.log import verification
from modwatch.review.log.decision_log import (
    COVERED,
    Decision,
    append,
    content_of,
    content_sql,
    entry_of,
    row_hash,
    start_chain,
)
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


def test_several_decisions_are_appended_at_once(engine, ann, fill):
    fill(3)
    with engine.begin() as connection:
        done = append(connection, ann.id, contents(engine))
    assert [decision.position for decision in done] == [1, 2, 3]
    assert [decision.id for decision in done] == sorted(decision.id for decision in done)
    assert [decision.previous_hash for decision in done[1:]] == [
        decision.hash for decision in done[:-1]
    ]
    report = verification.verify_log(engine)
    assert (report.decisions, report.problems) == (3, ())


def test_what_was_appended_goes_with_its_transaction(engine, ann, fill):
    fill(2)
    with engine.connect() as connection:
        assert append(connection, ann.id, []) == []
        append(connection, ann.id, contents(engine))
        connection.rollback()
    report = verification.verify_log(engine)
    assert (report.decisions, report.problems) == (0, ())


def test_a_chain_is_begun_once(engine, ann, fill):
    fill(1)
    decide_all(engine, [ann])
    with engine.begin() as connection:
        start_chain(connection, ann.id)
        assert connection.scalars(select(decision_chain.c.length)).all() == [1]


def test_a_decision_keeps_its_note_to_itself(engine, ann, fill):
    fill(1)
    with engine.begin() as connection:
        (done,) = append(connection, ann.id, [contents(engine)[0] | {"note": "private"}])
    assert isinstance(done, Decision)
    assert "private" not in repr(done)


def test_the_log_is_append_only(engine, ann, fill):
    """Not even its owner changes it; what the application may not is in `test_privileges.py`."""
    fill(2)
    decide_all(engine, [ann])
    for statement in (
        "UPDATE decision SET label = 1 - label",
        "DELETE FROM decision",
        "TRUNCATE decision, decision_chain",
        "UPDATE event SET action = 'x'",
        "DELETE FROM event",
        "TRUNCATE event",
    ):
        with pytest.raises(DBAPIError, match="append-only"), as_owner(engine) as connection:
            connection.execute(text(statement))
    report = verification.verify_log(engine)
    assert (report.decisions, report.intact) == (2, True)


#: All that PostgreSQL can store.
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
WHOLE = st.integers(-(2**63), 2**63 - 1)
SMALL = st.integers(-(2**31), 2**31 - 1)

#: The types of the columns, and what may stand in them.
KINDS: dict[str, tuple[str, st.SearchStrategy[object]]] = {
    "position": ("bigint", WHOLE),
    "item_id": ("bigint", WHOLE),
    "dt": ("date", st.dates()),
    "comment_id": ("text", TEXTS),
    "kind": ("text", TEXTS),
    "item_version": ("integer", SMALL),
    "moderator_id": ("bigint", WHOLE),
    "action": ("text", TEXTS),
    "label": ("smallint", st.sampled_from([0, 1, -(2**15), 2**15 - 1])),
    "policy_version": ("text", TEXTS),
    "policy_code": ("text", TEXTS),
    "reason": ("text", TEXTS),
    "note_commitment": ("bytea", st.binary(max_size=40)),
    "seconds": ("double precision", st.floats(allow_nan=False)),
    "idempotency_key": ("text", TEXTS),
    "refers_to": ("bigint", WHOLE),
    "decided_at": (
        "timestamptz",
        st.datetimes(
            datetime(1, 1, 2), datetime(9999, 12, 30),  # noqa: DTZ001 - the zone comes below
            timezones=st.sampled_from([timezone(timedelta(hours=hours)) for hours in (-12, 0, 14)]),
        ),
    ),
    "text_commitment": ("bytea", st.binary(max_size=40)),
    "item_digest": ("bytea", st.binary(max_size=40)),
    "outcome": ("text", TEXTS),
    "transaction_id": ("xid8", st.integers(0, 2**64 - 1).map(str)),
}  # fmt: skip
ROWS = st.fixed_dictionaries({name: st.none() | kind for name, (_, kind) in KINDS.items()})
EDGES = {
    "position": 2**63 - 1,
    "dt": date(1, 1, 1),
    "reason": '\x01\x1f\x7f\x85\b\t\n\f\r"\\/</script>\u2028\ufeff\u202e😀é\U0010ffff\ud7ff',
    "seconds": 5e-324,
    "decided_at": datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC),
}


def in_postgresql(engine: Engine, row: dict[str, object]) -> str:
    kinds = {name: f"CAST(:{name} AS {kind})" for name, (kind, _) in KINDS.items()}
    statement = text(f"SELECT {content_sql(kinds)}".replace("::", r"\:\:"))
    with engine.connect() as connection:
        answer = connection.execute(statement.bindparams(*map(bindparam, row)), row).scalar_one()
    assert isinstance(answer, str)
    return answer


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(row=ROWS)
def test_python_and_postgresql_write_the_same(engine, row):
    assert in_postgresql(engine, row) == content_of(row)


def test_the_edges_are_written_the_same(engine):
    for day, seconds in (
        (date(1, 1, 1), -0.0),
        (date(999, 12, 31), 0.1 + 0.2),
        (date(9999, 12, 31), 1.7976931348623157e308),
        (date(1, 1, 1), float("inf")),
    ):
        row: dict[str, object] = dict.fromkeys(COVERED) | EDGES | {"dt": day, "seconds": seconds}
        assert in_postgresql(engine, row) == content_of(row)


def test_every_digit_of_the_seconds_counts():
    row = dict.fromkeys(COVERED) | {"previous_hash": GENESIS}
    assert row_hash(row | {"seconds": 0.3}) != row_hash(row | {"seconds": 0.1 + 0.2})


STABLE = {
    "position": 1,
    "item_id": 2,
    "dt": date(2026, 1, 1),
    "comment_id": "c1",
    "kind": "review",
    "item_version": 1,
    "moderator_id": 3,
    "action": "label",
    "label": 1,
    "policy_version": None,
    "policy_code": None,
    "reason": "né",
    "note_commitment": b"n",
    "seconds": 2.5,
    "idempotency_key": "k",
    "refers_to": None,
    "decided_at": datetime(2026, 1, 2, 3, 4, 5, 6, UTC),
    "text_commitment": b"jk",
    "item_digest": b"l",
    "outcome": "decided",
    "transaction_id": "18446744073709551615",
    "previous_hash": GENESIS,
}


def test_the_content_of_an_entry_is_forever():
    """Logs that were sealed once must verify in later versions."""
    written = (
        '[1, 2, "2026-01-01", "c1", "review", 1, 3, "label", 1, null, null, "né", "6e", '
        '"4004000000000000", "k", null, 1767323045000006, "6a6b", "6c", "decided", '
        '"18446744073709551615"]'
    )
    assert content_of(STABLE) == written
    assert row_hash(STABLE) == hashlib.sha256(GENESIS + written.encode()).digest()
