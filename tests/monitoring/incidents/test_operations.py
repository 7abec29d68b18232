"""Failed tasks and days that are not measured, with a real database and receivers that fail."""

import datetime
from collections.abc import Iterator
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from receivers import Webhook, closed_port, mail_server, webhook, without_pauses

from conftest import Registry
from installation import Installation
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
from monitoring.incidents.test_evaluation import FIRST, day, measure, to

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")


@pytest.fixture
def home(
    tmp_path: Path, queue_url: str, unmanned: Registry, monkeypatch: pytest.MonkeyPatch
) -> Installation:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return Installation(
        values={
            "home": tmp_path / "home",
            "source": {"kind": "community"},
            "database_url": queue_url,
            "mlflow_url": unmanned.copy(tmp_path / "mlflow"),
            "alert_timeout": 0.5,
        }
    )


@pytest.fixture
def server() -> Iterator[Webhook]:
    with webhook() as running:
        yield running


@pytest.fixture
def resources(home: Installation, server: Webhook) -> Iterator[Resources]:
    with open_resources(home.but(**to(server)).settings) as opened:
        yield opened


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


def test_a_late_day_is_one_alert_and_one_recovery(resources: Resources, server: Webhook) -> None:
    measure(resources, 0, 0.9)
    assert check(resources, 1) == Heartbeat(due=day(0), measured=day(0))
    assert not check(resources, 2, hour=11).is_late  # the day before is not due yet
    for number in (2, 2, 3):
        assert check(resources, number).is_late
    (opened,) = server.requests
    assert opened.json["title"] == (
        "[critical] 6 January 2026 is not measured; the last measured day is 5 January 2026"
    )
    assert opened.json["links"] == {
        "Modwatch": "http://airflow:8080/modwatch-ops/",
        "Airflow": "http://airflow:8080/dags/score_comments/runs",
        "MLflow": "http://airflow:8080/modwatch-ops/days/2026-01-05/mlflow",
    }
    (active,) = open_incidents(resources.database)
    assert (active.name, active.since) == ("heartbeat", day(1))
    measure(resources, 2, 0.9)
    assert not check(resources, 3).is_late
    assert not check(resources, 3).is_late
    assert [request.json["event"] for request in server.requests] == ["opened", "recovered"]
    assert server.requests[1].json["links"]["MLflow"].endswith("/days/2026-01-07/mlflow")
    assert open_incidents(resources.database) == []
    assert check(resources, 4).is_late
    assert len(set(server.keys)) == 3


def test_a_message_says_since_when_and_links_pages_that_exist(
    resources: Resources, server: Webhook
) -> None:
    measure(resources, 0, 0.9)
    resources.checks.save_page(day(30), "rejected")
    assert check(resources, 31).is_late
    (opened,) = server.requests
    assert opened.json["title"] == (
        "[critical] 30 days are not measured; the last measured day is 5 January 2026"
    )
    assert "Nothing is measured since 6 January 2026, " in opened.json["text"]
    assert "No task has failed" in opened.json["text"]
    assert "`modwatch repair 2026-01-06`" in opened.json["text"]
    assert opened.json["links"]["validation"].endswith(f"/days/{day(30)}/validation")
    (active,) = open_incidents(resources.database)
    assert active.since == day(1)
    assert active.headline == "Days are not measured; the last measured day is 5 January 2026"
    measure(resources, 30, 0.9)
    assert not check(resources, 31).is_late
    assert server.requests[1].json["title"] == "[critical] Recovered: 4 February 2026 is measured"
    assert "missing since 6 January 2026" in server.requests[1].json["text"]


def test_days_that_lie_ahead_do_not_hide_a_late_one(resources: Resources) -> None:
    measure(resources, 0, 0.9)
    measure(resources, 9, 0.9)  # a mistyped date
    assert check(resources, 2) == Heartbeat(due=day(1), measured=day(0))


def test_an_installation_that_never_measured_is_late(resources: Resources, server: Webhook) -> None:
    assert check(resources, 0).is_late
    assert "no day is" in server.requests[0].json["title"]


def test_without_a_database_it_is_reported_all_the_same(
    home: Installation, server: Webhook
) -> None:
    dead = f"postgresql://mod:hunter2@127.0.0.1:{closed_port()}/x"
    with open_resources(home.but(**to(server), database_url=dead).settings) as resources:
        assert check(resources, 1).is_late
    (request,) = server.requests
    assert b"hunter2" not in request.body


def test_a_channel_that_is_down_for_a_week_gets_it_in_the_end(home: Installation) -> None:
    unreachable = f"http://127.0.0.1:{closed_port()}/hook"
    down = home.but(alert_webhook_url=unreachable, alert_webhook_secret="s3cret")
    with open_resources(down.settings) as resources:
        for number in range(1, 8):
            with pytest.raises(AlertError, match="webhook"):
                check(resources, number)
    with webhook() as server, open_resources(home.but(**to(server)).settings) as resources:
        assert check(resources, 8).is_late
        (request,) = server.requests
        assert request.json["since"] == str(FIRST)


@pytest.mark.parametrize("change", [datetime.date(2026, 3, 29), datetime.date(2026, 10, 25)])
def test_clock_changes_make_no_difference(change: datetime.date) -> None:
    """Every hour of the day of the change and its neighbours, by a clock in Berlin."""
    start = datetime.datetime.combine(change, datetime.time(), datetime.UTC)
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


def test_a_failed_task_is_reported_once_whatever_many_shards_fail(
    resources: Resources, server: Webhook
) -> None:
    for _ in range(3):
        report_failure(lambda: resources.database, resources.alert_channels, FAILURE, FIRST)
    [request] = server.requests
    assert request.json["links"] == {"log": "http://airflow/log"}
    assert request.json["error"] == "LakeError"


def test_a_missing_day_is_reported_with_what_failed(resources: Resources, server: Webhook) -> None:
    measure(resources, 0, 0.9)
    report_failure(lambda: resources.database, resources.alert_channels, FAILURE, day(1))
    assert check(resources, 2).is_late
    heartbeat = server.requests[-1].json
    assert FAILURE.facts["headline"] in heartbeat["text"]
    assert "No task has failed" not in heartbeat["text"]


def test_a_failed_task_is_reported_even_when_the_database_is_down(
    home: Installation, server: Webhook
) -> None:
    dead = f"postgresql://mod:hunter2@127.0.0.1:{closed_port()}/x"
    with open_resources(home.but(**to(server), database_url=dead).settings) as resources:
        report_failure(lambda: resources.database, resources.alert_channels, FAILURE, FIRST)
    assert server.keys == [FAILURE.key]


def test_a_failed_task_is_reported_by_the_channels_that_work_when_the_database_is_down(
    home: Installation, server: Webhook
) -> None:
    mail = {"alert_mail_from": "m@example.org", "alert_mail_to": ("ops@example.org",)}
    dead = f"postgresql://mod:hunter2@127.0.0.1:{closed_port()}/x"
    unreachable = f"http://127.0.0.1:{closed_port()}/hook"
    with mail_server() as post:
        up = {**to(server), "alert_webhook_url": unreachable, "database_url": dead, **mail}
        install = home.but(**up, alert_smtp_url=f"smtp://127.0.0.1:{post.port}")
        with (
            open_resources(install.settings) as resources,
            pytest.raises(AlertError, match="webhook"),
        ):
            report_failure(lambda: resources.database, resources.alert_channels, FAILURE, FIRST)
    assert len(post.messages) == 1
