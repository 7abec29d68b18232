"""Which channel receives which alert."""

import logging
import re
from pathlib import Path

import pytest

from modwatch.common.errors import AlertError, SettingsError
from modwatch.monitoring.incidents.apprise_channel import AppriseChannel
from modwatch.monitoring.incidents.channels import (
    Channel,
    MailChannel,
    SmtpServer,
    WebhookChannel,
    routed,
)
from modwatch.monitoring.incidents.delivery import send_directly
from modwatch.monitoring.incidents.messages.alert import Alert
from modwatch.monitoring.incidents.rules import load_routes, load_rules

OPS = (Path(__file__).parents[3] / "docs" / "ops.md").read_text()
MAIL = MailChannel(
    server=SmtpServer.from_url("smtp://127.0.0.1:9"), sender="m@x.org", recipients=("o@x.org",)
)
WEBHOOK = WebhookChannel(url="http://127.0.0.1:9", secret="s")
SLACK = AppriseChannel(url="slack://T0/B0/TOKEN/#ops")
PAGER = AppriseChannel(url="pagerduty://KEY@APIKEY")
CHANNELS = (WEBHOOK, MAIL, SLACK, PAGER)


@pytest.fixture
def route(tmp_path):
    def route(text: str, channels=CHANNELS) -> dict[str, Channel]:
        path = tmp_path / "rules.toml"
        path.write_text(text)
        found = routed(channels, load_routes(path), load_rules(path))
        return {channel.name.partition("-")[0]: channel for channel in found}

    return route


def entry(name: str, rest: str = "") -> str:
    return f'[[channels]]\nname = "{name}"\n{rest}\n'


def test_the_example_of_the_docs_is_read(route):
    (example,) = re.findall(r"<!-- channels -->\n```toml\n(.*?)```", OPS, re.DOTALL)
    found = route(example)
    assert found["pagerduty"].route.takes("failure", "critical")
    assert not found["pagerduty"].route.takes("failure", "warning")
    assert found["slack"].route.takes("volume", "info")
    assert not found["slack"].route.takes("failure", "critical")
    assert [name for name, channel in found.items() if channel.route.digest] == ["slack"]
    assert found["mail"].route.takes("audit", "info")


def test_without_routes_everything_reaches_every_channel(route):
    for channel in route("").values():
        assert channel.route.takes("audit", "info")
        assert not channel.route.digest


def test_one_of_two_channels_of_a_scheme_is_named_in_full(route, tmp_path):
    route(entry(SLACK.name, 'severity = "critical"') + entry("slack", "digest = true"), ())
    other = AppriseChannel(url="slack://T0/B0/TOKEN/#lead")
    found = routed((SLACK, other), load_routes(tmp_path / "rules.toml"), load_rules())
    assert [one.route.severity for one in found] == ["critical", "info"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (entry("slak"), "channel 'slak': unknown or repeated 'name'; choose from mail, pagerduty-"),
        (entry("mail") + entry("mail", "digest = true"), "channel 'mail': unknown or repeated"),
        (
            entry("mail", 'causes = ["volumes"]'),
            "channel 'mail': unknown or repeated 'volumes'; .*failure.*volume",
        ),
        (entry("mail", 'severity = "fatal"'), "channel 'mail': severity"),
        (entry("mail", "digests = true"), "channel 'mail': digests"),
        (entry(""), "channel '': name"),
        (
            "".join(entry(c.name, 'causes = ["volume"]') for c in CHANNELS),
            "critical alerts of .*failure.*reach no",
        ),
    ],
)
def test_a_mistake_is_refused(route, text, message):
    with pytest.raises(SettingsError, match=message):
        route(text)


def test_what_no_channel_receives_is_logged(route, caplog):
    with caplog.at_level(logging.WARNING):
        route(entry("mail", 'severity = "critical"'), (MAIL,))
    (record,) = caplog.records
    assert "audit" in record.message
    assert "failure" not in record.message
    caplog.clear()
    route(entry("mail", 'severity = "critical"'), (MAIL, WEBHOOK))
    assert caplog.records == []


def test_nobody_needs_channels_for_routes(route):
    assert route(entry("mail"), ()) == {}


def test_without_a_database_routes_hold(route):
    found = route(entry("mail", 'causes = ["volume"]'), (MAIL, WEBHOOK))
    alert = Alert(key="k", title="t", text="x", facts={"event": "failed", "severity": "critical"})
    with pytest.raises(AlertError, match="mail server"):
        send_directly([found["mail"]], alert, cause="volume")
    send_directly([found["mail"]], alert, cause="failure")
