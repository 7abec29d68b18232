"""Signed requests against a real server that misbehaves."""

import logging
import socket
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate

import pytest
from receivers import closed_port, webhook
from standardwebhooks import Webhook, WebhookVerificationError
from standardwebhooks.webhooks import EmptyWebhookSecretError

from modwatch.common.webhooks import Answer, post, signer

NOW = 1_767_600_000.9


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def ask(url: str, timeout: float = 0.3) -> Answer:
    return post(url, b'{"a": 1}', secret="s3cret", key="k-1", timeout=timeout, clock=lambda: NOW)


@pytest.mark.parametrize("secret", ["s3cret", f"whsec_{b64encode(b's3cret').decode()}"])
def test_the_library_verifies_a_request(secret):
    with webhook() as server:
        post(server.url, b'{"a": 1}', secret=secret, key="k-1", timeout=0.3)
    [request] = server.requests
    assert request.headers["webhook-id"] == "k-1"
    receiver = Webhook(secret) if secret.startswith("whsec_") else Webhook(secret.encode())
    assert receiver.verify(request.body, dict(request.headers)) == {"a": 1}
    changes = [(b'{"a": 2}', {}), (request.body, {"webhook-id": "k-2"})]
    for body, headers in changes:
        with pytest.raises(WebhookVerificationError):
            receiver.verify(body, {**request.headers, **headers})
    with pytest.raises(WebhookVerificationError):
        Webhook(b"another").verify(request.body, dict(request.headers))


def test_a_request_is_fresh_for_five_minutes():
    with webhook() as server:
        for late in (-400, 400):
            clock = (lambda moment: lambda: moment)(time.time() + late)
            post(server.url, b"{}", secret="s3cret", key="k", timeout=0.3, clock=clock)
        assert int(server.requests[-1].headers["webhook-timestamp"]) == int(clock())
    for request in server.requests:
        with pytest.raises(WebhookVerificationError, match="timestamp"):
            Webhook(b"s3cret").verify(request.body, dict(request.headers))


@pytest.mark.parametrize("secret", ["", "whsec_"])
def test_an_empty_secret_signs_nothing(secret):
    with pytest.raises(EmptyWebhookSecretError):
        signer(secret)


@pytest.mark.parametrize("status", [200, 204, 300, 400, 503])
def test_every_answer_but_success_is_a_problem(status):
    with webhook(status) as server:
        answer = ask(server.url)
    problem = {} if status < 300 else {"problem": f"answer {status}"}
    assert answer == Answer(status=status, **problem)


@pytest.mark.parametrize("status", [301, 308])
def test_a_redirect_is_an_answer_and_not_followed(status):
    with webhook() as elsewhere:
        head = f"HTTP/1.1 {status} Moved\r\nLocation: {elsewhere.url}\r\nContent-Length: 0\r\n\r\n"
        with webhook(head.encode()) as server:
            assert ask(server.url) == Answer(status=status, problem=f"answer {status}")
    assert elsewhere.requests == []


@pytest.mark.parametrize(
    ("expected", "seconds"),
    [
        ("7", 7.0),
        ("9" * 400, 999_999_999.0),
        (formatdate(NOW + 60, usegmt=True), pytest.approx(60, abs=1)),
        (formatdate(NOW + 60).replace("-0000", ""), pytest.approx(60, abs=1)),
        (formatdate(NOW - 60, usegmt=True), 0.0),
        ("soon", None),
        ("٣", None),
    ],
)
def test_a_receiver_says_when_to_come_back(expected, seconds):
    head = f"HTTP/1.1 429 Slow\r\nRetry-After: {expected}\r\nContent-Length: 0\r\n\r\n"
    with webhook(head.encode("utf-8")) as server:
        assert ask(server.url).retry_after == seconds


@pytest.mark.parametrize(
    "answer", [b"", b"SSH-2.0-OpenSSH_9\r\n\r\n", b"HTTP/1.1 abc nonsense\r\n\r\n"]
)
def test_no_answer_is_known_from_its_kind(answer):
    with webhook(answer) as server:
        got = ask(server.url)
    assert got.status is None
    assert got.problem.isidentifier()


def test_silence_is_a_timeout_and_no_one_a_refusal():
    with webhook(None) as server:
        assert ask(server.url).problem == "TimeoutError"
    assert ask(f"http://127.0.0.1:{closed_port()}/").problem == "ConnectionRefusedError"


@contextmanager
def dripping() -> Iterator[str]:
    """A server that sends its answer byte by byte, and never comes to the end."""
    done = threading.Event()

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65_536)
            for byte in b"HTTP/1.1 200 OK\r\nX: " + b"x" * 1_000:
                if done.wait(0.05):
                    return
                try:
                    connection.send(bytes([byte]))
                except OSError:
                    return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/?token=hunter2"
        finally:
            done.set()
            thread.join(20)


def test_who_answers_byte_by_byte_is_cut_off_in_time():
    """The whole answer would take 50 seconds."""
    with dripping() as url:
        assert ask(url, timeout=0.5).problem == "TimeoutError"


def test_an_address_that_is_none_raises_nothing():
    for url in ("http://a..b/", "http://[::1/", "http://127.0.0.1:x/", "gopher:"):
        assert ask(f"{url}?token=hunter2").status is None


@pytest.mark.parametrize("answer", [500, None, b"token=hunter2\r\n\r\n"])
def test_an_answer_tells_no_secret(answer, caplog):
    caplog.set_level(logging.DEBUG)
    with webhook(answer) as server:
        logged = f"{ask(server.url)!r} {caplog.text}"
    assert "hunter2" not in logged
    assert "s3cret" not in logged
