"""What is old goes, and nothing that an audit, a receiver or the daily job still needs."""

import datetime as dt
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from databases import unguarded
from lake_days import put_comments, put_scores
from posting import post
from small_audits import REQUEST, begin, plan_audit, seal
from sqlalchemy import Engine, text

from installation import MONDAY, TUESDAY
from modwatch.cli.main import main
from modwatch.common.errors import AuditError
from modwatch.data.lake.delta import Lake
from modwatch.data.lake.schemas import TABLES
from modwatch.monitoring.publishing.days import Day, save_day
from modwatch.pipeline import opinions, retention
from modwatch.review.outbox.decision_events import TOPIC
from modwatch.review.outbox.messages import OutboxMessage
from modwatch.review.people.access_tokens import issue_token
from modwatch.review.people.accounts import create_moderator
from modwatch.review.queue.intake import enqueue
from modwatch.review.queue.items import NewItem
from modwatch.settings import Settings

#: Comments of MONDAY and TUESDAY are too old then, and their scores are not.
LATER = MONDAY + dt.timedelta(days=500)


def published(lake: Lake, day: dt.date = LATER) -> None:
    save_day(lake, Day(day=day, checks="passed"))


def stored_days(lake: Lake) -> dict[str, list[dt.date]]:
    return {table: days for table in TABLES if (days := lake.days(table)) and table != "days"}


def test_days_that_are_too_old_go_and_the_last_that_is_kept_stays(small):
    published(small.lake, TUESDAY + dt.timedelta(days=400 - 1))  # the 400 days begin on TUESDAY
    for rows in (small.lake.count("comments", MONDAY), 4):
        if rows == 4:  # as when the day is run again
            put_comments(small.lake, MONDAY, 4)
        found = retention.remove_rows(small, LATER)
        assert f"comments before {TUESDAY}: days 1, rows {rows}, files 1, 0.0 MB" in found
        assert stored_days(small.lake) == {"comments": [TUESDAY], "scores": [MONDAY, TUESDAY]}
    assert "days 0" in retention.remove_rows(small, LATER)[4]


def test_a_dry_run_finds_the_same_and_changes_nothing(small):
    published(small.lake)
    before = stored_days(small.lake)
    found = retention.remove_rows(small, LATER, dry_run=True)
    assert stored_days(small.lake) == before
    assert retention.remove_rows(small, LATER) == found
    assert stored_days(small.lake) == {"scores": [MONDAY, TUESDAY]}


class Killed(Lake):
    """A lake whose process is killed at the second day that it removes."""

    def replace(self, *args: Any, **keys: Any) -> int:
        if self.traffic.written["removed"]:
            raise KeyboardInterrupt
        self.traffic.written["removed"] += 1
        return super().replace(*args, **keys)


def test_a_killed_task_leaves_what_the_next_one_removes(small):
    """And never a day without comments and without an event, which would seem a forgery."""
    seal(small)
    small.audit("small").cancel(actor="eva")
    published(small.lake)
    lake = small.lake
    vars(small)["lake"] = Killed(root=lake.root)
    with pytest.raises(KeyboardInterrupt):
        retention.remove_rows(small, LATER)
    vars(small)["lake"] = lake
    assert stored_days(lake)["comments"] == [TUESDAY]
    assert small.audit("small").verify() == []
    retention.remove_rows(small, LATER)
    assert stored_days(lake) == {"scores": [MONDAY, TUESDAY]}
    assert small.audit("small").verify() == []


def test_an_old_text_in_the_queue_goes_also_without_comments_in_the_lake(small):
    published(small.lake)
    retention.remove_rows(small, LATER)
    item = NewItem(comment_id="c1", text="private", reason="uncertainty", stratum=0, rank=1,
                   inclusion_probability=1.0, review_score=0.2, prob=0.4, uncertainty=0.24,
                   model_version="1")  # fmt: skip
    enqueue(small.database, [item], MONDAY)
    for number in (1, 0):
        found = retention.remove_rows(small, LATER)
        assert f"texts in the queue before {LATER - dt.timedelta(days=399)}: {number}" in found


@pytest.mark.parametrize("last", [None, MONDAY, TUESDAY])
def test_while_the_daily_job_stands_still_nothing_goes(small, last):
    if last:
        published(small.lake, last)
    before = stored_days(small.lake)
    retention.remove_rows(small, LATER)
    assert stored_days(small.lake) == before


def test_every_table_with_a_text_or_a_name_has_an_age():
    """All others are figures, which are kept for ever, and what must not come back."""
    personal = {"text", "comment_id", "author_id", "moderator", "annotator"}
    aged = {"erasures", *(table for tables in retention.TABLES.values() for table in tables)}
    assert aged == {name for name, schema in TABLES.items() if personal & set(schema.names)}


def test_the_period_of_an_open_audit_is_kept_and_said(small):
    """Also where comments are kept for shorter than the period is long."""
    published(small.lake)
    before = stored_days(small.lake)
    begin(small)
    found = retention.remove_rows(small, LATER)
    assert f"comments kept: days 2, {MONDAY} to {TUESDAY}: audit 'small' is open" in found
    assert stored_days(small.lake) == before
    small.audit("small").cancel(actor="eva")
    retention.remove_rows(small, LATER)
    assert stored_days(small.lake) == {"scores": [MONDAY, TUESDAY]}


def test_a_period_whose_comments_went_is_refused_with_the_setting(small):
    published(small.lake)
    retention.remove_rows(small, LATER)
    with pytest.raises(AuditError, match="MODWATCH_KEEP_COMMENTS"):
        plan_audit(small, REQUEST, actor="eva")


