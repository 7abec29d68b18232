import csv
import io
import json
import tracemalloc
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from databases import execute, unguarded
from formulas import FORMULAS
from sqlalchemy import Engine, text

from modwatch.common.errors import QueueError
from modwatch.common.text import original
from modwatch.review.log import export as module
from modwatch.review.log.export import export, schema
from modwatch.review.log.verification import verify_export, verify_log
from modwatch.review.people.accounts import Moderator
from review.labelling import decide_all, held, label

Fill = Callable[[int], None]

NOTES = [
    *(formula for formula in FORMULAS if "\0" not in formula),
    'two\r\nlines, "quoted"\n\rend',
    "é😀",
]


@pytest.fixture
def shift(engine, ann, fill):
    """Decisions with every note of `NOTES`, and one without; returns the notes."""
    notes = [*NOTES, None]
    fill(len(notes))
    for note in notes:
        decide_one(engine, ann, note)
    return notes


def decide_one(engine: Engine, person: Moderator, note: str | None) -> None:
    lease = held(engine, person)
    label(engine, person, lease, key=f"-{lease.item.id}", note=note)


def sheet(parts: Sequence[bytes]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(b"".join(parts).decode(), newline="")))


def test_notes_survive_the_way_through_csv(engine, shift):
    parts = list(export(engine, "csv", with_notes=True))
    whole = b"".join(parts).decode()  # as RFC 4180 says
    assert whole.startswith(",".join(schema(with_notes=True).names) + "\r\n")
    assert '"two\r\nlines, ""quoted""\n\rend"' in whole
    assert whole.endswith("\r\n")
    rows = sheet(parts)
    assert list(rows[0]) == schema(with_notes=True).names
    found = [original(row["note"]) if row["note_commitment"] else None for row in rows]
    assert found == shift
    assert {original(row["idempotency_key"])[:1] for row in rows} == {"-"}
    for row in rows:
        for cell in row.values():
            assert cell.lstrip('\ufeff\u200b\u202e "“\u00a0')[:1] not in {"=", "+", "-", "@", "＝"}
    assert all(float(row["seconds"]) >= 0 and int(row["position"]) > 0 for row in rows)


def test_the_formats_say_the_same(engine, shift):
    lines = b"".join(export(engine, "jsonl", with_notes=True)).decode().split("\n")
    assert lines.pop() == ""
    rows = [json.loads(line) for line in lines]
    table = parquet(export(engine, "parquet", with_notes=True))
    assert table.schema == schema(with_notes=True)
    for row, other in zip(rows, table.to_pylist(), strict=True):
        assert row["note"] == other["note"]
        assert row["hash"] == other["hash"].hex()
        assert row["moderator"] == "ann"  # people go by their pseudonyms
        assert datetime.fromisoformat(row["decided_at"]) == other["decided_at"]
        assert date.fromisoformat(row["dt"]) == other["dt"]
        assert {name: row[name] for name in ("seconds", "label", "moderator", "position")} == {
            name: other[name] for name in ("seconds", "label", "moderator", "position")
        }
    cells = sheet(list(export(engine, "csv", with_notes=True)))
    assert [row["hash"] for row in cells] == [row["hash"] for row in rows]
    assert [float(row["seconds"]) for row in cells] == [row["seconds"] for row in rows]
    assert verify_export(lines).head == verify_log(engine).head


def parquet(parts: object) -> pa.Table:
    return pq.read_table(io.BytesIO(b"".join(parts)))  # type: ignore[call-overload]


def test_notes_are_left_out_unless_asked_for(engine, shift):
    for form in ("csv", "jsonl"):
        whole = b"".join(export(engine, form))  # type: ignore[arg-type]
        assert b"quoted" not in whole
        assert b"calc" not in whole
    table = parquet(export(engine, "parquet"))
    assert "note" not in table.schema.names
    committed = [
        commitment is not None for commitment in table.column("note_commitment").to_pylist()
    ]
    assert committed == [note is not None for note in shift]
    assert verify_export(b"".join(export(engine, "jsonl")).splitlines()).problems == ()


