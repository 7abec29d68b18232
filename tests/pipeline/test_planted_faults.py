"""A month of a platform in files, with planted faults: their messages, and a repair that works.

The steps run one after the other as Airflow runs them: an error that no retry can fix fails the
day, and is reported; others are tried again until their cause has passed. `tests/acceptance` kills
the scheduler and its tasks.
"""

import csv
import datetime
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from receivers import Webhook, webhook

from installation import MONDAY, Installation
from modwatch.common.errors import ModwatchError
from modwatch.installation.resources import Resources, open_resources
from modwatch.models.scoring.scorer import Predictions
from modwatch.monitoring.incidents.actions import repair
from modwatch.monitoring.publishing.days import read_days
from modwatch.pipeline import daily
from modwatch.pipeline.airflow import _NOT_RETRIED, TaskFailureNotifier, TaskRepairNotifier
from modwatch_lab.community import Community

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = [
    pytest.mark.soak,  # `test_daily_outages.py` and the tests of alerts have each fault alone
    pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated"),
]

COMMUNITY = Community(seed=7, comments_per_day=560)
COLUMNS = ("comment_id", "created_at", "text", "platform")
ONE_DAY = datetime.timedelta(days=1)

#: Enough days that it is known how far volumes vary; half a volume comes on a working day.
ORDINARY = 16

Row = dict[str, Any]


