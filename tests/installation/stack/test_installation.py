"""The addresses of the parts, and the preparation of Airflow's database by a stand-in program."""

import socket
from pathlib import Path

import pytest

from modwatch.common.errors import StackError
from modwatch.installation.stack import airflow, installation
from modwatch.installation.stack.airflow import AirflowHome
from modwatch.installation.stack.installation import require_free_ports


def prepared(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> list[str]:
    """Return the messages while a program with this script prepares the database."""
    program = folder / "airflow"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    monkeypatch.setattr(airflow, "_airflow", lambda: str(program))
    monkeypatch.setattr("modwatch.installation.stack.progress._EVERY", 0.3)
    monkeypatch.setattr(installation, "_USUAL_MIGRATION", 0.2)
    home = AirflowHome.create(folder / "home", url="http://127.0.0.1:8080", database_url="")
    lines: list[str] = []
    installation._migrate(home, folder / "logs", lines.append)
    assert home.is_migrated
    return lines


def test_a_long_preparation_says_again_and_again_that_it_goes_on(tmp_path, monkeypatch):
    first, *later = prepared(tmp_path, monkeypatch, 'test "$*" = "db migrate" && sleep 1.5')
    assert first == "preparing Airflow's database; about 1 s left"
    assert set(later) == {"preparing Airflow's database; longer than the usual 1 s"}
    assert len(later) >= 2


def test_a_preparation_that_fails_names_its_log(tmp_path, monkeypatch):
    with pytest.raises(StackError, match=r"failed; see .*airflow-migrate\.log"):
        prepared(tmp_path, monkeypatch, "exit 3")


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "example.org"])
def test_an_address_that_others_can_reach_is_refused(host):
    with pytest.raises(StackError, match="MODWATCH_CONSOLE_URL is not on the loopback interface"):
        require_free_ports({"MODWATCH_CONSOLE_URL": f"http://{host}:8090"})


def test_a_port_in_use_is_named_with_its_setting():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(StackError, match=f"port {port} is in use; set MODWATCH_MLFLOW_URL"):
            require_free_ports({"MODWATCH_MLFLOW_URL": f"http://127.0.0.1:{port}"})
