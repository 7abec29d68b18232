import os
import signal
import subprocess
import sys

import httpx
import pytest

from modwatch.common.connections import listen
from modwatch.common.errors import StackError
from modwatch.review.console.app import serve

SERVE = """
import sys
from modwatch.review.console.app import serve
from modwatch.review.database import connect
serve("127.0.0.1", int(sys.argv[2]), connect(sys.argv[1]))
"""


def free_port() -> int:
    with listen("127.0.0.1", 0) as listener:
        port: int = listener.getsockname()[1]
    return port


@pytest.mark.soak  # `attacks/test_killed_database.py` ends the program's console
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_it_is_stopped(queue_url, end):
    port = free_port()
    with subprocess.Popen(
        [sys.executable, "-c", SERVE, queue_url, str(port)],
        stderr=subprocess.DEVNULL,
        # A shell that runs the tests in the background hands SIGINT down ignored.
        preexec_fn=lambda: signal.signal(end, signal.SIG_DFL),
    ) as process:
        transport = httpx.HTTPTransport(retries=8)  # waits 0.5, 1, 2, … s
        with httpx.Client(transport=transport, timeout=30) as client:
            assert client.get(f"http://127.0.0.1:{port}/readyz").status_code == 200
        os.kill(process.pid, end)
        assert process.wait(timeout=30) in (-end, 1)


def test_a_taken_port_is_named(engine):
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(StackError, match=f"127.0.0.1:{port}"):
            serve("127.0.0.1", port, engine)


def test_a_signal_before_the_start_ends_it(engine):
    serve("127.0.0.1", free_port(), engine, came=[signal.SIGTERM])