@dataclass(kw_only=True)
class Platform:
    """A platform whose export is a file a day, and the installation that watches it."""

    home: Installation
    folder: Path
    server: Webhook
    today: datetime.date = MONDAY
    seen: int = 0
    written: dict[datetime.date, list[Row]] = field(default_factory=dict)

    def rows(self, day: datetime.date) -> list[Row]:
        """Return what people wrote on a day; the source names no language."""
        if day not in self.written:
            rows = (row for batch in COMMUNITY.read(day) for row in batch.to_pylist())
            plain = ({name: row[name] for name in COLUMNS} for row in rows)
            self.written[day] = [row | {"platform": "forum"} for row in plain]
        return self.written[day]

    def export(
        self, day: datetime.date, rows: Iterable[Row], columns: Iterable[str] = COLUMNS
    ) -> None:
        self.folder.mkdir(exist_ok=True)
        with (self.folder / f"{day}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows([row[name] for name in COLUMNS] for row in rows)

    def messages(self) -> list[dict[str, Any]]:
        """Return the messages since the last call."""
        new = [request.json for request in self.server.requests[self.seen :]]
        self.seen += len(new)
        return new

    def run(
        self, day: datetime.date, *, passes: Callable[[], None] | None = None
    ) -> dict[str, str]:
        """Run a day as Airflow does; return the steps that failed, with the class of their error.

        `passes` ends what stands in the way, before the first retry.
        """
        failed: dict[str, str] = {}
        rejected = False
        for number, step in enumerate(daily.STEPS):
            if rejected and number < daily.STEPS.index(daily.collect_labels):
                continue  # the other DAG runs whatever became of this one
            error = self._try(day, step)
            if error is not None:
                failed[step.__name__] = _name(error)
                rejected = rejected or _name(error) in _NOT_RETRIED
                if passes and _name(error) not in _NOT_RETRIED:
                    passes()
                    assert self._try(day, step) is None, step.__name__
        return failed

    def _try(self, day: datetime.date, step: Callable[..., Any]) -> Exception | None:
        with open_resources(self.home.settings) as resources:
            try:
                step(resources, day)
            except ModwatchError as error:
                if _name(error) in _NOT_RETRIED:
                    TaskFailureNotifier()(self._context(day, step.__name__, exception=error))
                return error
        TaskRepairNotifier()(self._context(day, step.__name__))
        return None

    def _context(self, day: datetime.date, step: str, **more: Any) -> dict[str, Any]:
        midnight = datetime.datetime.combine(day, datetime.time(), datetime.UTC)
        task = SimpleNamespace(
            dag_id="score_comments",
            task_id=step,
            run_id=f"scheduled__{day}",
            map_index=-1,
            start_date=midnight,
            log_url="http://airflow/log",
            try_number=1,
            get_ti_count=lambda **_: 0,
        )
        return {"ti": task, "data_interval_start": midnight, **more}

    def repair(self, day: datetime.date, *, empty: bool = False) -> None:
        """Repair a day as the button does."""
        failed: list[dict[str, str]] = []

        def again(of_day: datetime.date, _: str) -> str:
            failed.append(self.run(of_day))
            return f"{of_day} is run again"

        with open_resources(self.home.settings) as resources:
            repair(resources.database, day, "ann", run=again, empty=empty)
        assert failed == [{}]

    def ordinary(self, days: int = 1) -> None:
        """Run days on which nothing happens, of which nothing is reported."""
        for _ in range(days):
            self.export(self.today, self.rows(self.today))
            assert self.run(self.today) == {}
            self.today += ONE_DAY
        assert self.messages() == []

    def planted(self, rows: Iterable[Row], columns: Iterable[str] = COLUMNS) -> list[str]:
        """Run a day with a fault; return its messages, each as one text."""
        self.export(self.today, rows, columns)
        self.run(self.today)
        return [f"{message['title']}\n{message['text']}" for message in self.messages()]

    def repaired(self, *, empty: bool = False) -> None:
        """Correct the day's file, unless it is `empty`, and repair it: the end is reported."""
        if not empty:
            self.export(self.today, self.rows(self.today))
        self.repair(self.today, empty=empty)
        events = {message["event"] for message in self.messages()}
        assert events
        assert events <= {"recovered", "withdrawn"}
        assert self.status(self.today) == ("no comments" if empty else "normal")
        self.today += ONE_DAY

    def status(self, day: datetime.date) -> str:
        with open_resources(self.home.settings) as resources:
            return next(one.status for one in read_days(resources.lake) if one.day == day)


def _name(error: BaseException) -> str:
    return f"{type(error).__module__}.{type(error).__name__}"


@pytest.fixture
def platform(install, tmp_path, monkeypatch):
    with webhook() as server:
        home = install(
            source={"kind": "files", "path": str(tmp_path / "incoming"), "made_up": True},
            alert_webhook_url=server.url,
            alert_webhook_secret="s3cret",
        )
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        for name, value in home.env.items():
            monkeypatch.setenv(name, value)
        yield Platform(home=home, folder=tmp_path / "incoming", server=server)


def test_faults_of_the_source_have_their_cause_and_a_repair(platform, monkeypatch):
    platform.ordinary(ORDINARY)

    [message] = platform.planted(
        platform.rows(platform.today), ("comment_id", "created_at", "b", "p")
    )
    assert "has no column 'text'; it has comment_id, created_at, b, p" in message
    assert f"`modwatch repair {platform.today}`" in message
    platform.repaired()

    [message] = platform.planted(platform.rows(platform.today)[::2])
    assert "Few comments: 0.5" in message
    assert "modwatch repair" in message
    platform.repaired()

    copies = [
        row | {"comment_id": f"{row['comment_id']}/{number}"}
        for row in platform.rows(platform.today)
        for number in range(5)
    ]
    [message] = platform.planted(copies)
    assert "Many comments: 5." in message
    platform.repaired()

    foreign = [
        row | {"text": f"Это сообщение написано на другом языке, номер {number}"}
        for number, row in enumerate(platform.rows(platform.today))
    ]
    [message] = platform.planted(foreign)
    assert "Cyrillic 100 % of comments, usually 0 %" in message
    platform.repaired()

    late = [
        row | {"created_at": row["created_at"] + datetime.timedelta(days=400)}
        for row in platform.rows(platform.today)
    ]
    [message] = platform.planted(late)
    assert "0 rows" in message
    assert "of days in the future, or long ago, the first in" in message
    platform.repaired()

    def constant(self: Resources, version: str) -> Any:
        scorer = scorer_of(self, version)

        def score(texts: Any) -> Any:
            made = scorer.score(texts)
            return Predictions.of(np.full_like(made.prob, 0.5), made.further, cut=made.cut)

        facts = {"threshold": scorer.threshold, "columns": scorer.columns}
        return SimpleNamespace(score=score, model_version=version, **facts)

    scorer_of = Resources.scorer
    with monkeypatch.context() as patched:
        patched.setattr(Resources, "scorer", constant)
        [message] = platform.planted(platform.rows(platform.today))
    assert "flagged as in their reference: 100 %, usually" in message
    platform.repaired()

    [message] = platform.planted([])
    assert "0 rows" in message
    platform.repaired(empty=True)

    day = platform.today - 3 * ONE_DAY
    platform.export(day, [*platform.rows(day), *late_rows(day)])
    platform.export(platform.today, platform.rows(platform.today))
    assert platform.run(platform.today) == {}
    [message] = [message["title"] for message in platform.messages()]
    assert f"40 comments of {day} arrived after it was ingested" in message
    platform.repair(day)
    platform.today += ONE_DAY
    platform.export(platform.today, platform.rows(platform.today))
    assert platform.run(platform.today) == {}
    assert [message["event"] for message in platform.messages()] == ["recovered"]


def late_rows(day: datetime.date) -> list[Row]:
    moment = datetime.datetime.combine(day, datetime.time(23), datetime.UTC)
    return [
        {"comment_id": f"late {number}", "created_at": moment, "text": "an invented remark",
         "platform": "forum"} for number in range(40)
    ]  # fmt: skip


def test_what_passes_by_itself_needs_no_one(platform, install, monkeypatch):
    """MLflow answers 500, the database is gone, the disk is full: until the first retry."""
    platform.ordinary()
    whole = platform.home

    def back() -> None:
        platform.home = whole

    with webhook(*[500] * 200) as broken:
        for changes in (
            {"mlflow_url": broken.url.partition("/hook")[0]},
            {"database_url": "postgresql+psycopg://modwatch@127.0.0.1:9/modwatch"},
        ):
            platform.export(platform.today, platform.rows(platform.today))
            platform.home = whole.but(**changes)
            failed = platform.run(platform.today, passes=back)
            assert len(failed) == 1, failed
            assert not failed.keys() & {*_NOT_RETRIED}
            assert platform.status(platform.today) == "normal"
            platform.today += ONE_DAY
    assert platform.messages() == []
