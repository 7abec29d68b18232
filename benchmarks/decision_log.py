"""How fast the decision log is verified and exported, and in how much memory.

The log is made here, hashes and all, and copied into the embedded PostgreSQL. Every measure runs in
a process of its own and reports the most memory that it came to have resident. Baselines of the
same run: a plain COPY of the table to this process, and SHA-256 alone over what the hashes cover.

    python benchmarks/decision_log.py                  # 100,000 and 1,000,000 decisions
    python benchmarks/decision_log.py 100000
"""

import argparse
import datetime as dt
import hashlib
import json
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, text

from modwatch.common.ledger.chain import GENESIS, commitment
from modwatch.review.database import connect
from modwatch.review.embedded import embedded
from modwatch.review.label_studio import transfer as label_studio
from modwatch.review.log import export, verification
from modwatch.review.log.decision_log import COVERED, content_of, item_digest_sql, row_hash
from modwatch.review.migrate import upgrade
from modwatch.review.people import accounts

MODERATORS = 64

_COLUMNS = (*COVERED, "note", "note_salt", "previous_hash", "hash")

_DAY = dt.date(2026, 1, 1)
_TEXTS = json.dumps(["word " * 60, None])
_SALT = bytes(16)
_BEGIN = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)

_ITEMS = """
INSERT INTO review_item (id, dt, comment_id, kind, text, text_salt, reason, stratum,
    inclusion_probability, rank, review_score, prob, uncertainty, model_version, status, version)
SELECT n, date '2026-01-01', 'c' || n, 'review', repeat('word ', 60),
    decode(repeat('00', 16), 'hex'), 'uncertainty', 0, 1, n, 0.2, 0.3, 0.21, '1', 'decided', 2
FROM generate_series(1, :n) AS n
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, help="default: 100000 1000000")
    for size in parser.parse_args().sizes or [100_000, 1_000_000]:
        with tempfile.TemporaryDirectory() as folder, embedded(Path(folder)) as postgres:
            url = postgres.url("log")
            upgrade(url)
            engine = connect(url)
            begun = time.perf_counter()
            build(engine, size)
            engine.dispose()
            print(f"{size:,} decisions, made in {time.perf_counter() - begun:.0f} s:")
            print(f"  {'':34}{'rows/s':>12}{'x COPY':>8}{'MB':>8}{'peak MiB':>10}")
            measure_all(url, size)


def build(engine: Engine, n: int) -> None:
    """Make `n` decided items and the log of their labels."""
    team = [accounts.create_moderator(engine, f"m{i}", "moderator").id for i in range(MODERATORS)]
    with engine.begin() as connection:
        for table in ("decision", "review_item"):
            connection.execute(text(f"ALTER TABLE {table} DISABLE TRIGGER ALL"))
        connection.execute(text(_ITEMS), {"n": n})
        digest = f"SELECT {item_digest_sql('review_item')} FROM review_item ORDER BY id"
        digests = connection.scalars(text(digest)).all()
        driver: Any = connection.connection.driver_connection
        ends: dict[int, tuple[int, bytes]] = dict.fromkeys(team, (0, GENESIS))
        statement = f"COPY decision ({', '.join(_COLUMNS)}) FROM STDIN"
        with driver.cursor() as cursor, cursor.copy(statement) as copy:
            for row in made(team, ends, digests):
                copy.write_row([row[name] for name in _COLUMNS])
        for moderator_id, (length, last) in ends.items():
            connection.execute(
                text("UPDATE decision_chain SET length = :length, hash = :last WHERE "
                     "moderator_id = :id"),
                {"length": length, "last": last, "id": moderator_id},
            )  # fmt: skip
        for table in ("decision", "review_item"):
            connection.execute(text(f"ALTER TABLE {table} ENABLE TRIGGER ALL"))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM ANALYZE"))
        connection.execute(text("CHECKPOINT"))


def made(
    team: list[int], ends: dict[int, tuple[int, bytes]], digests: Sequence[bytes]
) -> Iterator[dict[str, Any]]:
    """Yield a decision for each digest of an item, by one person after the other.

    Every tenth has a note.
    """
    for number, digest in enumerate(digests):
        moderator_id = team[number % len(team)]
        length, last = ends[moderator_id]
        note = 'meant as a joke, "perhaps"; see the thread' if number % 10 == 0 else None
        row = {
            "position": length + 1,
            "item_id": number + 1,
            "dt": _DAY,
            "comment_id": f"c{number + 1}",
            "kind": "review",
            "item_version": 1,
            "moderator_id": moderator_id,
            "action": "label",
            "label": number % 2,
            "policy_version": "2026-11",
            "policy_code": "harassment.insult" if number % 2 else None,
            "reason": None,
            "note": note,
            "note_salt": None if note is None else _SALT,
            "note_commitment": None if note is None else commitment(_SALT, note),
            "seconds": 2.0 + number % 977 / 97,
            "idempotency_key": f"{number:032x}",
            "refers_to": None,
            "decided_at": _BEGIN + dt.timedelta(milliseconds=137 * number),
            "text_commitment": commitment(_SALT, _TEXTS),
            "item_digest": digest,
            "outcome": "decided",
            "transaction_id": "1000",
            "previous_hash": last,
        }
        row["hash"] = row_hash(row)
        ends[moderator_id] = (length + 1, row["hash"])
        yield row


def copy_table(engine: Engine) -> int:
    """Take the whole table in, and do nothing with it."""
    with engine.connect() as connection:
        driver: Any = connection.connection.driver_connection
        with driver.cursor().copy("COPY decision TO STDOUT (FORMAT binary)") as copy:
            return sum(len(block) for block in copy)


def hash_alone(engine: Engine) -> int:  # noqa: ARG001
    """Hash one decision as often as there are; the text is made once."""
    row = next(made([1], {1: (0, GENESIS)}, [bytes(32)]))
    content = (GENESIS + content_of(row).encode()) * 1
    for _ in range(100_000):
        hashlib.sha256(content).digest()
    return 100_000 * len(content)


def verify(engine: Engine) -> int:
    report = verification.verify_log(engine)
    assert report.intact, report.problems
    return 0


def exported(engine: Engine, form: export.Format) -> int:
    return sum(len(part) for part in export.export(engine, form, with_notes=True))


def verify_exported(engine: Engine) -> int:
    report = verification.verify_export(_lines(export.export(engine, "jsonl", with_notes=True)))
    assert report.intact, report.problems
    return 0


def _lines(parts: Iterator[bytes]) -> Iterator[bytes]:
    for part in parts:
        yield from part.splitlines()


def tasks(engine: Engine) -> int:
    return sum(len(part) for part in label_studio.export_tasks(engine))


MEASURES: dict[str, Callable[[Engine], int]] = {
    "plain COPY of the table": copy_table,
    "SHA-256 alone": hash_alone,
    "verify_log": verify,
    "export, CSV": partial(exported, form="csv"),
    "export, JSONL": partial(exported, form="jsonl"),
    "export, Parquet": partial(exported, form="parquet"),
    "export, JSONL, and verify_export": verify_exported,
    "export to Label Studio": tasks,
}


def measure_all(url: str, n: int) -> None:
    spawn = multiprocessing.get_context("spawn")
    limit = 0.0
    for name in MEASURES:
        results = spawn.Queue()
        process = spawn.Process(target=_measured, args=(name, url, results))
        process.start()
        size, seconds, peak = results.get(timeout=3600)
        process.join()
        rows = 100_000 if name == "SHA-256 alone" else n
        limit = limit or rows / seconds
        print(
            f"  {name:34}{rows / seconds:>12,.0f}{rows / seconds / limit:>8.2f}"
            f"{size / 1e6:>8.0f}{peak:>10.0f}",
            flush=True,
        )


def _measured(name: str, url: str, results: "multiprocessing.Queue[Any]") -> None:
    engine = connect(url, pool_size=1)
    begun = time.perf_counter()
    size = MEASURES[name](engine)
    seconds = time.perf_counter() - begun
    engine.dispose()
    results.put((size, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10))


if __name__ == "__main__":
    main()
