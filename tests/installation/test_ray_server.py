"""Replicas of the model server on Ray: nodes and replicas killed, drained, refused, measured."""

import os
import re
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import mlflow
import numpy as np
import psutil
import pytest
from numpy.typing import NDArray
from ray_nodes import QUIET, Group, cluster, free_port, until

from installation import Installation
from modwatch.installation.resources import open_resources
from modwatch.models.registry import Registry
from modwatch.models.scoring.remote import RemoteScorer
from modwatch_lab.community import Community

RUN = "from modwatch.cli.main import program; program()"
TOKEN = "open-sesame"
RIGHT = {"Authorization": f"Bearer {TOKEN}"}
MODEL = "/v2/models/toxicity"

pytestmark = [
    # Ray gives up what is not ready within a minute; `test_ray_app` needs no cluster.
    pytest.mark.soak,
    pytest.mark.usefixtures("services"),
    pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated"),
]


@pytest.fixture
def home(champion, tmp_path):
    """An installation without a review database; its champion is version 1, and 2 is the same."""
    url = champion.copy(tmp_path / "mlflow")
    client = mlflow.MlflowClient(url)
    first = client.get_model_version("toxicity", "1")
    client.create_model_version("toxicity", first.source, first.run_id, tags=first.tags)
    values = {
        "home": tmp_path / "home",
        "mlflow_url": url,
        "scorer_token": TOKEN,
        "torch_threads": 1,
        "source": {"kind": "community"},
    }
    return Installation(values=values)


@contextmanager
def serving(env: Mapping[str, str], *more: str) -> Iterator[tuple[Group, str]]:
    """Run `modwatch serve` with two replicas; yield its processes and its URL."""
    port = free_port()
    program = [sys.executable, "-c", RUN, "serve", "--replicas", "2", "--port", str(port), *more]
    with tempfile.TemporaryFile() as log:
        group = Group(process=subprocess.Popen(program, env=dict(env), stdout=log, stderr=log))
        url = f"http://127.0.0.1:{port}"
        try:
            until(lambda: ready(url, group, log))
            yield group, url
        finally:
            group.kill()


def ready(url: str, group: Group, log: Any) -> bool:
    if group.process.poll() is not None:
        log.seek(0)
        raise AssertionError(log.read()[-2_000:].decode())
    try:
        answer = httpx.get(f"{url}/v2/health/ready", timeout=30, verify=False)
    except httpx.ConnectError:
        return False
    assert answer.status_code in (200, 503)
    return answer.status_code == 200


def body(*texts: str) -> dict[str, object]:
    tensor = {"name": "text", "datatype": "BYTES", "shape": [len(texts)], "data": list(texts)}
    return {"inputs": [tensor]}


def post(client: httpx.Client, *texts: str, version: str = "") -> httpx.Response:
    place = f"{MODEL}/versions/{version}" if version else MODEL
    return client.post(f"{place}/infer", json=body(*texts), headers=RIGHT)


class Faults(httpx.BaseTransport):
    """Passes requests on, and counts those that fail."""

    def __init__(self) -> None:
        self.count = 0
        self.network = httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        try:
            response = self.network.handle_request(request)
        except httpx.TransportError:
            self.count += 1
            raise
        self.count += response.status_code >= 500
        return response


class Load:
    """Threads that score the same texts again and again, until they are stopped."""

    def __init__(self, url: str, texts: list[str], threads: int = 2) -> None:
        self.found: list[NDArray[np.float32]] = []
        self.faults = Faults()
        self._url, self._texts = url, texts
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(threads)
        self._done = [self._pool.submit(self._run) for _ in range(threads)]

    def _run(self) -> None:
        with RemoteScorer(
            self._url,
            model="toxicity",
            model_version="1",
            token=TOKEN,
            patience=60,
            transport=self.faults,
        ) as remote:
            while not self._stop.is_set():
                self.found.append(remote.score(self._texts).values)

    def more(self, rounds: int) -> None:
        """Wait until the texts were scored so many times more."""
        wanted = len(self.found) + rounds
        until(lambda: len(self.found) >= wanted or any(request.done() for request in self._done))

    def finish(self) -> None:
        self._stop.set()
        for request in self._done:
            request.result(timeout=90)
        self._pool.shutdown()
        self.faults.network.close()


