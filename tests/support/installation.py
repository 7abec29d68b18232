"""A small installation of Modwatch in a folder, and pictures of everything that it keeps."""

import datetime
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from databases import owner_url
from sqlalchemy import Engine, text

from modwatch.data.lake.delta import Lake
from modwatch.data.lake.schemas import TABLES
from modwatch.installation.resources import Resources, open_resources
from modwatch.pipeline import daily
from modwatch.review.database import connect, create_database
from modwatch.review.people.accounts import create_moderator
from modwatch.review.queue.deciding import decide
from modwatch.review.queue.leases import lease
from modwatch.settings import Settings

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

#: Of the models that tests share; no verdict depends on it.
TRAINING_SEED = int(os.environ.get("TEST_TRAINING_SEED", "0"))

MONDAY = datetime.date(2026, 1, 5)
TUESDAY = datetime.date(2026, 1, 6)
ALL_DAYS = (datetime.date.min, datetime.date.max)

#: Columns of the queue that are different whenever a row is written.
_OF_THE_MOMENT = ("id", "version", "queued_at", "serve_by", "due_at", "text_salt")
_ROW_OF_THE_MOMENT = ("salt", "clock_difference_seconds")
_RUN_OF_THE_MOMENT = ("published_at", "mlflow.source.name", "mlflow.user")


def config_with(folder: Path, files: Mapping[str, str | Path]) -> Path:
    """Return the folder `config` in `folder` with these files: their text, or a copy of a file."""
    config = folder / "config"
    config.mkdir()
    for name, content in files.items():
        text = content.read_text() if isinstance(content, Path) else content
        (config / name).write_text(text)
    return config


@dataclass(frozen=True, kw_only=True)
class Installation:
    """Settings by name, as `Settings` takes them, or as a process finds them in its environment."""

    values: Mapping[str, Any]

    @property
    def home(self) -> Path:
        return Path(self.values["home"])

    @cached_property
    def settings(self) -> Settings:
        return Settings(**self.values)

    @property
    def env(self) -> dict[str, str]:
        """The same settings as variables."""
        plain = {name: value for name, value in self.values.items() if name != "source"}
        nested = {f"source__{name}": value for name, value in self.values["source"].items()}
        return {
            f"MODWATCH_{name.upper()}": json.dumps(value) if isinstance(value, dict) else str(value)
            for name, value in (plain | nested).items()
        }

    def but(self, **changes: Any) -> "Installation":
        return Installation(values={**self.values, **changes})

    def run(self, *steps: str, day: datetime.date = MONDAY) -> list[Any]:
        """Run steps of one day, each as a task of its own does; return what they returned."""
        done = []
        for name in steps:
            with open_resources(self.settings) as resources:
                done.append(getattr(daily, name)(resources, day))
        return done


TO_THE_QUEUE = ("ingest", "check_comments", "score", "check_scores", "route", "score_challenger")
FROM_THE_QUEUE = (
    *("collect_labels", "follow_up", "measure", "compare_challenger", "compare_groups"),
    "detect_drift",
    "verify_log",
    *("raise_alerts", "publish", "deliver_alerts"),
)


def table_rows(
    lake: Lake, table: str, days: tuple[datetime.date, datetime.date] = ALL_DAYS
) -> list[str]:
    """Return every row of a table in these days, in an order of their own.

    Without what is different whenever a row is written.
    """
    rows = (row for batch in lake.read_between(table, *days) for row in batch.to_pylist())
    kept = ([(k, v) for k, v in row.items() if k not in _ROW_OF_THE_MOMENT] for row in rows)
    return sorted(repr(sorted(row)) for row in kept)


def queue_rows(engine: Engine) -> list[dict[str, object]]:
    """Return the items of the queue, without what differs at every writing."""
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT * FROM review_item")).mappings().all()
    return [{k: v for k, v in row.items() if k not in _OF_THE_MOMENT} for row in rows]


