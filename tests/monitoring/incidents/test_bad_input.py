"""Days that are missing, late or delivered twice, clocks that jump, channels that are down."""

import datetime
import itertools
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from databases import as_owner
from killing import run
from receivers import closed_port, mail_server, without_pauses
from sqlalchemy import Table, update

from modwatch.common.errors import AlertError, DatabaseError
from modwatch.installation.resources import Resources, open_resources
from modwatch.monitoring.incidents.actions import (
    Action,
    history,
    open_incidents,
    record,
)
from modwatch.monitoring.incidents.delivery import deliver
from modwatch.monitoring.incidents.evaluation import active_alerts
from modwatch.monitoring.incidents.messages.alert import (
    failure_alert,
    needs_no_action,
    repair_alert,
)
from modwatch.monitoring.incidents.operations import report_failure, report_repair
from modwatch.pipeline import daily
from modwatch.review.outbox import messages as outbox
from modwatch.review.tables import incident as incident_table
from modwatch.review.tables import incident_event, outbox_message
from monitoring.incidents.evenings import FIRST, MAIL, RULES, day, heard, put, to

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

GOOD, BAD = 0.05, 0.4


def deliver_day(resources: Resources, number: int, value: float) -> int:
    """Keep the figure of a day and evaluate it, twice; return how many alerts are new."""
    put(resources, number, value)
    new = daily.raise_alerts(resources, day(number))
    assert daily.raise_alerts(resources, day(number)) == 0
    return new


def is_active(resources: Resources, number: int) -> bool:
    return bool(active_alerts(resources.lake.table("alerts", day(number))))


def test_a_bad_day_that_arrives_after_a_newer_bad_one_is_the_same_incident(resources, server):
    deliver_day(resources, 0, GOOD)
    assert deliver_day(resources, 2, BAD) == 1
    assert deliver_day(resources, 1, BAD) == 0
    assert [is_active(resources, number) for number in range(3)] == [False, True, True]
    deliver(resources.database, resources.alert_channels)
    assert heard(server) == [("opened", 2)]


def test_a_good_day_that_arrives_between_two_bad_ones_ends_the_first_incident(resources, server):
    assert deliver_day(resources, 0, BAD) == 1
    assert deliver_day(resources, 2, BAD) == 0
    put(resources, 1, GOOD)
    assert [daily.raise_alerts(resources, day(2)) for _ in range(2)] == [2, 0]
    assert [is_active(resources, number) for number in range(3)] == [True, False, True]
    deliver(resources.database, resources.alert_channels)
    assert heard(server) == [("opened", 0), ("recovered", 1), ("opened", 2)]


def test_a_clock_that_jumps_back_loses_and_repeats_nothing(resources, server, queue_url):
    """What was stored before the jump has times a year ahead."""
    deliver_day(resources, 0, BAD)
    deliver(resources.database, resources.alert_channels)
    deliver_day(resources, 1, GOOD)
    shift(queue_url, outbox_message, 365)
    deliver_day(resources, 2, BAD)
    assert deliver(resources.database, resources.alert_channels) == 2
    assert deliver(resources.database, resources.alert_channels) == 0
    assert heard(server) == [("opened", 0), ("recovered", 1), ("opened", 2)]
    (incident,) = open_incidents(resources.database)
    assert incident.since == day(2)
    assert [entry.what for entry in history(resources.database).entries] == [
        *("opened", "recovered", "opened"),
    ]


def test_no_one_can_write_what_alerts_could_not_read(resources):
    deliver_day(resources, 0, BAD)
    wrong_members = (
        [],
        {"shifted": None},
        {"shifted": {}},
        {"shifted": {"since": "2026-03-23"}},
        {"shifted": {"since": "2026-03-23", "opened": None}},
        {"shifted": {"since": "2026-02-30", "opened": "2026-03-23"}},
        {"shifted": {"since": "2026-3-23", "opened": "2026-03-23"}},
    )
    for values in ({"severity": "fatal"}, *({"members": members} for members in wrong_members)):
        change = update(incident_table).values(**values)
        refused = pytest.raises(DatabaseError, match=f"incident_{next(iter(values))}_check")
        with refused, resources.database.begin() as connection:
            connection.execute(change)


def acknowledge(resources: Resources, person: str) -> None:
    (incident,) = open_incidents(resources.database)
    record(resources.database, Action(incident=incident.name, action="acknowledge", person=person))


def acknowledged_by(resources: Resources) -> str | None:
    (incident,) = open_incidents(resources.database)
    return incident.acknowledged_by


def shift(queue_url: str, table: Table, days: int) -> None:
    """Let what is in `table` have been stored by a clock that was so many days ahead."""
    with as_owner(queue_url) as connection:
        other = table.c.created_at + datetime.timedelta(days=days)
        connection.execute(update(table).values(created_at=other))