def test_two_nodes_lose_a_replica_and_a_node_and_no_comment(home):
    texts = list(Community(seed=9).training_comments(1_500).texts)
    with open_resources(home.settings) as resources:
        expected = resources.local_scorer("1").score(texts).values
    place = ["--cpus-per-replica", "1", "--max-replicas-per-node", "1"]
    # Not in pytest's folder: names of sockets would be too long.
    with (
        tempfile.TemporaryDirectory(prefix="ray") as folder,
        cluster(Path(folder), home.env) as nodes,
        serving(nodes.env | home.env, *place, "--address", nodes.address) as (_, url),
    ):
        until(lambda: len(nodes.head.replicas()) == len(nodes.worker.replicas()) == 1)
        load = Load(url, texts)
        try:
            load.more(2)
            follow_the_alias(home, url)
            assert load.faults.count == 0
            lose_a_replica(nodes.worker, load)
            lose_a_node(nodes.worker, load)
        finally:
            load.finish()
    assert len(load.found) >= 10
    for columns in load.found:  # a comment that was not scored would have the probability 0
        np.testing.assert_allclose(columns, expected, atol=1e-5)


def lose_a_replica(node: Group, load: Load) -> None:
    before = texts_by_replica(node.metrics_port)
    [lost] = node.replicas()
    node.hang()
    lost.kill()
    load.more(2)
    assert load.faults.count > 0  # requests were lost, and sent again

    def replaced() -> bool:
        found = texts_by_replica(node.metrics_port)
        return any(texts > 100 for name, texts in found.items() if name not in before)

    until(replaced)


def lose_a_node(node: Group, load: Load) -> None:
    before = load.faults.count
    node.hang()
    node.kill()
    load.more(4)
    assert load.faults.count > before


def follow_the_alias(home: Installation, url: str) -> None:
    """Move the alias under load: all requests are answered, by the one version or the other."""
    stop, answers = threading.Event(), list[tuple[int, str]]()

    def ask() -> None:
        with httpx.Client(base_url=url, timeout=60) as client:
            while not stop.is_set():
                answer = post(client, "a comment")
                answers.append((answer.status_code, answer.json().get("model_version")))

    with ThreadPoolExecutor(2) as pool:
        asking = [pool.submit(ask) for _ in range(2)]
        until(lambda: len(answers) > 10)
        settings = home.settings
        Registry(name="toxicity", tracking_uri=settings.mlflow_url).set_alias("2")
        until(lambda: {version for _, version in answers[-30:]} == {"2"})
        stop.set()
        for thread in asking:
            thread.result(timeout=60)
    assert {status for status, _ in answers} == {200}
    assert {version for _, version in answers} == {"1", "2"}


def test_one_machine_serves_refuses_measures_and_drains(home):
    metrics = free_port()
    env = {**os.environ, **QUIET, **home.env}
    options = ["--cpus-per-replica", "0.5", "--metrics-port", str(metrics)]
    with serving(env, *options) as (server, url), httpx.Client(base_url=url, timeout=60) as client:
        until(lambda: len(server.replicas()) == 2)
        only_loopback(server)
        folder = only_its_user_reads_its_folder(server)
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            assert client.post(f"{MODEL}/infer", json=body("a"), headers=headers).status_code == 401
        slow_clients_hold_up_nobody(client, url)
        requests_are_refused_with_a_time_to_wait(url)
        every_replica_is_measured(client, metrics)
        requests_are_answered_at_the_end(server, url)
        assert server.process.wait(timeout=60) == -signal.SIGTERM
        assert not folder.exists()


def only_its_user_reads_its_folder(server: Group) -> Path:
    """Return the folder of Ray, to which comments are written when the memory is full."""
    places = [
        Path(connection.laddr)
        for process in server.members()
        for connection in process.net_connections("unix")
        if str(connection.laddr).endswith("/plasma_store")
    ]
    folder = places[0].parents[3]  # FOLDER/ray/session_…/sockets/plasma_store
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert any(folder.glob("ray/session_*/logs"))
    return folder


