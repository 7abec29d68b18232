"""Alerts from tables to receivers, with a real database and servers that fail in every way."""

import datetime
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from killing import run
from receivers import Webhook, closed_port, mail_server, webhook
from sqlalchemy import func, select

from installation import Installation, table_rows
from modwatch.common.errors import AlertError
from modwatch.data.lake.schemas import DRIFT
from modwatch.installation.resources import Resources, open_resources
from modwatch.monitoring.incidents.actions import open_incidents
from modwatch.monitoring.incidents.delivery import deliver
from modwatch.monitoring.incidents.evaluation import active_alerts
from modwatch.monitoring.incidents.messages.incidents import ActiveAlert
from modwatch.monitoring.publishing.description import alert_tag
from modwatch.pipeline import daily
from modwatch.review.tables import incident, incident_event, outbox_message
from monitoring.incidents.evenings import MAIL, day, judge, put, to

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

STORED = (incident, incident_event, outbox_message)


def events(server: Webhook) -> list[tuple[str, str]]:
    return [(request.json["event"], request.json["day"]) for request in server.requests]


def active_on(resources: Resources, when: datetime.date) -> tuple[ActiveAlert, ...]:
    return active_alerts(resources.lake.table("alerts", when))


def test_one_incident_is_one_alert_and_one_recovery(resources, server):
    values = [0.1, 0.3, 0.31, 0.2, 0.05, 0.12]
    posted = []
    for number, value in enumerate(values):
        put(resources, number, value)
        posted.append(judge(resources, number))
        assert judge(resources, number) == (0, 0)  # cleared and run again
    assert posted == [(0, 0), (1, 1), (0, 0), (0, 0), (1, 1), (0, 0)]
    assert events(server) == [("opened", "2026-01-06"), ("recovered", "2026-01-09")]
    assert server.keys == [
        "shifted[prob,fixed]/2026-01-06/1-opened",
        "shifted[prob,fixed]/2026-01-06/2-recovered",
    ]


def test_an_alert_says_what_where_since_when_and_where_to_look(resources, server, caplog):
    caplog.set_level(logging.DEBUG)
    put(resources, 0, 0.31)
    judge(resources, 0)
    [request] = server.requests
    payload = request.json
    assert payload["title"] == (
        "[warning] Shifted (prob, against the fixed reference), since 5 January 2026"
    )
    assert payload["text"].splitlines() == [
        "The population stability index (scores, against the fixed reference) is 0.31 "
        "(95% CI 0.26 to 0.36, n = 500); threshold: lower bound > 0.2.",
        "Opened on 5 January 2026; it began on 5 January 2026.",
        "Look at: Look at the scores.",
    ]
    assert payload["figure"]["value"] == 0.31
    assert "searchFilter=tags.day%20%3D%20%272026-01-05%27" in payload["links"]["MLflow"]
    pages = {"Modwatch", "MLflow", "validation", "review queue", "Airflow"}
    assert set(payload["links"]) == pages
    assert payload["links"]["validation"].endswith("/modwatch-ops/days/2026-01-05/validation")
    assert "Alert raised" in caplog.text
    assert "s3cret" not in caplog.text
    assert "hunter2" not in caplog.text


def test_an_incident_has_one_first_day_everywhere_although_late_values_move_it(resources, server):
    for number, value in enumerate([0.1, 0.3]):
        put(resources, number, value)
        judge(resources, number)
    put(resources, 0, 0.3)  # the day before was bad, too, as labels say later
    put(resources, 2, 0.3)
    judge(resources, 2)

    [message] = server.requests
    [shown] = open_incidents(resources.database)
    told = datetime.date.fromisoformat(message.json["since"])
    assert [told, shown.since] == [day(1), day(1)]
    assert [alert.since for n in (1, 2) for alert in active_on(resources, day(n))] == [told, told]

    put(resources, 3, 0.05)
    judge(resources, 3)
    assert [alert.since for alert in active_on(resources, day(2))] == [told], "when it is over, too"


def test_an_alert_about_scores_names_the_segment_that_most_of_it_is_in(resources, server):
    sentence = "platform=forum: flagged 8.0 % → 37.0 %, n = 1,240, 92 % of the shift"
    segment = {
        **{"dt": day(1), "metric": "segment_flagged", "feature": "platform=forum"},
        **{"reference": "trailing", "value": 0.06, "low": 0.05, "high": 0.07, "n": 1_240},
        **{"reference_n": 17_000, "status": "ok", "reason": sentence},
    }
    put(resources, 0, 0.05)
    judge(resources, 0)
    put(resources, 1, 0.5)
    rows = [pa.RecordBatch.from_pylist([segment], schema=DRIFT)]
    resources.lake.replace("drift", day(1), rows, metric="segment_flagged")
    judge(resources, 1)
    payload = server.requests[0].json
    assert payload["text"].endswith(f"Most of it: {sentence}.")
    assert (payload["segment"]["name"], payload["segment"]["effect"]) == ("platform=forum", 0.06)
    assert [alert.segment for alert in active_on(resources, day(1))] == [sentence]
    put(resources, 2, 0.05)
    judge(resources, 2)
    assert "Most of it" not in server.requests[1].json["text"], "the recovery names no segment"
    put(resources, 3, 0.5)
    judge(resources, 3)
    assert "Most of it" not in server.requests[2].json["text"], "none stands out"


