import io
import json
import logging
from dataclasses import replace

import pytest
from apprise.plugins.slack import NotifySlack
from receivers import Webhook, closed_port, webhook

from modwatch.common.errors import AlertError, AlertRefusedError, SettingsError
from modwatch.monitoring.incidents.apprise_channel import AppriseChannel
from modwatch.monitoring.incidents.channels import Retry
from modwatch.monitoring.incidents.messages.alert import Alert


def test_pauses_double_and_end():
    pauses: list[float] = []
    retry = Retry(attempts=4, pause=0.5, sleep=pauses.append)
    with pytest.raises(AlertError, match=r"no luck \(busy, 4 attempts\)"):
        retry.call(lambda: "busy", failure="no luck")
    assert pauses == [0.5, 1.0, 2.0]
    retry.call(lambda: "", failure="no luck")  # what goes well waits for nothing
    assert pauses == [0.5, 1.0, 2.0]


ALERT = Alert(
    key="scores/2026-01-05/1-opened",
    title="[critical] The scores differ",
    text="PSI is 0.31.\nMost of it: platform=<!channel> [x](http://evil).",
    facts={"event": "opened", "severity": "critical", "incident": "scores"},
    links={"MLflow": "http://mlflow"},
)
SECRET = "hunter2"


@pytest.fixture
def log():
    """What handlers of the root logger get; `caplog` listens to loggers that keep to themselves."""
    written, root = io.StringIO(), logging.getLogger()
    handler, level = logging.StreamHandler(written), root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield written
    root.removeHandler(handler)
    root.setLevel(level)


def channel(url: str) -> AppriseChannel:
    (made,) = AppriseChannel.from_urls([url], Retry(timeout=0.3, pause=0))
    return made


def address(server: Webhook) -> str:
    """Return the URL of a server as a service of Apprise that posts JSON, with secrets."""
    return server.url.replace("http://", f"json://user:{SECRET}@").partition("?")[0] + f"/{SECRET}"


def test_an_alert_arrives_with_its_severity_and_a_title_of_one_line():
    kinds = {
        ("opened", "critical"): "failure",
        ("escalated", "warning"): "warning",
        ("question", "info"): "info",
        ("recovered", "critical"): "success",
    }
    with webhook() as server:
        for event, severity in kinds:
            facts = {"event": event, "severity": severity}
            channel(address(server)).send(replace(ALERT, facts=facts))
        channel(address(server)).send(replace(ALERT, title="a\r\nBcc: thief@example.org"))
    *requests, last = [request.json for request in server.requests]
    assert [request["type"] for request in requests] == [*kinds.values()]
    assert requests[0]["title"] == f"Modwatch: {ALERT.title}"
    assert requests[0]["message"] == f"{ALERT.text}\nMLflow: http://mlflow"
    assert last["title"] == "Modwatch: a Bcc: thief@example.org"


def test_slack_shows_text_and_neither_mentions_nor_links(monkeypatch):
    with webhook(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") as server:
        monkeypatch.setattr(NotifySlack, "webhook_url", server.url.partition("?")[0])
        hostile = replace(ALERT, title="<!here> <http://evil|click>")
        channel("slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#ops").send(hostile)
    [request] = server.requests
    sent = json.dumps(request.json)
    assert "&lt;!channel&gt;" in sent
    assert "<!channel>" not in sent
    assert "<!here>" not in sent
    assert "<http://evil|click>" not in sent


@pytest.mark.parametrize("answers", [[503, 502], [429], [408], [None], [b""]])
def test_what_passes_is_tried_again(answers):
    with webhook(*answers) as server:
        channel(address(server)).send(ALERT)
    assert len(server.requests) == len(answers) + 1


@pytest.mark.parametrize("status", [301, 307, 400, 410])
def test_a_refusal_is_not_tried_again_and_no_redirect_is_followed(status):
    with webhook() as elsewhere:
        answer = f"HTTP/1.1 {status} No\r\nLocation: {elsewhere.url}\r\nContent-Length: 0\r\n\r\n"
        with webhook(answer.encode()) as server:
            with pytest.raises(AlertRefusedError, match=f"answer {status}"):
                channel(address(server)).send(ALERT)
            assert len(server.requests) == 1
        assert elsewhere.requests == []


@pytest.mark.parametrize("answer", [500, 400, None, b"token=hunter2\r\n\r\n", 200])
def test_no_secret_in_errors_names_and_logs(answer, log):
    with webhook(*[answer] * 3) as server:
        made, problem = channel(address(server)), ""
        try:
            made.send(ALERT)
        except AlertError as error:
            problem = f"{error!r} {error.__cause__!r}"
    shown = f"{problem} {made!r} {made.name} {log.getvalue()}"
    assert SECRET not in shown
    assert "PSI" not in shown


def test_a_service_that_is_down_is_an_error_of_the_channel():
    with pytest.raises(AlertError, match="no answer, 3 attempts") as caught:
        channel(f"json://127.0.0.1:{closed_port()}/{SECRET}").send(ALERT)
    assert not isinstance(caught.value, AlertRefusedError)
    assert SECRET not in str(caught.value)


def test_the_name_is_that_of_the_url_wherever_it_stands():
    urls = ["json://a/hunter2", "json://b/hunter2"]
    names = [made.name for made in AppriseChannel.from_urls([*urls, urls[0]], Retry())]
    assert len(set(names)) == len(names) == 2
    assert names[::-1] == [made.name for made in AppriseChannel.from_urls(urls[::-1], Retry())]
    assert all(name.startswith("json-") for name in names)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("slack://hunter2", "is not a valid Apprise URL"),
        ("hunter2", "is not a valid Apprise URL"),
        ("http://[hunter2", "is not a valid Apprise URL"),
        ("mailto://u:hunter2@example.org", "MODWATCH_ALERT_SMTP_URL"),
    ],
)
def test_an_impossible_url_is_refused_and_not_quoted(url, problem, log):
    with pytest.raises(
        SettingsError, match=f"entry 2 of MODWATCH_ALERT_CHANNELS.*{problem}"
    ) as caught:
        AppriseChannel.from_urls(["json://localhost", url], Retry())
    assert SECRET not in f"{caught.value!r} {log.getvalue()}"


def test_the_messages_of_an_incident_are_one_incident_in_pagerduty():
    made = channel("pagerduty://A2BEXAMPLEKEY@APIEXAMPLEKEY?action=map")
    keys = {made.service_for(replace(ALERT, key=key)).dedup for key in ("a", "b")}
    other = replace(ALERT, facts={**ALERT.facts, "incident": "quality"})
    assert len(keys) == 1
    assert made.service_for(other).dedup not in keys
