"""What the commands of a stack import: people and scripts ask for the state again and again."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import pytest

from modwatch.cli.main import main
from modwatch.common.errors import StackError
from modwatch.installation.stack.commands import describe, up_detached
from modwatch.installation.stack.record import StackFolder

CODE = """
import sys
from modwatch.cli.main import main
assert main(sys.argv[1:]) == {status}
print(sorted({{"httpx", "pandas", "pyarrow", "scipy", "sqlalchemy"}} & set(sys.modules)))
"""


@pytest.mark.parametrize(("command", "status"), [("status", 1), ("down", 0)])
def test_state_and_end_are_reported_without_the_packages_of_the_parts(command, status, tmp_path):
    ended = subprocess.run(
        [sys.executable, "-c", CODE.format(status=status), command],
        env={**os.environ, "MODWATCH_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert ended.stdout.splitlines()[0].startswith("nothing runs in")
    assert ended.stdout.splitlines()[-1] == "[]"


def test_a_home_that_cannot_be_written_is_stated_in_a_line(tmp_path):
    (tmp_path / "file").touch()
    folder = StackFolder(home=tmp_path / "file" / "home")
    with pytest.raises(
        StackError, match=r"cannot be written \(Not a directory\); set MODWATCH_HOME"
    ):
        up_detached(folder, show=print)
    with pytest.raises(StackError, match="set MODWATCH_HOME"), folder.held():
        pass
    assert describe(folder).startswith("nothing runs in")


@pytest.mark.parametrize("part", ["run", "logs"])
def test_a_home_whose_folders_cannot_be_written_is_stated_too(part, tmp_path, monkeypatch):
    def refuse(**options: Path) -> Any:
        if options["dir"].name == part:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return TemporaryFile(**options)

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    with pytest.raises(StackError, match="Permission denied"):
        up_detached(StackFolder(home=tmp_path), show=print)


def test_logs_are_shown_by_part_and_their_absence_is_an_error(tmp_path, capfd, monkeypatch):
    monkeypatch.setenv("MODWATCH_HOME", str(tmp_path))
    assert main(["logs"]) == 1
    (tmp_path / "logs").mkdir()
    for part in ("console", "mlflow"):
        (tmp_path / "logs" / f"{part}.log").write_text("old\n" + 20 * f"{part}\n")
    capfd.readouterr()
    assert main(["logs", "console"]) == 0
    assert capfd.readouterr().out == 20 * "console\n"
    assert main(["logs"]) == 0
    assert capfd.readouterr().out.count("mlflow\n") == 20
    assert main(["logs", "airflow"]) == 1
    assert "which has console, mlflow" in capfd.readouterr().err
