"""What the DAG files share; the notifier with real channels and a real database."""

import datetime
import re
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import RetryAction
from receivers import webhook

from installation import Installation
from modwatch.common import errors
from modwatch.common.errors import SettingsError
from modwatch.pipeline.airflow import (
    TASK_DEFAULTS,
    TaskFailureNotifier,
    TaskRepairNotifier,
    daily_schedule,
    day_of,
    monthly_schedule,
    task_of,
)
from modwatch_lab.community import Community

DAY = datetime.datetime(2026, 1, 5, tzinfo=datetime.UTC)
WORDS = "an invented remark about a neighbour"


def context(**changes: Any) -> dict[str, Any]:
    """Return what Airflow hands to a callback, as far as it is read."""
    task = SimpleNamespace(
        dag_id="score_comments",
        task_id="score_shard",
        run_id="backfill__2026-01-05",
        map_index=3,
        start_date=DAY + datetime.timedelta(days=30),
        log_url="http://airflow/dags/score_comments/runs/1/tasks/score_shard/mapped/3",
    )
    plain = {"ti": task, "exception": ValueError(WORDS), "data_interval_start": DAY}
    return {**plain, **changes}


@pytest.fixture
def server(queue_url, tmp_path, monkeypatch):
    with webhook() as running:
        values = {
            "home": tmp_path,
            "source": {"kind": "community"},
            "database_url": queue_url,
            "alert_webhook_url": running.url,
            "alert_webhook_secret": "s3cret",
        }
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        for name, value in Installation(values=values).env.items():
            monkeypatch.setenv(name, value)
        yield running


def test_a_month_has_a_schedule_unless_the_days_end(monkeypatch, tmp_path):
    monkeypatch.setenv("MODWATCH_HOME", str(tmp_path))
    for ends in ("", "2026-01-06"):
        if ends:
            monkeypatch.setenv("MODWATCH_LAST_DAY", ends)
        given, days = monthly_schedule("0 7 1 * *"), daily_schedule("0 7 1 * *")
        assert (given["schedule"] is None) == bool(ends)
        assert given["end_date"] is None
        assert (days["end_date"] is None) != bool(ends)
        assert given["max_active_runs"] > 1 == days["max_active_runs"]


def test_every_task_tells_when_it_fails():
    [notifier] = TASK_DEFAULTS["on_failure_callback"]
    assert isinstance(notifier, TaskFailureNotifier)


def test_a_failed_task_is_reported_by_name_without_its_words(server):
    [notifier] = TASK_DEFAULTS["on_failure_callback"]
    notifier(context())
    [request] = server.requests
    assert WORDS not in request.body.decode()
    result = request.json
    assert result["title"] == (
        "[critical] score_comments.score_shard failed for 2026-01-05: ValueError, see the log"
    )
    names = ("event", "severity", "dag", "task", "run", "day", "error")
    assert [result[name] for name in names] == [
        *("failed", "critical", "score_comments", "score_shard", "backfill__2026-01-05"),
        *("2026-01-05", "ValueError"),
    ]
    assert result["links"]["log"] == context()["ti"].log_url
    assert result["links"]["Modwatch"].endswith("/modwatch-ops/")


def test_a_failed_task_is_reported_with_the_message_of_an_error_of_modwatch(server):
    error = errors.SourceError("the file 2026-01-05.csv has no column 'text'; name it")
    TaskFailureNotifier()(context(exception=error))
    text = server.requests[0].json["text"]
    assert text.splitlines() == [
        "The file 2026-01-05.csv has no column 'text'; name it.",
        "Correct the cause. Then repair the day: press *Repair* on the page Modwatch, or run "
        "`modwatch repair 2026-01-05`.",
    ]


def test_a_run_that_is_about_no_day_is_cleared(server):
    failed = context()
    failed["ti"].dag_id = "train_model"
    TaskFailureNotifier()(failed)
    [request] = server.requests
    assert request.json["key"] == "task/train_model/score_shard/backfill__2026-01-05"
    assert "clear the task" in request.json["text"]
    assert "modwatch repair" not in request.json["text"]


def test_all_shards_and_runs_of_a_day_are_one_alert_and_another_day_is_another(server):
    for number in range(3):
        shard = context()
        shard["ti"].map_index, shard["ti"].run_id = number, f"manual__{number}"
        TaskFailureNotifier()(shard)
    TaskFailureNotifier()(context(data_interval_start=DAY + datetime.timedelta(days=1)))
    assert server.keys == [
        "task/score_comments/score_shard/2026-01-05",
        "task/score_comments/score_shard/2026-01-06",
    ]


