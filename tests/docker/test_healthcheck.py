"""`docker/healthcheck.py`, run as the images run it, against a real server."""

import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

HEALTHCHECK = Path(__file__).parents[2] / "docker" / "healthcheck.py"


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(int(self.path.strip("/")))
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server():
    with HTTPServer(("127.0.0.1", 0), _Answer) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()
        thread.join(timeout=5)


def status_of(url: str) -> int:
    # The proxy leads nowhere: the check must not use it.
    proxied = {"http_proxy": "http://127.0.0.1:9", "PATH": ""}
    return subprocess.run(
        [sys.executable, HEALTHCHECK, url], env=proxied, timeout=30, check=False
    ).returncode


@pytest.mark.parametrize(("answer", "status"), [(200, 0), (404, 1), (503, 1), (302, 1)])
def test_only_200_is_healthy(server, answer, status):
    assert status_of(f"{server}/{answer}") == status


def test_no_one_listening_is_unhealthy(server):
    assert status_of("http://127.0.0.1:1/200") == 1