def picture(resources: Resources) -> dict[str, list[str]]:
    """Return all tables, the queue and the check results, to compare with another time.

    Without the ages of waiting items, which have changed by then.
    """
    checks = Path(resources.settings.checks_root)
    files = sorted(path for path in checks.rglob("*") if path.is_file())
    return {
        **{table: table_rows(resources.lake, table) for table in TABLES},
        "drift": [row for row in table_rows(resources.lake, "drift") if "'queue_age_" not in row],
        "queue": sorted(repr(sorted(row.items())) for row in queue_rows(resources.database)),
        "checks": [f"{path.relative_to(checks)}: {path.read_text()}" for path in files],
    }


def picture_of(installation: Installation) -> dict[str, list[str]]:
    with open_resources(installation.settings) as resources:
        return picture(resources)


def assert_same(one: Mapping[str, list[str]], other: Mapping[str, list[str]]) -> None:
    """Compare two pictures without ever printing a row: rows hold people's words."""
    assert one.keys() == other.keys()
    differing = {
        part: f"{len(one[part])} and {len(other[part])} rows, "
        f"{len(set(one[part]) ^ set(other[part]))} of them differ"
        for part in one
        if one[part] != other[part]
    }
    assert not differing, differing


def copy_home(home: Path, target: Path) -> Path:
    """Return a copy of an installation's folder; its lake belongs to no database yet."""
    return Path(shutil.copytree(home, target, ignore=shutil.ignore_patterns("_owner")))


def files_with(needle: str, folders: Iterable[Path]) -> list[Path]:
    """Return the files below `folders` in which the text occurs, in UTF-8 or UTF-16."""
    needles = [needle.encode(), needle.encode("utf-16-le")]
    return [
        path
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file() and any(n in path.read_bytes() for n in needles)
    ]


def tables_with(database: str, needle: str) -> list[str]:
    """Return the tables of a database in any row of which a text occurs."""
    engine = connect(create_database(owner_url(os.environ["MODWATCH_DATABASE_URL"]), database))
    with engine.connect() as connection:
        names = connection.scalars(
            text("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
        ).all()
        query = 'SELECT EXISTS (SELECT FROM "{}" t WHERE t::text LIKE :needle)'
        found = [
            name
            for name in names
            if connection.scalar(text(query.format(name)), {"needle": f"%{needle}%"})
        ]
    engine.dispose()
    return found


def review(installation: Installation, *, limit: int | None = None, name: str = "ann") -> int:
    """Let one person who never errs decide up to `limit` comments; return how many it were."""
    done = 0
    with open_resources(installation.settings) as resources:
        truth = dict(known_labels(resources.lake))
        while done != limit and take_one(resources, truth, name)():
            done += 1
    return done


def take_one(
    resources: Resources, truth: Mapping[str, int], name: str = "ann"
) -> Callable[[], bool]:
    """Let one person who never errs take the next comment, if any; return how to decide it."""
    person = create_moderator(resources.database, name, "moderator")
    held = lease(resources.database, person.id)

    def decide_truly() -> bool:
        if held:
            decide(
                resources.database,
                moderator_id=person.id,
                item_id=held.item.id,
                lease_token=held.token,
                label=truth[held.item.comment_id],
                idempotency_key=held.token,
                seconds=3.0,
            )
        return held is not None

    return decide_truly


def known_labels(lake: Lake) -> Iterator[tuple[str, int]]:
    """Yield id and label of every comment, as they came with the data."""
    columns = ["comment_id", "label"]
    for batch in lake.read_between(
        "comments", datetime.date.min, datetime.date.max, columns=columns
    ):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def published(url: str) -> list[str]:
    """Return every living run of MLflow's experiment of days: words and points, nothing of when."""
    from mlflow import MlflowClient  # takes seconds, and few tests need it

    client = MlflowClient(url)
    experiment = client.get_experiment_by_name("modwatch")
    runs = client.search_runs([experiment.experiment_id])
    return sorted(_run_picture(client, run) for run in runs)


def _run_picture(client: "MlflowClient", run: "Run") -> str:
    points = sorted(
        (key, point.step, point.timestamp, point.value)
        for key in run.data.metrics
        for point in client.get_metric_history(run.info.run_id, key)
    )
    words = {k: v for k, v in run.data.tags.items() if k not in _RUN_OF_THE_MOMENT}
    result = (run.info.run_name, run.info.status, sorted(words.items()), run.data.params, points)
    return repr(result).replace(run.info.run_id, "RUN")  # links name it
