import datetime
import logging
import os
import stat
from pathlib import Path

import pyarrow as pa
import pytest

from modwatch.data.lake import files
from modwatch.data.lake.delta import Lake
from modwatch.data.lake.files import Folder
from modwatch.data.lake.schemas import TABLES

DAY = datetime.date(2026, 1, 1)


@pytest.fixture(autouse=True)
def open_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(folder: Path) -> int:
    return stat.S_IMODE(folder.stat().st_mode)


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_new_lake_is_its_owners_alone(tmp_path, scheme):
    root = tmp_path / "home" / "lake"
    empty = pa.RecordBatch.from_pylist([], schema=TABLES["comments"])
    Lake(root=f"{scheme}{root}").replace("comments", DAY, [empty])
    assert mode(root) == 0o700
    Folder(root=f"{scheme}{root}/_audits", holds="notes").write("a/b.txt", b"c")
    assert mode(root / "_audits") == 0o700


def test_a_wider_one_is_left_and_the_command_named_once(tmp_path, caplog):
    root = tmp_path / "lake"
    root.mkdir(mode=0o755)
    with caplog.at_level(logging.WARNING):
        for name in ("a", "b"):
            Folder(root=str(root), holds="notes").write(name, b"c")
    assert mode(root) == 0o755
    assert [record.getMessage() for record in caplog.records if "chmod" in record.getMessage()] == [
        f"Other users of this machine may read the comments in {root}; run: chmod 700 '{root}'"
    ]


def test_object_stores_are_not_touched(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for root in ("s3://bucket/lake", "memory://lake"):
        files.keep_private(root)
    assert list(tmp_path.iterdir()) == []
