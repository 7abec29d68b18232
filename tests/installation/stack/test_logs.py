"""Logs that grow for months."""

import os
import time

from modwatch.installation.stack.logs import remove_old, rotate


def test_a_large_log_begins_anew_under_its_writer(tmp_path):
    log, small = tmp_path / "mlflow.log", tmp_path / "console.log"
    small.write_bytes(b"short\n")
    with log.open("ab", buffering=0) as writer:  # as the programs of a stack write
        writer.write(b"a" * 2_000)
        rotate(tmp_path, largest=1_000)
        writer.write(b"b" * 10)
        assert log.read_bytes() == b"b" * 10
        assert log.with_suffix(".log.1").read_bytes() == b"a" * 2_000
        writer.write(b"c" * 2_000)
        rotate(tmp_path, largest=1_000)
    assert log.with_suffix(".log.1").read_bytes() == b"b" * 10 + b"c" * 2_000
    assert small.read_bytes() == b"short\n"
    assert not small.with_suffix(".log.1").exists()


def test_old_logs_of_tasks_go_with_their_folders(tmp_path):
    old, new = (tmp_path / f"dag_id=a/run_id={name}/1.log" for name in ("old", "new"))
    for path in (old, new):
        path.parent.mkdir(parents=True)
        path.write_text("x")
    last = time.time() - 31 * 24 * 3600
    os.utime(old, (last, last))
    remove_old(tmp_path)
    assert not old.parent.exists()
    assert new.exists()
    remove_old(tmp_path / "none")
    remove_old(tmp_path, days=-1)
    assert list(tmp_path.iterdir()) == []
