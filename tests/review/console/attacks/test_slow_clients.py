"""Somebody who opens connections and does not say, or read, what is due."""

import contextlib
import resource
import socket
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from modwatch.common import connections
from modwatch.review.console.request_context import ConsoleOptions
from review.console.visiting import serving

#: Shorter than in earnest, so that the tests are.
HEADER, BODY, READ = 1.0, 2.0, 2.0


@pytest.fixture(autouse=True)
def short(monkeypatch):
    for name, seconds in (("HEADER", HEADER), ("BODY", BODY), ("READ", READ)):
        monkeypatch.setattr(connections, f"{name}_SECONDS", seconds)


@pytest.fixture
def at(engine):
    with serving(engine) as url:
        yield place(url)


def place(url: str) -> tuple[str, int]:
    return urlsplit(url).hostname or "", urlsplit(url).port or 0


@contextlib.contextmanager
def opened(at: tuple[str, int], n: int, given: bytes) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        made = []
        for _ in range(n):
            made.append(stack.enter_context(socket.create_connection(at, timeout=10)))
            with contextlib.suppress(ConnectionError):
                made[-1].sendall(given)
        yield made


def still_open(sockets: list[socket.socket]) -> int:
    """Return how many the server has not closed; nothing more is sent."""
    count = 0
    for item in sockets:
        item.setblocking(False)
        with contextlib.suppress(ConnectionError):
            try:
                while item.recv(65_536):
                    pass
            except BlockingIOError:
                count += 1
    return count


def answers(at: tuple[str, int]) -> bool:
    return httpx.get(f"http://{at[0]}:{at[1]}/livez", timeout=5).status_code == 200


def until_closed(client: socket.socket, given: bytes, pause: float) -> float:
    """Return after how many seconds of saying it again and again the server closed; at most 20."""
    began = time.monotonic()
    with contextlib.suppress(ConnectionError):
        while time.monotonic() - began < 20:
            client.sendall(given)
            time.sleep(pause)
    return time.monotonic() - began


HALVES = {
    "nothing": b"",
    "half a line": b"GET /liv",
    "half the headers": b"POST /login HTTP/1.1\r\nHost: a\r\nX-A: b\r\n",
    "half the body": b"POST /login HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\n\r\ncsrf=",
    "one whole and half the next": b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\nGET /livez HTTP/1.1\r\n",
    "refused before its body": b"POST /nowhere HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx",
}


def test_half_a_request_is_closed(at):
    with contextlib.ExitStack() as stack:
        sockets = {
            name: stack.enter_context(opened(at, 5, expected)) for name, expected in HALVES.items()
        }
        (dripping,) = stack.enter_context(opened(at, 1, b"GET /livez HTTP/1.1\r\nX: "))
        assert answers(at)
        began = time.monotonic()
        assert until_closed(dripping, b"x", 0.1) < HEADER + 2  # a byte at a time buys no time
        time.sleep(max(0.0, began + max(HEADER, BODY) + 1.5 - time.monotonic()))
        assert {name: still_open(item) for name, item in sockets.items()} == dict.fromkeys(
            HALVES, 0
        )


def test_honest_clients_keep_their_connection(at):
    with httpx.Client(base_url=f"http://{at[0]}:{at[1]}") as client:
        for _ in range(4):
            assert client.get("/livez").status_code == 200
            time.sleep(HEADER / 2)

        # A body in parts, slower than headers may be.
        def parts() -> Iterator[bytes]:
            for part in (b"csrf=", b"x", b"&token=x"):
                time.sleep(HEADER * 0.6)
                yield part

        form = {"Content-Type": "application/x-www-form-urlencoded"}
        assert client.post("/login", content=parts(), headers=form).status_code == 403


def test_whoever_does_not_read_is_closed(at):
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        client.settimeout(20)
        client.connect(at)
        request = b"GET /static/console.js HTTP/1.1\r\nHost: a\r\n\r\n"
        assert until_closed(client, request * 10, 0.0) < 15


@pytest.mark.parametrize(
    ("limit", "proxies", "most"),
    [
        ("MOST_OF_AN_ADDRESS", [], 20),
        ("MOST_CONNECTIONS", ["127.0.0.1"], 20),  # as a proxy, whose number has no limit of its own
        ("MOST_OF_AN_ADDRESS", ["127.0.0.0/8"], 40),
    ],
)
def test_neither_one_address_nor_many_use_up_the_process(engine, monkeypatch, limit, proxies, most):
    monkeypatch.setattr(connections, limit, 20)
    monkeypatch.setattr(connections, "HEADER_SECONDS", 60.0)
    options = ConsoleOptions(trusted_proxies=tuple(proxies))
    with serving(engine, options) as url, opened(place(url), 40, b"GET /liv") as sockets:
        assert answers(place(url))  # the newest request finds room
        left = still_open(sockets)
        assert left == 40 if most == 40 else left <= most
        # Whoever waits longest makes room.
        oldest, newest = still_open(sockets[:10]), still_open(sockets[-10:])
        assert oldest == newest == 10 if most == 40 else oldest < 5 < newest


def test_there_are_files_for_as_many():
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > connections.MOST_CONNECTIONS
