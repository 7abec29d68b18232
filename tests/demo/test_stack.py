import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from modwatch.demo.stack import MemoryGauge, Service, Stack, interruptible, require_free_ports
from modwatch.errors import StackError

PYTHON = sys.executable
SLEEP = [PYTHON, "-c", "import time; time.sleep(60)"]
STUBBORN = [
    PYTHON,
    "-c",
    "import os, subprocess, sys, time\n"
    "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'],"
    " start_new_session=True)\n"
    "print('up', flush=True)\n"
    "time.sleep(60)",
]


def wait_until(condition, seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


def test_leaving_the_context_stops_every_process_even_a_daemon(tmp_path: Path) -> None:
    with Stack(logs=tmp_path) as stack:
        stack.start(Service(name="plain", command=SLEEP))
        stack.start(Service(name="daemon", command=STUBBORN))
        assert wait_until(lambda: len(stack.processes()) == 3)
    assert stack.processes() == []


def test_a_service_that_died_is_named_with_its_log(tmp_path: Path) -> None:
    with Stack(logs=tmp_path) as stack:
        stack.start(Service(name="fragile", command=[PYTHON, "-c", "raise SystemExit(3)"]))
        assert wait_until(lambda: _dead(stack))
        with pytest.raises(StackError, match=r"fragile exited with status 3; see .*fragile\.log"):
            stack.check()


def _dead(stack: Stack) -> bool:
    try:
        stack.check()
    except StackError:
        return True
    return False


def test_a_service_that_never_answers_is_given_up(tmp_path: Path) -> None:
    with Stack(logs=tmp_path) as stack:
        stack.start(Service(name="mute", command=SLEEP, ready_url="http://127.0.0.1:9"))
        with pytest.raises(StackError, match="mute was not ready within 1 s"):
            stack.wait_ready(timeout=1)


def test_a_killed_supervisor_leaves_no_service_behind(tmp_path: Path) -> None:
    supervisor = subprocess.Popen(
        [
            PYTHON,
            "-c",
            "import sys, time\nfrom pathlib import Path\n"
            "from modwatch.demo.stack import Service, Stack\n"
            f"stack = Stack(logs=Path({str(tmp_path)!r}))\n"
            f"stack.start(Service(name='nap', command={SLEEP!r}))\n"
            "print(stack._running[0][1].pid, flush=True)\n"
            "time.sleep(60)",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert supervisor.stdout is not None
    child = int(supervisor.stdout.readline())
    assert psutil.pid_exists(child)
    os.kill(supervisor.pid, signal.SIGKILL)
    supervisor.communicate()
    assert wait_until(lambda: not psutil.pid_exists(child) or _zombie(child))


def _zombie(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_port_in_use_is_named_with_its_setting() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(StackError, match=f"port {port} is in use; set MODWATCH_MLFLOW_URL"):
            require_free_ports({"MODWATCH_MLFLOW_URL": f"http://127.0.0.1:{port}"})


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_every_signal_to_end_unwinds_like_ctrl_c(which: signal.Signals) -> None:
    with pytest.raises(KeyboardInterrupt), interruptible():
        signal.raise_signal(which)


def test_the_gauge_sees_the_memory_of_a_service(tmp_path: Path) -> None:
    hungry = [PYTHON, "-c", "import time; block = b'x' * 200_000_000; time.sleep(60)"]
    with Stack(logs=tmp_path) as stack, MemoryGauge(stack, every=0.1) as gauge:
        assert wait_until(lambda: gauge.peak_bytes > 0)
        before = gauge.peak_bytes
        stack.start(Service(name="hungry", command=hungry))
        assert wait_until(lambda: gauge.peak_bytes > before + 150_000_000)