def only_loopback(server: Group) -> None:
    listening = [
        connection.laddr
        for process in server.members()
        for connection in process.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert len(listening) > 5
    assert {ip for ip, _ in listening} <= {"127.0.0.1", "::ffff:127.0.0.1", "::1"}


def slow_clients_hold_up_nobody(client: httpx.Client, url: str) -> None:
    head = (
        f"POST {MODEL}/infer HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
        "Content-Length: 1000\r\n\r\n{"
    )
    address = ("127.0.0.1", httpx.URL(url).port or 0)
    slow = [socket.create_connection(address) for _ in range(40)]
    for request in slow:
        request.sendall(head.encode())
    began = time.monotonic()
    for _ in range(20):
        assert post(client, "a comment").status_code == 200
    assert time.monotonic() - began < 10
    for request in slow:
        request.close()


def requests_are_refused_with_a_time_to_wait(url: str) -> None:
    def ask(number: int) -> httpx.Response:
        with httpx.Client(base_url=url, timeout=600) as client:
            return post(client, *(f"comment {number} {k}" for k in range(9_000)))

    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(ask, range(12)))
    assert {answer.status_code for answer in answers} == {200, 429}
    for answer in answers:
        if answer.status_code == 429:
            assert int(answer.headers["Retry-After"]) >= 1
            assert "too many texts" in answer.json()["error"]


def every_replica_is_measured(client: httpx.Client, port: int) -> None:
    assert client.get("/metrics", headers=RIGHT).status_code == 404
    before = texts_by_replica(port)
    for number in range(40):
        assert post(client, f"a {number}", f"b {number}", f"c {number}").status_code == 200

    def counted() -> bool:
        after = texts_by_replica(port)
        more = [after[name] - before.get(name, 0) for name in after]
        return len(more) == 2 and min(more) > 0 and sum(more) >= 120

    def shown(page: str, name: str) -> bool:
        return len(set(re.findall(rf'^ray_modwatch_{name}{{.*replica="(\w+)"', page, re.M))) == 2

    def exported() -> bool:  # a replica reports its metrics one after another
        page = httpx.get(f"http://127.0.0.1:{port}/metrics", verify=False).text
        names = ("infer_seconds_bucket", "batch_texts_bucket", "waiting_texts", "subwords_total")
        return all(shown(page, name) for name in names)

    until(counted, 30)
    until(exported, 30)
    page = httpx.get(f"http://127.0.0.1:{port}/metrics", verify=False).text
    assert re.search(r'^ray_modwatch_refused_requests_total{.*replica="\w+".*} [\d.]+$', page, re.M)
    assert "comment" not in "".join(re.findall("^ray_modwatch.*", page, re.M))


def texts_by_replica(port: int) -> dict[str, float]:
    page = httpx.get(f"http://127.0.0.1:{port}/metrics", verify=False).text
    rows = re.findall(r'^ray_modwatch_texts_total{.*replica="(\w+)".*} ([\d.e+]+)$', page, re.M)
    return {replica: float(value) for replica, value in rows}


def requests_are_answered_at_the_end(server: Group, url: str) -> None:
    """SIGTERM under load: what was sent before is answered, what is sent later may be refused."""
    answers, ended = list[tuple[float, int]](), threading.Event()

    def ask(number: int) -> None:
        with httpx.Client(base_url=url, timeout=600) as client:
            for k in range(1_000):
                began = time.monotonic()
                try:
                    answer = post(client, *(f"{number} {k} {j} " * 20 for j in range(500)))
                except httpx.TransportError:
                    answers.append((began, 0))
                else:
                    answers.append((began, answer.status_code))
                    if answer.status_code == 503:
                        assert answer.headers["Retry-After"] == "1"
                if ended.is_set() and answers[-1][1] != 200:
                    return

    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(ask, number) for number in range(4)]
        until(lambda: len(answers) >= 12)
        signalled = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        ended.set()
        for thread in asking:
            thread.result(timeout=600)
    assert {status for began, status in answers if began < signalled} == {200}
    assert {status for _, status in answers} <= {200, 503, 0}
    assert 503 in {status for _, status in answers}
