"""The page on webhooks: its receiver runs, its tables say what the code does."""

import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from modwatch.common.webhooks import Answer, post
from modwatch.review.outbox import delivery
from modwatch.review.outbox.decision_events import LONGEST_PAGE, SCHEMA_VERSION, TOPIC
from modwatch.review.outbox.messages import OutboxMessage

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "webhooks.md").read_text()
EVENT, _ = (json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL))


@pytest.fixture
def receiver():
    """What the page's receiver defines."""
    [code] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)

    class Quiet(names["Receiver"]):  # type: ignore[misc]
        def log_message(self, *_: object) -> None:
            """Nothing."""

    return names | {"Receiver": Quiet}


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()
            thread.join(20)


@pytest.fixture
def tell(receiver, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving(receiver["Receiver"]) as url:

        def send(event: dict[str, Any], **changes: Any) -> Answer:
            secret = receiver["SECRET"]
            webhook = delivery.DecisionWebhook(url=url, secret=secret)
            message = OutboxMessage(
                key="k", topic=TOPIC, series="s", sequence=1, dt=EVENT["dt"], payload=event
            )
            plain: dict[str, Any] = {"secret": secret, "key": "k", "timeout": 5.0}
            if changes:
                return post(url, json.dumps(event).encode(), **(plain | changes))
            return webhook(message)

        yield send


def test_the_receiver_takes_what_is_genuine(receiver, tell):
    assert tell(EVENT) == Answer(status=204)
    assert receiver["latest"] == {("2026-01-05", "c-4711"): EVENT}


@pytest.mark.parametrize(
    "changes",
    [
        {"secret": "another"},
        {"secret": "whsec_YW5vdGhlcg=="},
        {"key": "another", "secret": "x"},
        {"clock": lambda: 0.0},
    ],
)
def test_the_receiver_refuses_what_is_forged_or_old(receiver, tell, changes):
    assert tell(EVENT, **changes).problem == "answer 401"
    assert receiver["latest"] == {}


def test_the_receiver_refuses_what_is_not_signed_at_all(receiver):
    verified = receiver["verified"]
    assert verified({}, b"{}") is None
    sent = {"webhook-id": "k", "webhook-timestamp": str(time.time())}
    for forged in ("", "v1", "v1,", "v1,é", "v1,a", "v2,AAAA", "sha256=é", "v1,AAAA v1,BBBB"):
        assert verified(sent | {"webhook-signature": forged}, b"{}") is None
    for moment in ("٣", "nan", "inf", "-1", "x", ""):
        headers = sent | {"webhook-timestamp": moment, "webhook-signature": "v1,AAAA"}
        assert verified(headers, b"{}") is None
    assert verified(sent | {"webhook-signature": "v1,AAAA"}, b"\xff") is None


def test_the_receiver_drops_repetitions_and_what_was_overtaken(receiver, tell):
    later = EVENT | {"event": "changed", "label": 0, "sequence": 2}
    for event in (EVENT, EVENT, later, EVENT):
        assert not tell(event).problem
    assert list(receiver["latest"].values()) == [later]


def test_every_field_is_explained():
    section = PAGE.partition("## The event")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == list(EVENT)
    assert EVENT["schema_version"] == SCHEMA_VERSION


def test_the_numbers_are_those_of_the_code():
    hours = delivery.DEAD_AFTER.total_seconds() / 3600
    pause = delivery.LONGEST_PAUSE.total_seconds() / 3600
    for sentence in (
        f"older than {hours:.0f} hours and was tried {delivery.FEWEST_ATTEMPTS} times",
        f"up to {pause:.0f} hour,",
        f"After {delivery.BROKEN} failures in a row",
        f"`limit` is 1 to {LONGEST_PAGE}",
    ):
        assert sentence in " ".join(PAGE.split()), f"{sentence}: mend docs/webhooks.md"


def test_links_lead_somewhere():
    for link in re.findall(r"\]\(([^)#:]+)\)", PAGE):
        assert (ROOT / "docs" / link).exists(), f"{link}: mend docs/webhooks.md"