def test_an_action_counts_for_the_incident_that_was_open(resources):
    """Though the days of the data are years ahead of the clock."""
    deliver_day(resources, 4_000, BAD)
    acknowledge(resources, "lea")
    assert acknowledged_by(resources) == "lea"
    deliver_day(resources, 4_001, GOOD)
    deliver_day(resources, 4_002, BAD)
    assert acknowledged_by(resources) is None, "it was about the incident that is over"
    acknowledge(resources, "tim")
    assert acknowledged_by(resources) == "tim"


def test_an_action_counts_after_the_incident_has_become_more_severe(resources):
    deliver_day(resources, 0, BAD)
    acknowledge(resources, "lea")
    rules = resources.settings.file("alerts.toml") or Path()
    rules.write_text(rules.read_text().replace("warning", "critical"))
    with open_resources(resources.settings) as later:
        assert deliver_day(later, 1, BAD) == 1
        (worse,) = open_incidents(later.database)
    assert (worse.severity, worse.since, worse.opened) == ("critical", day(0), day(0))
    assert worse.acknowledged_by == "lea"


@pytest.mark.parametrize(("messages", "actions"), [(0, 365), (365, 300)])
def test_actions_keep_their_place_after_the_clock_was_set_back(
    resources, queue_url, messages, actions
):
    """It ran days ahead when the messages, and when the action, were stored."""
    deliver_day(resources, 0, BAD)
    shift(queue_url, incident_event, messages)
    shift(queue_url, incident_table, messages)
    acknowledge(resources, "lea")
    shift(queue_url, incident_event, actions)
    assert acknowledged_by(resources) == "lea"
    deliver_day(resources, 1, GOOD)
    deliver_day(resources, 2, BAD)
    assert acknowledged_by(resources) is None
    acknowledge(resources, "tim")
    assert [entry.what for entry in history(resources.database).entries] == [
        *("opened", "acknowledge", "recovered", "opened", "acknowledge"),
    ]
    assert [entry.what for entry in history(resources.database, newest=2).entries] == [
        *("opened", "acknowledge"),
    ]
    (incident,) = open_incidents(resources.database)
    assert history(resources.database, incident.name, newest=2).earlier == 3


def test_a_failed_task_is_listed_for_30_days_whatever_day_it_was_about(resources, queue_url):
    failed = failure_alert(dag="d", task="t", run="r", day=FIRST, error="E", cause="c", links={})
    report_failure(lambda: resources.database, (), failed, datetime.date(2020, 1, 1))
    assert [incident.name for incident in open_incidents(resources.database)] == [failed.key]
    shift(queue_url, incident_table, -29)
    assert len(open_incidents(resources.database)) == 1
    shift(queue_url, incident_table, -2)
    assert open_incidents(resources.database) == []


def test_what_a_channel_could_not_send_for_long_is_dropped(home, server, queue_url):
    unreachable = f"http://127.0.0.1:{closed_port()}/hook"
    home = home.but(**to(server))
    with open_resources(home.but(alert_webhook_url=unreachable).settings) as resources:
        deliver_day(resources, 0, BAD)
        for _ in range(outbox.FEWEST_ATTEMPTS):
            with pytest.raises(AlertError, match="webhook"):
                deliver(resources.database, without_pauses(resources.alert_channels))
        shift(queue_url, outbox_message, -13)
        deliver_day(resources, 1, GOOD)
    with open_resources(home.settings) as resources:
        shift(queue_url, outbox_message, -2)
        assert deliver(resources.database, resources.alert_channels) == 1
    assert heard(server) == [("recovered", 1)]


DIGEST = """
[[channels]]
name = "webhook"
digest = true
"""
ROUTES = f"""{DIGEST}
[[channels]]
name = "mail"
causes = ["failure", "shifted"]
"""


def test_a_digest_channel_that_is_down_for_a_week_gets_everything_once_and_in_order(home, server):
    """Ends wait for the daily delivery; one whose beginning was not sent yet comes by itself."""
    rules = home.settings.file("alerts.toml") or Path()
    rules.write_text(RULES + ROUTES)
    values = [BAD, BAD, GOOD, GOOD, BAD, GOOD, BAD]
    with mail_server() as post:
        both = home.but(**to(server), alert_smtp_url=f"smtp://127.0.0.1:{post.port}{MAIL}")
        with open_resources(both.settings) as resources:
            deliver_day(resources, 0, BAD)
            assert daily.deliver_alerts(resources, day(0)) == 2
        unreachable = f"http://127.0.0.1:{closed_port()}/hook"
        with open_resources(both.but(alert_webhook_url=unreachable).settings) as resources:
            down = without_pauses(resources.alert_channels)
            for number, value in enumerate(values[1:], 1):
                deliver_day(resources, number, value)
                for _ in range(2 if number >= 2 else 1):
                    with suppress(AlertError):
                        deliver(resources.database, down, digest_of=day(number))
        assert len(post.messages) == 5
        with open_resources(both.settings) as resources:
            assert deliver(resources.database, resources.alert_channels, digest_of=day(7)) == 4
            assert deliver(resources.database, resources.alert_channels, digest_of=day(7)) == 0
            assert daily.deliver_alerts(resources, day(8)) == 0
    assert heard(server) == [
        ("opened", 0),
        ("digest", 2),
        ("opened", 4),
        ("recovered", 5),
        ("opened", 6),
    ]
    assert [one["day"] for one in server.requests[1].json["messages"]] == [str(day(2))]
    assert len(set(server.keys)) == len(server.keys)


