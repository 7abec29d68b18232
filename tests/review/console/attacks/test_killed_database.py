"""The embedded PostgreSQL is killed, and the console that uses it is told to stop."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import psutil
import pytest

from modwatch.common.connections import listen

RUN = "from modwatch.cli.main import program; program()"

pytestmark = pytest.mark.usefixtures("services")


def postmaster(home: Path) -> psutil.Process:
    text = (home / "postgres" / "cluster" / "postmaster.pid").read_text()
    return psutil.Process(int(text.split()[0]))


def of_the_cluster(home: Path) -> list[int]:
    cluster = str((home / "postgres" / "cluster").resolve())
    return [
        item.pid
        for item in psutil.process_iter(["name", "cwd"])
        if (item.info["name"] or "").startswith("postgres") and item.info["cwd"] == cluster
    ]


def until_it_answers(url: str, seconds: float) -> float:
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        try:
            if httpx.get(f"{url}/readyz", timeout=5).status_code == 200:
                return time.monotonic() - began
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise AssertionError("the console does not answer")


@pytest.fixture
def port():
    with listen("127.0.0.1", 0) as listener:
        number: int = listener.getsockname()[1]
    return number


@pytest.fixture
def home():
    # Not pytest's folder, which is closed to other users: the server of a root has its own.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def console(services, home, port):
    environment = {name: os.environ[name] for name in os.environ if "MODWATCH" not in name}
    environment |= {"MODWATCH_HOME": str(home), "MODWATCH_DATABASE_URL": "embedded"}
    with subprocess.Popen(
        [sys.executable, "-c", RUN, "console", "--port", str(port)],
        env=environment,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_it_is_started_again_and_ends_with_the_console(console, home, port):
    url = f"http://127.0.0.1:{port}"
    until_it_answers(url, 120)
    killed = postmaster(home)
    killed.kill()
    killed.wait(timeout=30)
    assert until_it_answers(url, 30) < 20
    assert postmaster(home).pid != killed.pid
    console.send_signal(signal.SIGTERM)
    assert console.wait(timeout=60) == -signal.SIGTERM
    assert of_the_cluster(home) == []


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("modwatch.conf", 0.0),
        pytest.param("postmaster.pid", 0.0, marks=pytest.mark.soak),
        pytest.param("modwatch.conf", 0.3, marks=pytest.mark.soak),
    ],
)
def test_a_signal_at_the_start_leaves_nothing_behind(console, home, written, seconds):
    # `initdb` writes the first; the second is there when the server itself is about to start.
    file = home / "postgres" / "cluster" / written
    began = time.monotonic()
    while not file.exists() and time.monotonic() - began < 60:
        time.sleep(0.005)
    time.sleep(seconds)
    console.send_signal(signal.SIGTERM)
    assert console.wait(timeout=60) == -signal.SIGTERM
    assert of_the_cluster(home) == []
