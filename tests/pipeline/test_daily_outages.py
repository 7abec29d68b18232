"""What the path leans on is down or in the way: clear words, nothing lost, and then it goes on."""

import logging
import os
import shutil
import subprocess
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from databases import empty
from feed import MARK, good, refused, write_json

from installation import (
    FROM_THE_QUEUE,
    MONDAY,
    TO_THE_QUEUE,
    Installation,
    assert_same,
    copy_home,
    files_with,
    picture_of,
    published,
    review,
)
from modwatch.common.errors import (
    DatabaseError,
    LakeError,
    NoChampionError,
    StackError,
    TrackingError,
)
from modwatch.installation.resources import open_resources
from modwatch.pipeline import daily

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

NOWHERE = "http://127.0.0.1:9"


@dataclass(frozen=True, kw_only=True)
class Undisturbed:
    """A day that nothing disturbed: its folder before each step, and all that it left."""

    home: Installation
    before: Mapping[str, Path]
    after: Mapping[str, list[str]]


@pytest.fixture(scope="module")
def undisturbed(make_installation, migrated_queue_url, queue_owner, tmp_path_factory):
    """The day of `files`, as far as the queue."""
    empty(queue_owner)
    folder = tmp_path_factory.mktemp("undisturbed")
    write_json(folder / "incoming" / f"{MONDAY}.jsonl", map(good, range(40)))
    source = {"kind": "files", "path": str(folder / "incoming" / "{dt}.jsonl")}
    home = make_installation(folder, source=source, database_url=migrated_queue_url)
    home.home.mkdir()
    before = {}
    for step in TO_THE_QUEUE:
        before[step] = copy_home(home.home, folder / f"before-{step}")
        home.run(step)
    return Undisturbed(home=home, before=before, after=picture_of(home))


def test_without_a_champion_nothing_is_scored_and_nothing_lost(files, unmanned, champion, tmp_path):
    early = files.but(mlflow_url=unmanned.copy(tmp_path / "unmanned"))
    early.run("ingest", "check_comments")
    before = picture_of(early)
    words = ("toxicity@champion", "modwatch train", "alias")
    refused(lambda: early.run("score"), NoChampionError, *words)
    assert_same(before, picture_of(early))
    assert files.run("score", "check_scores", "route") == [40, 40, 4]


def test_mlflow_down_then_up_again(files):
    down = files.but(mlflow_url=NOWHERE)
    files.run("ingest", "check_comments")
    words = (NOWHERE, "MODWATCH_MLFLOW_URL")
    refused(lambda: down.run("score"), TrackingError, *words)
    files.run("score", "check_scores", "route")
    review(files)
    files.run("collect_labels", "measure")
    before = picture_of(files)
    refused(lambda: down.run("publish"), TrackingError, *words)
    after = picture_of(files)
    assert (before["days"], len(after["days"])) == ([], 1)  # the result is kept before MLflow
    assert_same(before, after | {"days": []})
    assert files.run("publish") == [1]
    assert len(published(files.settings.mlflow_url)) == 2


def test_the_database_down_then_up_again(files):
    down = files.but(database_url="postgresql://mod:hunter2@127.0.0.1:9/modwatch")
    files.run(*TO_THE_QUEUE)
    undisturbed = picture_of(files)
    words = ("'modwatch' on 127.0.0.1", "MODWATCH_DATABASE_URL")
    for step in ("route", "collect_labels"):
        with pytest.raises(DatabaseError) as caught:
            down.run(step)
        assert all(word in str(caught.value) for word in words)
        assert "hunter2" not in "".join(traceback.format_exception(caught.value))
        assert MARK not in "".join(traceback.format_exception(caught.value))
    files.run("route")
    assert_same(undisturbed, picture_of(files))


def test_a_lake_that_cannot_be_written(files, tmp_path):
    (tmp_path / "obstacle").write_text("a file where a folder should be")
    blocked = files.but(lake=str(tmp_path / "obstacle" / "lake"))
    refused(lambda: blocked.run("ingest"), LakeError, "obstacle", "MODWATCH_LAKE")


@pytest.mark.parametrize(
    ("step", "part"),
    [
        ("ingest", "landed"),
        ("check_comments", "comments"),
        ("check_scores", "scores"),
        ("route", "routed"),
    ],
)
def test_a_part_of_the_lake_that_cannot_be_written(undisturbed, queue_url, tmp_path, step, part):
    home = undisturbed.home.but(home=copy_home(undisturbed.before[step], tmp_path / "home"))
    lake = Path(home.settings.lake_root)
    lake.mkdir(parents=True, exist_ok=True)
    (lake / part).write_text("a file where a folder should be")
    refused(lambda: home.run(step), LakeError, part, str(lake))
    (lake / part).unlink()
    home.run(*TO_THE_QUEUE[TO_THE_QUEUE.index(step) :])
    assert_same(undisturbed.after, picture_of(home))


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Mount a disk of 640 MiB at a folder; skip the test where that is not allowed."""
    command = ["mount", "-t", "tmpfs", "-o", "size=640m", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no disk may be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(filler: Path, *, leaving: int) -> None:
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(filler.parent).free - leaving)


def test_a_full_disk_is_freed_and_the_day_goes_on(files):
    lake = Path(files.settings.lake_root)
    lake.mkdir(parents=True, exist_ok=True)
    with small_disk(lake):
        filler = lake / "filler"
        fill(filler, leaving=100_000_000)
        refused(lambda: files.run("ingest"), StackError, "MB are free", "MODWATCH_LAKE")
        assert [path.name for path in lake.iterdir()] == ["filler"], "nothing was begun"
        filler.unlink()
        files.run("ingest")
        fill(filler, leaving=4096)  # in the middle of the day
        refused(lambda: files.run("check_comments"), LakeError)
        filler.unlink()
        assert files.run("check_comments") == [40]


def test_no_text_leaves_lake_and_queue(files, incoming, caplog):
    caplog.set_level(logging.DEBUG)
    spoilt = [{"text": f"{MARK}\0"}, {"created_at": MARK}, {"comment_id": MARK * 100}]
    rows = [*map(good, range(200)), *(good(200 + n, **bad) for n, bad in enumerate(spoilt))]
    write_json(incoming / f"{MONDAY}.jsonl", rows)
    files.run(*TO_THE_QUEUE)
    review(files)
    files.run(*FROM_THE_QUEUE)
    assert len(caplog.records) > 10
    assert [r.name for r in caplog.records if MARK in repr(r.__dict__)] == []
    store = Path(files.settings.mlflow_url.removeprefix("sqlite:///")).parent
    assert files_with("2026-01-05", [store])
    assert files_with(MARK, [store, files.home / "lake" / "_checks", files.home / "models"]) == []
    kept = [*files_with(MARK, [files.home / "lake"])]
    tables = {path.relative_to(files.home / "lake").parts[0] for path in kept}
    assert tables <= {"landed", "comments", "quarantine"}


def test_a_shard_that_fails_shows_no_text(files):
    files.run("ingest", "check_comments")
    with open_resources(files.settings) as resources:
        refused(
            lambda: daily.score_shard(
                resources, MONDAY, model_version="99", shard=0, first=0, end=9
            ),
            NoChampionError,
            "no version 99",
        )