def test_what_stands_is_kept_by_day_for_the_days_run(resources):
    for number, value in enumerate([0.1, 0.3, None, 0.05]):
        put(resources, number, value)
    daily.raise_alerts(resources, day(3))
    assert [alert_tag(active_on(resources, day(n))) for n in range(4)] == [
        *("none", "warning: Shifted (prob, against the fixed reference)"),
        *("warning: Shifted (prob, against the fixed reference)", "none"),
    ]  # fmt: skip
    [standing] = active_on(resources, day(1))
    assert standing.description.startswith("The population stability index (scores, ")
    assert standing.since == day(1)
    [unknown] = active_on(resources, day(2))
    assert "could not be estimated" in unknown.description


def test_nothing_is_written_again_that_has_not_changed(resources):
    put(resources, 0, 0.3)
    daily.raise_alerts(resources, day(0))
    before = table_rows(resources.lake, "alerts")
    log = Path(resources.settings.lake_root) / "alerts" / "_delta_log"
    versions = sorted(log.iterdir())
    daily.raise_alerts(resources, day(0))
    assert table_rows(resources.lake, "alerts") == before
    assert sorted(log.iterdir()) == versions


def test_a_day_that_is_repaired_takes_its_incident_back_but_not_silently(resources, server):
    put(resources, 0, 0.3)
    judge(resources, 0)
    put(resources, 0, 0.26)  # weaker, and beyond the bound all the same
    put(resources, 1, 0.15)
    assert judge(resources, 1) == (0, 0)
    put(resources, 0, 0.05)
    assert judge(resources, 1) == (1, 1)
    assert events(server)[-1] == ("withdrawn", "2026-01-06")
    assert "do not meet the condition" in server.requests[-1].json["text"]
    assert active_on(resources, day(0)) == ()
    put(resources, 0, 0.3)
    assert judge(resources, 1) == (1, 1)
    assert server.keys[-1] == "shifted[prob,fixed]/2026-01-05/3-opened"


def test_an_earlier_day_run_again_takes_nothing_later_back(resources, server):
    for number, value in enumerate([0.3, 0.05, 0.3]):
        put(resources, number, value)
        judge(resources, number)
    assert judge(resources, 0) == (0, 0)
    assert judge(resources, 1) == (0, 0)
    assert len(server.requests) == 3


def test_without_tables_there_is_nothing_to_tell(by_defaults):
    assert judge(by_defaults, 0) == (0, 0)
    assert active_on(by_defaults, day(0)) == ()


def test_a_rule_that_is_gone_closes_what_it_opened(resources, home, server):
    put(resources, 0, 0.3)
    judge(resources, 0)
    (home.settings.file("alerts.toml") or Path()).write_text("keep_defaults = false")
    with open_resources(resources.settings) as later:
        assert judge(later, 1) == (1, 1)
        assert judge(later, 1) == (0, 0)
    assert server.requests[-1].json["event"] == "withdrawn"
    assert "The rule was removed" in server.requests[-1].json["text"]


# Receivers that fail


def test_a_channel_that_is_down_gets_it_later_and_the_other_not_twice(home, server):
    both = home.but(**to(server))
    down = f"smtp://127.0.0.1:{closed_port()}{MAIL}"
    with open_resources(both.but(alert_smtp_url=down).settings) as resources:
        put(resources, 0, 0.3)
        daily.raise_alerts(resources, day(0))
        with pytest.raises(AlertError, match=r"mail server.*ConnectionRefusedError"):
            deliver(resources.database, resources.alert_channels)
    assert events(server) == [("opened", "2026-01-05")]
    with mail_server() as post:
        up = f"smtp://127.0.0.1:{post.port}{MAIL}"
        with open_resources(both.but(alert_smtp_url=up).settings) as resources:
            assert deliver(resources.database, resources.alert_channels) == 1
            assert deliver(resources.database, resources.alert_channels) == 0
    assert len(post.messages) == len(server.requests) == 1
    assert "Shifted" in post.messages[0]


