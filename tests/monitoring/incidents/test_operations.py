"""Failed tasks and days that are not measured, with a real database and receivers that fail."""

import datetime
from zoneinfo import ZoneInfo

import pytest
from receivers import closed_port, mail_server, webhook, without_pauses

from modwatch.common.errors import AlertError
from modwatch.installation.resources import Resources, open_resources
from modwatch.monitoring.incidents.actions import open_incidents
from modwatch.monitoring.incidents.messages.alert import failure_alert
from modwatch.monitoring.incidents.operations import (
    Heartbeat,
    check_heartbeat,
    due_day,
    report_failure,
)
from monitoring.incidents.evenings import FIRST, MAIL, day, measure, to

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")


def check(resources: Resources, number: int, hour: int = 13) -> Heartbeat:
    """Check at an hour of a day."""
    now = datetime.datetime.combine(day(number), datetime.time(hour), datetime.UTC)
    return check_heartbeat(
        resources.lake,
        resources.checks,
        lambda: resources.database,
        without_pauses(resources.alert_channels),
        now=now,
        hour=12,
        airflow_url="http://airflow:8080/",
    )


def test_a_late_day_is_one_alert_and_one_recovery(by_defaults, server):
    measure(by_defaults, 0, 0.9)
    assert check(by_defaults, 1) == Heartbeat(due=day(0), measured=day(0))
    assert not check(by_defaults, 2, hour=11).is_late  # the day before is not due yet
    for number in (2, 2, 3):
        assert check(by_defaults, number).is_late
    (opened,) = server.requests
    assert opened.json["title"] == (
        "[critical] 6 January 2026 is not measured; the last measured day is 5 January 2026"
    )
    assert opened.json["links"] == {
        "Modwatch": "http://airflow:8080/modwatch-ops/",
        "Airflow": "http://airflow:8080/dags/score_comments/runs",
        "MLflow": "http://airflow:8080/modwatch-ops/days/2026-01-05/mlflow",
    }
    (active,) = open_incidents(by_defaults.database)
    assert (active.name, active.since) == ("heartbeat", day(1))
    measure(by_defaults, 2, 0.9)
    assert not check(by_defaults, 3).is_late
    assert not check(by_defaults, 3).is_late
    assert [request.json["event"] for request in server.requests] == ["opened", "recovered"]
    assert server.requests[1].json["links"]["MLflow"].endswith("/days/2026-01-07/mlflow")
    assert open_incidents(by_defaults.database) == []
    assert check(by_defaults, 4).is_late
    assert len(set(server.keys)) == 3


def test_a_message_says_since_when_and_links_pages_that_exist(by_defaults, server):
    measure(by_defaults, 0, 0.9)
    by_defaults.checks.save_page(day(30), "rejected")
    assert check(by_defaults, 31).is_late
    (opened,) = server.requests
    assert opened.json["title"] == (
        "[critical] 30 days are not measured; the last measured day is 5 January 2026"
    )
    assert "Nothing is measured since 6 January 2026, " in opened.json["text"]
    assert "No task has failed" in opened.json["text"]
    assert "`modwatch repair 2026-01-06`" in opened.json["text"]
    assert opened.json["links"]["validation"].endswith(f"/days/{day(30)}/validation")
    (active,) = open_incidents(by_defaults.database)
    assert active.since == day(1)
    assert active.headline == "Days are not measured; the last measured day is 5 January 2026"
    measure(by_defaults, 30, 0.9)
    assert not check(by_defaults, 31).is_late
    assert server.requests[1].json["title"] == "[critical] Recovered: 4 February 2026 is measured"
    assert "missing since 6 January 2026" in server.requests[1].json["text"]


def test_days_that_lie_ahead_do_not_hide_a_late_one(by_defaults):
    measure(by_defaults, 0, 0.9)
    measure(by_defaults, 9, 0.9)  # a mistyped date
    assert check(by_defaults, 2) == Heartbeat(due=day(1), measured=day(0))


def test_an_installation_that_never_measured_is_late(by_defaults, server):
    assert check(by_defaults, 0).is_late
    assert "no day is" in server.requests[0].json["title"]


def test_a_channel_that_is_down_for_a_week_gets_it_in_the_end(with_defaults):
    unreachable = f"http://127.0.0.1:{closed_port()}/hook"
    down = with_defaults.but(alert_webhook_url=unreachable, alert_webhook_secret="s3cret")
    with open_resources(down.settings) as resources:
        for number in range(1, 8):
            with pytest.raises(AlertError, match="webhook"):
                check(resources, number)
    with webhook() as server, open_resources(with_defaults.but(**to(server)).settings) as resources:
        assert check(resources, 8).is_late
        (request,) = server.requests
        assert request.json["since"] == str(FIRST)


def test_clock_changes_make_no_difference():
    """Every hour of the days around the change, by a clock in Berlin."""
    start = datetime.datetime(2026, 3, 29, tzinfo=datetime.UTC)
    for number in range(-24, 48):
        utc = start + datetime.timedelta(hours=number)
        assert due_day(utc.astimezone(ZoneInfo("Europe/Berlin")), 6) == due_day(utc, 6)
        assert (utc.date() - due_day(utc, 6)).days == (1 if utc.hour >= 6 else 2)


# Failed tasks


FAILURE = failure_alert(
    dag="score_comments",
    task="score_shard",
    run="backfill__2026-01-05",
    day=FIRST,
    error="LakeError",
    cause="the lake cannot be read",
    links={"log": "http://airflow/log"},
)


def test_a_failed_task_is_reported_once_whatever_many_shards_fail(resources, server):
    for _ in range(3):
        report_failure(lambda: resources.database, resources.alert_channels, FAILURE, FIRST)
    [request] = server.requests
    assert request.json["links"] == {"log": "http://airflow/log"}
    assert request.json["error"] == "LakeError"


def test_a_missing_day_is_reported_with_what_failed(by_defaults, server):
    measure(by_defaults, 0, 0.9)
    report_failure(lambda: by_defaults.database, by_defaults.alert_channels, FAILURE, day(1))
    assert check(by_defaults, 2).is_late
    heartbeat = server.requests[-1].json
    assert FAILURE.facts["headline"] in heartbeat["text"]
    assert "No task has failed" not in heartbeat["text"]


def test_without_a_database_all_is_reported_by_the_channels_that_work(with_defaults, server):
    dead = f"postgresql://mod:hunter2@127.0.0.1:{closed_port()}/x"
    home = with_defaults.but(**to(server), database_url=dead)
    with open_resources(home.settings) as resources:
        assert check(resources, 1).is_late
        report_failure(lambda: resources.database, resources.alert_channels, FAILURE, FIRST)
    assert server.keys[1:] == [FAILURE.key]
    assert b"hunter2" not in server.requests[0].body
    unreachable = f"http://127.0.0.1:{closed_port()}/hook"
    with mail_server() as post:
        up = home.but(alert_smtp_url=f"smtp://127.0.0.1:{post.port}{MAIL}")
        with (
            open_resources(up.but(alert_webhook_url=unreachable).settings) as resources,
            pytest.raises(AlertError, match="webhook"),
        ):
            report_failure(lambda: resources.database, resources.alert_channels, FAILURE, FIRST)
    assert len(post.messages) == 1
