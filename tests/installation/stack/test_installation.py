"""The preparation of Airflow's database, by a program that stands for Airflow's."""

from pathlib import Path

import pytest

from modwatch.common.errors import StackError
from modwatch.installation.stack import airflow, installation
from modwatch.installation.stack.airflow import AirflowHome


def prepared(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> list[str]:
    """Return what is said while a program with this script prepares the database."""
    program = folder / "airflow"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    monkeypatch.setattr(airflow, "_airflow", lambda: str(program))
    monkeypatch.setattr("modwatch.installation.stack.progress._EVERY", 0.3)
    monkeypatch.setattr(installation, "_USUAL_MIGRATION", 0.2)
    home = AirflowHome.create(folder / "home", url="http://127.0.0.1:8080", database_url="")
    said: list[str] = []
    installation._migrate(home, folder / "logs", said.append)
    assert home.is_migrated
    return said


def test_a_long_preparation_says_again_and_again_that_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *later = prepared(tmp_path, monkeypatch, 'test "$*" = "db migrate" && sleep 1.5')
    assert first == "preparing Airflow's database; about 1 s left"
    assert set(later) == {"preparing Airflow's database; longer than the usual 1 s"}
    assert len(later) >= 2


def test_a_preparation_that_fails_names_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(StackError, match=r"failed; see .*airflow-migrate\.log"):
        prepared(tmp_path, monkeypatch, "exit 3")