def test_a_refused_alert_holds_up_its_own_series_only(home):
    with webhook(400) as server, open_resources(home.but(**to(server)).settings) as resources:
        put(resources, 0, 0.3)
        daily.raise_alerts(resources, day(0))
        put(resources, 1, 0.05)
        daily.raise_alerts(resources, day(1))
        put(resources, 2, 0.3, feature="uncertainty")
        daily.raise_alerts(resources, day(2))
        with pytest.raises(AlertError, match="answer 400"):
            deliver(resources.database, resources.alert_channels)
        assert server.keys == [
            "shifted[prob,fixed]/2026-01-05/1-opened",
            "shifted[uncertainty,fixed]/2026-01-07/1-opened",
        ]
        assert deliver(resources.database, resources.alert_channels) == 2  # and then in order
        assert [event for event, _ in events(server)[2:]] == ["opened", "recovered"]


def test_a_receiver_that_is_down_is_not_asked_for_every_alert(home):
    with (
        webhook(*[500] * 9) as server,
        open_resources(home.but(**to(server)).settings) as resources,
    ):
        for number, feature in enumerate(("prob", "uncertainty", "language")):
            put(resources, number, 0.3, feature=feature)
        assert daily.raise_alerts(resources, day(2)) == 3
        with pytest.raises(AlertError, match="answer 500"):
            deliver(resources.database, resources.alert_channels)
        assert len(server.requests) == 3  # attempts with one alert


def test_what_was_raised_without_a_channel_is_not_sent_later(home, server):
    with open_resources(home.settings) as resources:
        put(resources, 0, 0.3)
        assert judge(resources, 0) == (1, 0)
    with open_resources(home.but(**to(server)).settings) as resources:
        assert judge(resources, 0) == (0, 0)
    assert server.requests == []


def test_mlflow_down_holds_up_no_alert(home, server):
    dead = f"http://ops:hunter2@127.0.0.1:{closed_port()}"
    with open_resources(home.but(**to(server), mlflow_url=dead).settings) as resources:
        put(resources, 0, 0.3)
        assert judge(resources, 0) == (1, 1)
    assert server.requests[0].json["links"]["MLflow"] == dead.replace("ops:hunter2@", "")


def test_killed_between_two_channels(home, server):
    """Killed for good while the second waits: each gets every alert, under one key."""
    with mail_server() as post:
        post.says["EHLO"] = [None]  # silence: the process is killed while it waits
        url = f"smtp://127.0.0.1:{post.port}{MAIL}"
        killed = home.but(**to(server), alert_smtp_url=url)
        with open_resources(killed.settings) as resources:
            put(resources, 0, 0.3)
            daily.raise_alerts(resources, day(0))
        arguments = ["run", "deliver_alerts", str(day(0))]
        assert run(arguments, killed.env, until=lambda: not post.says["EHLO"]).killed
        with open_resources(killed.settings) as resources:
            assert deliver(resources.database, resources.alert_channels) == 1
            assert deliver(resources.database, resources.alert_channels) == 0
    assert len(post.messages) == len(server.keys) == 1


def stored(resources: Resources) -> tuple[int, int, int]:
    """Count incidents, their events and the messages about them."""
    counts = (select(func.count()).select_from(table) for table in STORED)
    with resources.database.connect() as connection:
        first, second, third = (connection.execute(count).scalar_one() for count in counts)
    return first, second, third


def evaluated(killed: Installation, dies_at: int) -> bool:
    """Evaluate in a process that may be killed; return whether it was."""
    return run(["run", "raise_alerts", str(day(0))], killed.env, dies_at=dies_at).killed


def test_killed_while_evaluating(home, server):
    """An incident is never without its message, and evaluating again stores neither twice."""
    killed = home.but(**to(server))
    with open_resources(killed.settings) as resources:
        put(resources, 0, 0.3)
        assert evaluated(killed, dies_at=30)  # of 35 traces, the last of which is the commit
        assert stored(resources) == (0, 0, 0)
        for _ in range(2):
            daily.raise_alerts(resources, day(0))
            assert stored(resources) == (1, 1, 1)
        assert deliver(resources.database, resources.alert_channels) == 1
    assert events(server) == [("opened", "2026-01-05")]


def test_evaluations_at_once_store_an_incident_once(home, server):
    settings = home.but(**to(server)).settings

    def evaluate(number: int) -> int:
        with open_resources(settings) as mine:
            return daily.raise_alerts(mine, day(0))

    with open_resources(settings) as resources, ThreadPoolExecutor(4) as pool:
        put(resources, 0, 0.3)
        assert sorted(pool.map(evaluate, range(4))) == [0, 0, 0, 1]
        assert stored(resources) == (1, 1, 1)
