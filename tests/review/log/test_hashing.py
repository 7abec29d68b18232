import hashlib
import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, bindparam, text

from modwatch.review import queue
from modwatch.review.log.hashing import COVERED, GENESIS, content_of, content_sql, row_hash
from modwatch.review.people import Moderator

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
    "note": ("text", TEXTS),
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
    "text_digest": ("bytea", st.binary(max_size=40)),
    "outcome": ("text", TEXTS),
    "transaction_id": ("xid8", st.integers(0, 2**64 - 1).map(str)),
}  # fmt: skip
ROWS = st.fixed_dictionaries({name: st.none() | kind for name, (_, kind) in KINDS.items()})
EDGES = {
    "position": 2**63 - 1,
    "dt": date(1, 1, 1),
    "note": '\x01\x1f\x7f\x85\b\t\n\f\r"\\/</script>\u2028\ufeff\u202e😀é\U0010ffff\ud7ff',
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


@settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(row=ROWS)
def test_python_and_postgresql_write_the_same(engine: Engine, row: dict[str, object]) -> None:
    assert in_postgresql(engine, row) == content_of(row)


@pytest.mark.parametrize("dt", [date(1, 1, 1), date(999, 12, 31), date(9999, 12, 31)])
@pytest.mark.parametrize("seconds", [-0.0, 0.1 + 0.2, 1.7976931348623157e308, float("inf")])
def test_the_edges_are_written_the_same(engine: Engine, dt: date, seconds: float) -> None:
    row: dict[str, object] = dict.fromkeys(COVERED) | EDGES | {"dt": dt, "seconds": seconds}
    assert in_postgresql(engine, row) == content_of(row)


def test_every_digit_of_the_seconds_counts() -> None:
    row = dict.fromkeys(COVERED) | {"previous_hash": GENESIS, "format": 2}
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
    "reason": None,
    "note": "né",
    "seconds": 2.5,
    "idempotency_key": "k",
    "refers_to": None,
    "decided_at": datetime(2026, 1, 2, 3, 4, 5, 6, UTC),
    "text_digest": b"jk",
    "outcome": "decided",
    "transaction_id": "18446744073709551615",
    "previous_hash": GENESIS,
}


def test_the_formats_are_forever() -> None:
    """Logs that were sealed once must verify in later versions."""
    assert row_hash(STABLE | {"format": 1}) == bytes.fromhex(
        "210cf942f3f312b62df94a583bcf8352814c4a20c907abb40dabf9e49e3fe09c"
    )
    written = (
        '[1, 2, "2026-01-01", "c1", "review", 1, 3, "label", 1, null, null, null, "né", '
        '"4004000000000000", "k", null, 1767323045000006]'
    )
    assert content_of(STABLE, 2) == written
    assert row_hash(STABLE | {"format": 2}) == hashlib.sha256(GENESIS + written.encode()).digest()
    written = f'{written[:-1]}, "6a6b", "decided", "18446744073709551615"]'
    assert content_of(STABLE) == written
    assert row_hash(STABLE | {"format": 3}) == hashlib.sha256(GENESIS + written.encode()).digest()


#: The columns of format 1, and how the software of that time wrote them down.
OLD = [
    "position", "item_id", "dt", "comment_id", "kind", "item_version", "moderator_id", "action",
    "label", "policy_code", "note", "seconds", "idempotency_key", "decided_at",
]  # fmt: skip


def append_old(engine: Engine, moderator_id: int, *, n: int, **more: object) -> None:
    """Append `n` rows of format 1 to the empty chain of `moderator_id`, by the rule of its time."""
    last = GENESIS
    with engine.begin() as connection:
        for position in range(1, n + 1):
            row: dict[str, object] = {name: STABLE[name] for name in OLD} | {
                "position": position,
                "item_id": 1,
                "moderator_id": moderator_id,
                "note": 'old é 😀 "\x01',
                "seconds": 0.1 * position,
                "idempotency_key": f"old{position}",
                "decided_at": datetime(2026, 1, 2, 3, position, tzinfo=UTC),
            }
            content = json.dumps(
                [row[name] for name in OLD],
                default=lambda value: value.isoformat(),
                separators=(",", ":"),
            )
            row |= {"previous_hash": last, "format": 1, **more}
            last = row["hash"] = hashlib.sha256(last + content.encode()).digest()
            names = ", ".join(row)
            places = ", ".join(f":{name}" for name in row)
            connection.execute(text(f"INSERT INTO decision ({names}) VALUES ({places})"), row)
        connection.execute(
            text("UPDATE decision_chain SET length = :n, hash = :last WHERE moderator_id = :id"),
            {"n": n, "last": last, "id": moderator_id},
        )


def test_rows_of_format_1_verify(
    engine: Engine, ann: Moderator, fill: Callable[[int], None]
) -> None:
    fill(2)
    append_old(engine, ann.id, n=3)
    lease = queue.lease(engine, ann.id)
    assert lease is not None
    queue.skip(
        engine, moderator_id=ann.id, item_id=lease.item.id, lease_token=lease.token,
        idempotency_key="new",
    )  # fmt: skip
    report = queue.verify_log(engine)
    assert (report.decisions, report.problems) == (4, ())
    assert report.ends[ann.id].length == 4


def test_what_format_1_does_not_cover_cannot_be_added_to_its_rows(
    engine: Engine, ann: Moderator, fill: Callable[[int], None]
) -> None:
    fill(1)
    append_old(engine, ann.id, n=1, reason="made up")
    assert "was changed" in queue.verify_log(engine).problems[0]
