"""`modwatch serve`, a process of its own: a day scored by it, killed and started again."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import pytest

from installation import MONDAY, Installation
from modwatch.common.connections import listen
from modwatch.data.lake.day_scores import day_scores
from modwatch.installation.resources import open_resources

RUN = "from modwatch.cli.main import program; program()"
TOKEN = "open-sesame"
#: In which a request reaches the server.
_ARRIVAL = 0.2

pytestmark = [
    pytest.mark.usefixtures("services"),
    pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated"),
]

Install = Callable[..., Installation]


@pytest.fixture
def port():
    with listen("127.0.0.1", 0) as listener:
        number: int = listener.getsockname()[1]
    return number


@contextmanager
def serving(home: Installation, port: int, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    environment = {name: os.environ[name] for name in os.environ if "MODWATCH" not in name}
    with subprocess.Popen(
        [sys.executable, "-c", RUN, "serve", "--port", str(port), *more],
        env=environment | home.env,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def until_ready(port: int) -> None:
    deadline = time.monotonic() + 120
    url = f"http://127.0.0.1:{port}/v2/health/ready"
    while time.monotonic() < deadline:
        try:
            if httpx.get(url, verify=False).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise AssertionError("the server is not ready")


def test_a_day_is_scored_by_a_server_that_is_killed_meanwhile(scored_monday, install, port):
    remote = install("remote", scorer=f"http://127.0.0.1:{port}", scorer_token=TOKEN)
    remote.run("ingest", "check_comments")
    with serving(remote, port) as server:
        until_ready(port)
        scored = threading.Thread(target=remote.run, args=("score",))
        server.send_signal(signal.SIGSTOP)  # the requests wait
        scored.start()
        time.sleep(2)
        server.kill()
    assert scored.is_alive()
    with serving(remote, port) as server:
        scored.join(timeout=120)
        assert not scored.is_alive()
        remote.run("check_scores")
        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=60) == -signal.SIGTERM
    with open_resources(scored_monday.settings) as here, open_resources(remote.settings) as there:
        expected, found = (day_scores(at.lake, MONDAY) for at in (here, there))
        assert found.model_version == expected.model_version
        # The lake gives the rows of several shards in no certain order.
        by_id = [
            dict(zip(scores.comment_id.to_pylist(), scores.prob.tolist(), strict=True))
            for scores in (expected, found)
        ]
        assert by_id[0] == pytest.approx(by_id[1], abs=1e-5)


@pytest.mark.soak  # tests/models/serving/test_batching.py waits for what was accepted
def test_requests_are_answered_at_the_end(install, port):
    """SIGTERM under load: what has arrived before is answered; later, nobody listens."""
    home = install()
    answers, ended = list[tuple[float, int]](), threading.Event()
    url = f"http://127.0.0.1:{port}/v2/models/toxicity/infer"

    def ask(number: int) -> None:
        while not ended.is_set() or answers[-1][1] == 200:
            texts = [f"{number} {len(answers)} {k} " * 20 for k in range(2_000)]
            tensor = {"name": "text", "datatype": "BYTES", "shape": [len(texts)], "data": texts}
            began = time.monotonic()
            try:
                status = httpx.post(url, json={"inputs": [tensor]}, timeout=60).status_code
            except httpx.TransportError:
                status = 0
            answers.append((began, status))

    with serving(home, port) as server:
        until_ready(port)
        with ThreadPoolExecutor(4) as pool:
            asking = [pool.submit(ask, number) for number in range(4)]
            while len(answers) < 8:
                time.sleep(0.05)
                assert not any(request.done() for request in asking)
            signalled = time.monotonic()
            server.send_signal(signal.SIGTERM)
            ended.set()
            for request in asking:
                request.result(timeout=60)
        assert server.wait(timeout=60) == -signal.SIGTERM
    assert {status for began, status in answers if began < signalled - _ARRIVAL} == {200}
    assert {status for _, status in answers} == {200, 0}


def test_others_may_reach_it_only_with_a_token(install, port):
    home = install()
    with serving(home, port, "--host", "0.0.0.0") as server:
        assert server.wait(timeout=60) == 1
        assert server.stderr is not None
        assert b"MODWATCH_SCORER_TOKEN" in server.stderr.read()


def test_a_taken_port_is_named(install):
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        with serving(install(), port) as server:
            assert server.wait(timeout=60) == 1
            assert server.stderr is not None
            assert f"127.0.0.1:{port}".encode() in server.stderr.read()
