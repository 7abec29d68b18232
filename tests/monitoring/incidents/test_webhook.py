"""The webhook against a real server that fails in every way."""

import base64
import hmac
import json
import logging

import pytest
from receivers import closed_port, webhook

from modwatch.common.errors import AlertError, AlertRefusedError
from modwatch.monitoring.incidents.channels import Retry, WebhookChannel
from modwatch.monitoring.incidents.messages.alert import Alert

ALERT = Alert(
    key="scores_shifted[prob,fixed]/2026-01-05/1-opened",
    title="warning: scores_shifted opened",
    text="Psi 0.31.\nLook at: the scores. äöü",
    facts={"rule": "scores_shifted", "figure": {"value": 0.31, "low": None}},
    links={"MLflow": "http://mlflow"},
)
SECRET = "s3cret"


def channel(url: str, **changes: object) -> WebhookChannel:
    retry = Retry(timeout=0.3, pause=0, **changes)  # type: ignore[arg-type]
    return WebhookChannel(url=url, secret=SECRET, retry=retry, clock=lambda: 1_767_600_000.9)


def test_an_alert_arrives_whole_and_signed():
    with webhook() as server:
        channel(server.url).send(ALERT)
    [request] = server.requests
    assert request.json == {
        "key": ALERT.key,
        "title": ALERT.title,
        "text": ALERT.text,
        "links": {"MLflow": "http://mlflow"},
        "rule": "scores_shifted",
        "figure": {"value": 0.31, "low": None},
    }
    assert json.loads(request.body.decode("ascii"))["text"] == ALERT.text  # for any parser
    assert request.path == "/hook?token=hunter2"
    assert request.headers["webhook-id"] == ALERT.key
    assert request.headers["content-type"] == "application/json"
    assert request.headers["webhook-timestamp"] == "1767600000"
    # The signature as a receiver computes it, from what it got alone.
    signed = f"{ALERT.key}.1767600000.".encode() + request.body
    expected = base64.b64encode(hmac.digest(SECRET.encode(), signed, "sha256")).decode()
    assert request.headers["webhook-signature"] == f"v1,{expected}"


@pytest.mark.parametrize(
    "answers",
    [
        [503, 502],
        [None],  # silence until the other side loses retry
        [b""],  # hangs up
        [b"SSH-2.0-OpenSSH_9\r\n\r\n"],
        [b"HTTP/1.1 abc nonsense\r\n\r\n"],
    ],
)
def test_what_passes_is_tried_again_under_the_same_key(answers):
    with webhook(*answers) as server:
        channel(server.url).send(ALERT)
    assert server.keys == [ALERT.key] * (len(answers) + 1)
    assert len({request.body for request in server.requests}) == 1


def test_the_attempts_end():
    with webhook(500, None, b"garbage", 500) as server:
        with pytest.raises(AlertError, match="3 attempts"):
            channel(server.url).send(ALERT)
        assert len(server.requests) == 3


def test_no_one_at_the_address_or_no_name_is_an_error_of_the_channel():
    with pytest.raises(AlertError, match="ConnectionRefusedError") as caught:
        channel(f"http://127.0.0.1:{closed_port()}/hook?token=hunter2").send(ALERT)
    assert not isinstance(caught.value, AlertRefusedError)
    for host in ("a..b", "[::1"):
        with pytest.raises(AlertError, match="MODWATCH_ALERT_WEBHOOK_URL") as caught:
            channel(f"http://{host}/hook?token=hunter2").send(ALERT)
        assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("status", [301, 308, 400, 410, 429])
def test_a_refusal_is_not_tried_again_and_no_redirect_is_followed(status):
    with webhook() as elsewhere:
        answer = f"HTTP/1.1 {status} No\r\nLocation: {elsewhere.url}\r\nContent-Length: 0\r\n\r\n"
        with webhook(answer.encode()) as server:
            with pytest.raises(AlertRefusedError, match=f"answer {status}"):
                channel(server.url).send(ALERT)
            assert len(server.requests) == 1
        assert elsewhere.requests == []


@pytest.mark.parametrize("answer", [500, 400, None, b"token=hunter2\r\n\r\n"])
def test_no_secret_in_messages_and_logs(answer, caplog):
    caplog.set_level(logging.DEBUG)
    with webhook(*[answer] * 3) as server, pytest.raises(AlertError) as caught:
        channel(server.url).send(ALERT)
    logged = f"{caught.value!r} {caught.value.__cause__!r} {caplog.text}"
    assert "hunter2" not in logged + repr(channel(server.url))
    assert SECRET not in logged + repr(channel(server.url))
    assert caught.value.__cause__ is None


def test_a_number_that_json_has_not_is_never_sent():
    broken = Alert(key="k", title="", text="", facts={"value": float("nan")})
    with webhook() as server, pytest.raises(ValueError, match="JSON"):
        channel(server.url).send(broken)
    assert server.requests == []