def test_days_are_chosen(engine, ann, ben, fill):
    fill(3)
    decide_all(engine, [ann])
    with unguarded(engine) as connection:
        for id_, moment in enumerate(("2026-02-01 23:59:59.999999", "2026-02-02", "2026-02-03"), 1):
            connection.execute(
                text("UPDATE decision SET decided_at = CAST(:at AS timestamptz) WHERE id = :id"),
                {"at": f"{moment}Z", "id": id_},
            )

    def ids(**chosen: object) -> list[int]:
        lines = b"".join(export(engine, "jsonl", **chosen)).splitlines()  # type: ignore[arg-type]
        return [json.loads(line)["id"] for line in lines]

    second = date(2026, 2, 2)
    assert ids() == [1, 2, 3]
    assert ids(first=second) == [2, 3]
    assert ids(last=second) == [1, 2]
    assert ids(first=second, last=second) == [2]
    assert ids(first=second + timedelta(days=9)) == []


def test_an_empty_log_makes_a_file_without_rows(engine):
    assert parquet(export(engine, "parquet")).schema == schema()
    assert b"".join(export(engine, "csv")).decode() == ",".join(schema().names) + "\r\n"
    assert b"".join(export(engine, "jsonl")) == b""
    with pytest.raises(QueueError, match="unknown format 'xlsx'; choose one of csv"):
        export(engine, "xlsx")  # type: ignore[arg-type]


def test_one_snapshot_is_read(engine, ann, fill, monkeypatch):
    monkeypatch.setattr(module, "_BATCH", 1)
    fill(3)
    decide_one(engine, ann, None)
    decide_one(engine, ann, None)
    parts = export(engine, "jsonl")
    first = next(parts)
    decide_one(engine, ann, None)
    assert len((first + b"".join(parts)).splitlines()) == 2


def test_whoever_stops_reading_gives_the_connection_back(engine, ann, fill, monkeypatch):
    monkeypatch.setattr(module, "_BATCH", 1)
    monkeypatch.setattr(module, "ROW_GROUP", 1)
    fill(3)
    decide_all(engine, [ann])
    for form in ("csv", "jsonl", "parquet"):
        parts = export(engine, form)  # type: ignore[arg-type]
        next(parts)
        next(parts)
        assert engine.pool.checkedout() == 1  # type: ignore[attr-defined]
        parts.close()  # type: ignore[attr-defined]
        assert engine.pool.checkedout() == 0  # type: ignore[attr-defined]


MANY = """
INSERT INTO decision (item_id, dt, comment_id, kind, item_version, moderator_id, action, label,
    idempotency_key, decided_at, text_commitment, item_digest, outcome, position, previous_hash,
    hash, note)
SELECT 1, '2026-01-01', 'c' || n, 'review', 1, 1, 'label', 1, n, now(), '', '', 'decided', n, '',
    '', repeat('n', 100)
FROM generate_series(CAST(:first AS int), :last) AS n
"""


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_memory_does_not_grow_with_the_log(engine, ann, fill, form, monkeypatch):
    monkeypatch.setattr(module, "ROW_GROUP", 300)
    monkeypatch.setattr(module, "_BATCH", 75)
    fill(1)

    def peak() -> int:
        tracemalloc.start()
        try:
            size = sum(len(part) for part in export(engine, form, with_notes=True))
            assert size > 0
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    execute(engine, MANY, first=1, last=750)
    small = peak()
    execute(engine, MANY, first=751, last=3_000)
    assert peak() < 1.5 * small


def test_a_row_group_is_handed_out_as_soon_as_it_is_full(engine, ann, fill, monkeypatch):
    monkeypatch.setattr(module, "_BATCH", 2)
    monkeypatch.setattr(module, "ROW_GROUP", 2)
    fill(5)
    decide_all(engine, [ann])
    parts = list(export(engine, "parquet"))
    assert len(parts) == 4  # three groups, and the end of the file
    assert all(parts)
    file = pq.ParquetFile(io.BytesIO(b"".join(parts)))
    assert [file.metadata.row_group(i).num_rows for i in range(3)] == [2, 2, 1]
    assert file.read().column("decided_at").to_pylist()[0].tzinfo is not None
    assert datetime.now(UTC) - file.read().column("decided_at").to_pylist()[0] < timedelta(hours=1)
