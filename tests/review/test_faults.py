"""What breaks around the queue: the console is killed, the database restarts during a shift."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import httpx
import psutil
import pytest
from databases import execute
from sqlalchemy import Engine, func, select

from modwatch.review.database import connect
from modwatch.review.embedded import embedded
from modwatch.review.log import verification
from modwatch.review.migrate import upgrade
from modwatch.review.people import access_tokens, accounts
from modwatch.review.queue import intake, metrics
from modwatch.review.tables import decision
from modwatch_lab.simulated import SimulatedModerator, work
from review.console.visiting import serving

pytestmark = pytest.mark.usefixtures("services")

Fill = Callable[[int], None]

#: Comments: many are left when the database goes away after fifty.
_SHIFT = 200

#: A console that dies when a decision is made and its answer is on the way out, each time.
CONSOLE = """
import os, sys
from modwatch.review.console.app import create_app
from modwatch.review.console.app import listen
from modwatch.review.database import connect
import uvicorn

url, deadly = sys.argv[1:]
app = create_app(connect(url))

async def dying(scope, receive, send):
    async def send_or_die(message):
        if deadly == "deadly" and message["type"] == "http.response.start":
            if scope["path"].endswith("/decisions") and message["status"] == 201:
                os.kill(os.getpid(), 9)
        await send(message)
    await app(scope, receive, send_or_die)

with listen("127.0.0.1", 0) as listener:
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(dying, log_config=None)).run(sockets=[listener])
"""


@contextmanager
def console(url: str, deadly: bool) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    arguments = [sys.executable, "-c", CONSOLE, url, "deadly" if deadly else "sound"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}", process
        finally:
            process.kill()


def test_a_console_that_dies_between_decision_and_reply_costs_nothing(engine, queue_url, ann, fill):
    fill(1)
    token = access_tokens.issue_token(engine, ann.id)
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": "one and the same"}
    with console(queue_url, deadly=True) as (address, process):
        lease = httpx.post(f"{address}/api/v1/leases", headers=headers, timeout=30).json()
        path = f"/api/v1/items/{lease['item']['id']}/decisions"
        body = {"lease_token": lease["token"], "label": 1}
        with pytest.raises(httpx.TransportError):
            httpx.post(address + path, json=body, headers=headers, timeout=30)
        assert process.wait(timeout=30) == -signal.SIGKILL
    with console(queue_url, deadly=False) as (address, _):
        answers = [
            httpx.post(address + path, json=body, headers=headers, timeout=30) for _ in range(2)
        ]
    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].json() == answers[1].json()
    with engine.connect() as connection:
        assert connection.scalar(select(func.count()).select_from(decision)) == 1
    assert verification.verify_log(engine).intact


def test_a_database_that_restarts_in_the_middle_of_a_shift_loses_and_doubles_nothing(new_item, day):
    with tempfile.TemporaryDirectory() as folder, embedded(Path(folder)) as postgres:
        url = postgres.url("shift")
        upgrade(url)
        engine = connect(url)
        items = [new_item(f"c{i}", i + 1) for i in range(_SHIFT)]
        intake.enqueue(engine, items, day)  # type: ignore[arg-type]
        team = [simulated(engine, f"person {i}") for i in range(3)]
        truth = {item.text: (item.comment_id, item.rank % 2) for item in items}
        crash = Thread(target=crash_and_recover, args=(engine, Path(folder)))
        with serving(engine) as address:
            crash.start()
            report = work(address, team, truth, concurrency=3)
            crash.join(timeout=120)
            # What was leased to people whose request broke off comes back when the lease ends.
            execute(engine, "UPDATE review_item SET leased_until = now()")
            rest = work(address, team, truth)
        assert report.decisions + rest.decisions == _SHIFT
        assert metrics.counts(engine).decided == _SHIFT
        log = verification.verify_log(engine)
        assert (log.decisions, log.problems) == (_SHIFT, ())
        engine.dispose()


def simulated(engine: Engine, name: str) -> SimulatedModerator:
    person = accounts.create_moderator(engine, name, "moderator")
    return SimulatedModerator(
        token=access_tokens.issue_token(engine, person.id),
        false_positive_rate=0.0,
        false_negative_rate=0.0,
        seed=person.id,
    )


def crash_and_recover(engine: Engine, folder: Path) -> None:
    """Let the server drop everything at once as soon as the shift is under way; start it again."""
    while metrics.counts(engine).decided < 50:
        time.sleep(0.01)
    postmaster = psutil.Process(int((folder / "cluster" / "postmaster.pid").read_text().split()[0]))
    os.kill(postmaster.pid, signal.SIGQUIT)
    postmaster.wait(timeout=60)
    with embedded(folder):  # starts it again; its other user keeps it up
        pass