def test_an_incident_that_becomes_critical_ends_where_it_was_heard(home, server):
    """The webhook receives what is critical, and the end of that alone."""
    path = home.settings.file("alerts.toml") or Path()
    route = '[[channels]]\nname = "webhook"\nseverity = "critical"\n'
    with mail_server() as post:
        both = home.but(**to(server), alert_smtp_url=f"smtp://127.0.0.1:{post.port}{MAIL}")
        days = [
            ("warning", BAD),
            ("critical", BAD),
            ("warning", GOOD),
            ("warning", BAD),
            ("warning", GOOD),
        ]
        for number, (severity, value) in enumerate(days):
            path.write_text(RULES.replace("warning", severity) + route)
            with open_resources(both.settings) as resources:
                deliver_day(resources, number, value)
                daily.deliver_alerts(resources, day(number))
    assert heard(server) == [("escalated", 1), ("recovered", 2)]
    assert len(post.messages) == 5


def test_a_digest_has_what_ended_in_a_day_and_comes_once(home, server):
    (home.settings.file("alerts.toml") or Path()).write_text(RULES + DIGEST)
    with open_resources(home.but(**to(server)).settings) as resources:
        failed = [
            failure_alert(dag="d", task=task, run="r", day=day(0), error="E", cause="c", links={})
            for task in ("one", "two")
        ]
        for failure in failed:
            report_failure(lambda: resources.database, resources.alert_channels, failure, day(0))
        deliver_day(resources, 0, BAD)
        deliver(resources.database, resources.alert_channels)
        assert [event for event, _ in heard(server)] == ["failed", "failed", "opened"]
        for task in ("one", "two"):
            repair = repair_alert(dag="d", task=task, run="r", day=day(0))
            report_repair(resources.database, resources.alert_channels, repair, day(0))
        deliver_day(resources, 1, GOOD)
        assert deliver(resources.database, resources.alert_channels) == 0
        with ThreadPoolExecutor() as pool:  # two runs at once
            sent = [*pool.map(lambda _: daily.deliver_alerts(resources, day(1)), range(2))]
        assert sorted(sent) == [0, 1]
        (digest,) = (request.json for request in server.requests[3:])
        assert digest["title"] == "[info] 6 January 2026: nothing to do about 3 messages"
        assert digest["text"].count("Recovered") == 3
        assert [one["event"] for one in digest["messages"]] == ["recovered"] * 3
        deliver_day(resources, 2, BAD)
        deliver_day(resources, 3, GOOD)
        assert daily.deliver_alerts(resources, day(1)) == 2, "opened and recovered, in order"
        assert heard(server)[-2:] == [("opened", 2), ("recovered", 3)]


@pytest.mark.parametrize("dies_at", [2, pytest.param(None, marks=pytest.mark.soak)])
def test_a_digest_that_was_cut_off_is_made_and_sent_once(home, server, dies_at):
    (home.settings.file("alerts.toml") or Path()).write_text(RULES + DIGEST)
    home = home.but(**to(server))
    with open_resources(home.settings) as resources:
        deliver_day(resources, 0, BAD)
        daily.deliver_alerts(resources, day(0))
        deliver_day(resources, 1, GOOD)
        for at in [dies_at] if dies_at else itertools.count(1):
            if not run(["run", "deliver_alerts", str(day(1))], home.env, dies_at=at).killed:
                break
        assert daily.deliver_alerts(resources, day(1)) == (1 if dies_at else 0)
    digests = [request for request in server.requests if request.json["event"] == "digest"]
    assert len({request.body for request in digests}) == 1
    assert heard(server)[0] == ("opened", 0)
    assert len(server.requests) == 1 + len(digests)


def test_a_digest_does_not_hold_up_what_is_to_be_done():
    repaired = {"event": "recovered", "severity": "critical", "unrepaired": []}
    assert needs_no_action(repaired)
    assert not needs_no_action({**repaired, "unrepaired": ["2026-03-24"]})
    assert needs_no_action({"event": "opened", "severity": "info"})
    for event, severity in (("question", "info"), ("digest", "info"), ("opened", "warning")):
        assert not needs_no_action({"event": event, "severity": severity})