def test_an_audit_whose_comments_went_is_verified_as_far_as_can_be(small):
    seal(small)
    small.audit("small").cancel(actor="eva")
    published(small.lake, TUESDAY + dt.timedelta(days=400 - 1))
    retention.remove_rows(small, LATER)
    levels = {level.name: level for level in small.audit("small").levels()}
    assert [problem for level in levels.values() for problem in level.problems] == []
    assert levels["lake"].remarks == [
        "days of the period that are no longer kept (MODWATCH_KEEP_COMMENTS): "
        f"1, from {MONDAY} to {MONDAY}; the sample cannot be drawn again"
    ]
    put_scores(small.lake, TUESDAY, small.lake.table("scores", TUESDAY)["prob"].to_numpy() / 2)
    assert small.audit("small").verify()  # of a day that is kept


def test_comments_that_somebody_else_deleted_are_a_problem(small):
    seal(small)
    small.lake.replace("comments", MONDAY, [])
    [problem] = small.audit("small").verify()
    assert f"{MONDAY} has 0 comments" in problem


def age(engine: Engine, days: int) -> None:
    """Make all that is stored so far so many days older."""
    with unguarded(engine) as connection:
        for table, column in (
            ("outbox_message", "created_at"),
            ("access_token", "expires_at"),
            ("access_token", "revoked_at"),
            ("login_attempt", "failed_at"),
        ):
            connection.execute(
                text(f"UPDATE {table} SET {column} = {column} - make_interval(days => {days})")
            )


def message(series: str, sequence: int) -> OutboxMessage:
    return OutboxMessage(
        key=f"{series}/{sequence}",
        topic="incident",
        series=series,
        sequence=sequence,
        dt=MONDAY,
        payload={},
    )


def test_alerts_go_by_series_once_all_are_delivered_and_decisions_stay(small):
    database = small.database
    for series in ("fed", "waiting", "grown"):
        post(database, message(series, 1), ["webhook"] if series == "waiting" else [])
    post(database, replace(message("decided", 1), topic=TOPIC), [])
    age(database, 401)
    post(database, message("grown", 2), [])
    found = retention.remove_ended(small, LATER, dry_run=True)
    assert found == retention.remove_ended(small, LATER)
    assert found[0] == "alerts: 1"
    assert found[1] == "alerts kept: 2, of series that are not all delivered and old"
    with database.begin() as connection:
        keys = connection.scalars(text("SELECT key FROM outbox_message ORDER BY key"))
        assert [*keys] == ["decided/1", "grown/1", "grown/2", "waiting/1"]
        connection.execute(text("UPDATE outbox_delivery SET delivered_at = now()"))
    assert retention.remove_ended(small, LATER)[0] == "alerts: 1"


def test_tokens_go_when_they_ended_and_valid_ones_stay(small):
    person = create_moderator(small.database, "ann", "moderator").id
    issue_token(small.database, person, lifetime=dt.timedelta(days=1))
    issue_token(small.database, person, lifetime=dt.timedelta(days=99))
    issue_token(small.database, person)
    age(small.database, 32)
    assert retention.remove_ended(small, LATER)[2] == "sessions and access tokens: 1"


def files(lake: Lake) -> list[Path]:
    return [*Path(lake.root).glob("*/dt=*/**/*.parquet")]


def test_after_six_runs_only_live_files_are_left(small):
    published(small.lake)
    for _ in range(6):
        put_comments(small.lake, MONDAY, 4)
    for role in ("champion", "challenger"):
        put_scores(small.lake, MONDAY, pa.array([0.5, 0.75]).to_numpy(), role=role)
    before = small.lake.table("scores", MONDAY).to_pylist()
    assert retention.compact(small, LATER) == [
        f"files fewer before {LATER - dt.timedelta(days=27)}, as small ones are one: 1"
    ]
    assert small.lake.table("scores", MONDAY).to_pylist() == before
    live = sum((len(small.lake.stored(table)) for table in TABLES), 0)
    assert len(files(small.lake)) > live
    retention.vacuum(small, LATER)
    assert len(files(small.lake)) > live  # of today
    for table in TABLES:
        small.lake.vacuum(table, hours=0)
    assert len(files(small.lake)) == live


# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
@pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")
def test_the_command_lists_all_and_needs_no_day(small_home, capsys, monkeypatch):
    for name, value in small_home.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MODWATCH_MLFLOW_URL", f"sqlite:///{small_home.home / 'mlflow.db'}")
    assert main(["retention", "--dry-run"]) == 0
    listed = capsys.readouterr().out
    for word in ("landed", "comments", "annotations", "alerts", "runs in MLflow", "replaced"):
        assert f"\n{word}" in f"\n{listed}"


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"keep_landed": 13}, "KEEP_LANDED must be at least 14"),
        ({"keep_comments": 30}, "KEEP_COMMENTS must be at least 31"),
        ({"keep_comments": 50, "window_days": 28}, "KEEP_COMMENTS must be at least 56"),
        ({"keep_scores": 400}, "KEEP_SCORES must be at least 414"),
        ({"keep_runs": 13}, "KEEP_RUNS must be at least 14"),
    ],
)
def test_less_than_the_daily_job_reads_is_refused(values, named):
    with pytest.raises(ValueError, match=named):
        Settings(**values)


def test_the_weekly_report_finds_the_labels_that_it_reads():
    least = opinions.DAYS + 7
    Settings(keep_runs=14, keep_scores=least)
    with pytest.raises(ValueError, match=f"KEEP_SCORES must be at least {least}"):
        Settings(keep_runs=14, keep_scores=least - 1)