def test_another_run_of_the_day_ends_the_alert(server):
    TaskFailureNotifier()(context())
    again = repaired(tries=1)
    again["ti"].run_id = "manual__1"
    TaskRepairNotifier()(again)
    assert [request.json["event"] for request in server.requests] == ["failed", "recovered"]


def repaired(*, others: int = 0, tries: int = 4) -> dict[str, Any]:
    """Return the context of a task that succeeds; `others` of its mapped instances have failed."""
    made = context()
    made["ti"].try_number = tries
    made["ti"].get_ti_count = lambda **_: others
    return made


def test_a_repaired_task_ends_its_alert_once(server):
    TaskFailureNotifier()(context())
    [notifier] = TASK_DEFAULTS["on_success_callback"]
    notifier(repaired(others=1))  # another shard is still failed
    assert len(server.requests) == 1
    for _ in range(2):
        notifier(repaired())
    failed, recovered = (request.json for request in server.requests)
    assert recovered["event"] == "recovered"
    assert recovered["title"] == (
        "[critical] Recovered: score_comments.score_shard failed for 2026-01-05"
    )
    assert recovered["run"] == failed["run"]
    assert WORDS not in server.requests[1].body.decode()


def test_a_task_that_fails_again_after_its_repair_is_reported_again(server):
    for _ in range(2):
        TaskFailureNotifier()(context())
        TaskFailureNotifier()(context())
        TaskRepairNotifier()(repaired())
    assert [request.json["event"] for request in server.requests] == [
        *("failed", "recovered", "failed", "recovered"),
    ]
    assert len(set(server.keys)) == 4


def test_a_task_that_succeeds_sends_nothing(server):
    for tries in (1, 2):  # at once, and after a retry, of which nobody was told
        TaskRepairNotifier()(repaired(tries=tries))
    assert server.requests == []


def test_a_killed_task_has_a_text_in_place_of_an_error(server):
    TaskFailureNotifier()(context(exception=WORDS))
    assert server.requests[0].json["error"] == "an unknown error"
    assert WORDS not in server.requests[0].body.decode()


def test_a_run_without_a_day_is_of_the_day_on_which_it_ran(server):
    TaskFailureNotifier()(context(data_interval_start=None))
    assert server.requests[0].json["day"] == "2026-02-04"


def test_a_day_that_has_not_ended_is_refused():
    today = datetime.datetime.now(datetime.UTC).date()
    for day in (today, today + datetime.timedelta(days=30)):
        with pytest.raises(SettingsError, match="has not ended"):
            day_of(SimpleNamespace(partition_key=day.isoformat()), None)
    yesterday = today - datetime.timedelta(days=1)
    assert day_of(SimpleNamespace(partition_key=yesterday.isoformat()), None) == yesterday


@pytest.mark.parametrize("key", ["", "2026-1-5", "monday", "2026-02-30", "2026-01-05T00:00:00"])
def test_a_partition_that_is_no_day_is_refused_with_the_remedy(key):
    with pytest.raises(SettingsError, match="YYYY-MM-DD, as its partition key"):
        day_of(SimpleNamespace(partition_key=key), None)


@pytest.mark.parametrize(
    ("error", "action"),
    [
        (errors.LakeError(), RetryAction.DEFAULT),
        (errors.DesignError(), RetryAction.FAIL),
        (errors.RoutingOutdatedError(), RetryAction.DEFAULT),
        (errors.NoChampionError(), RetryAction.FAIL),
        (OSError(), RetryAction.DEFAULT),
    ],
)
def test_what_passes_by_itself_is_retried(error, action):
    policy = TASK_DEFAULTS["retry_policy"]
    assert policy.evaluate(error, try_number=1, max_tries=2).action is action


@pytest.mark.parametrize("fails", [False, True])
def test_the_log_of_a_task_tells_its_rows_and_its_time(monkeypatch, tmp_path, caplog, fails):
    monkeypatch.setenv("MODWATCH_HOME", str(tmp_path))

    def count(resources: Any, day: datetime.date) -> int:
        read = resources.lake.replace("landed", day, Community(comments_per_day=40).read(day))
        if fails:
            raise ValueError(WORDS)
        return read + sum(batch.num_rows for batch in resources.lake.read("landed", day))

    run = task_of(count).function
    with caplog.at_level("INFO"), pytest.raises(ValueError) if fails else nullcontext():  # noqa: PT011
        run(data_interval_start=DAY)
    [line] = [record.getMessage() for record in caplog.records if "took" in record.getMessage()]
    read = "nothing" if fails else r"landed (\d+)"
    assert re.fullmatch(
        rf"count of 2026-01-05 took \d.\d s; rows read: {read}; wrote: landed (\d+)", line
    )
    assert WORDS not in line
