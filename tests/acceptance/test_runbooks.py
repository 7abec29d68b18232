"""Every command of `docs/runbooks`, run as it stands there, on one installation."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from installation import MONDAY, TUESDAY
from modwatch.data.lake.delta import Lake
from modwatch.data.lake.schemas import TABLES

pytestmark = pytest.mark.acceptance

RUNBOOKS = Path(__file__).parents[2] / "docs" / "runbooks"
#: Of Debian's server, which `pg_basebackup` belongs to.
_POSTGRES = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_basebackup"))


def blocks(page: str, section: str) -> list[str]:
    """Return the commands below a heading."""
    text = (RUNBOOKS / f"{page}.md").read_text()
    [body] = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    found = re.findall(r"^```bash\n(.*?)^```", body, re.M | re.S)
    assert found, section
    return found


#: A value of each type of column.
_ANY = {
    "string": "x",
    "date32[day]": MONDAY,
    "int8": 0,
    "int64": 0,
    "bool": False,
    "double": 0.0,
    "timestamp[us, tz=UTC]": datetime(2026, 1, 5, tzinfo=UTC),
}


@dataclass(frozen=True, kw_only=True)
class Desk:
    """A folder in which somebody follows runbooks."""

    folder: Path
    env: dict[str, str]

    def follow(self, page: str, section: str) -> str:
        """Run the commands below a heading, each block in a shell of its own."""
        return "".join(self.run(block) for block in blocks(page, section))

    def run(self, script: str, **more: str) -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.folder,
            env={**self.env, **more},
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, script + done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    def file(self, name: str) -> str:
        return (self.folder / name).read_text()


@pytest.fixture(scope="module")
def desk(services):
    with ExitStack() as exits:
        folder = Path(exits.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)  # PostgreSQL, started by a root, runs as another user
        with (folder / "comments.jsonl").open("w") as file:
            for day in (MONDAY, TUESDAY):
                for number in range(40):
                    row = {
                        "id": f"{day}-{number}",
                        "text": f"an invented text, number {number} of {day}",
                        "created_at": f"{day}T10:00:{number:02}Z",
                        "prob": 0.2 + number / 100,
                    }
                    file.write(f"{json.dumps(row)}\n")
        bad, good = "you are an idiot number {}", "what a lovely garden number {}"
        rows = [f"{(bad if i % 3 else good).format(i)},{int(i % 3 > 0)}" for i in range(600)]
        (folder / "labelled.csv").write_text("\n".join(["text,label", *rows]))
        env = {name: value for name, value in os.environ.items() if "MODWATCH_" not in name}
        env["PATH"] = f"{Path(sys.executable).parent}:{env['PATH']}"
        env["MODWATCH_WITNESS_FOLDER"] = str(folder / "witnesses")
        env["MODWATCH_TORCH_THREADS"] = "1"
        for name in ("AIRFLOW", "MLFLOW", "CONSOLE"):
            probe = exits.enter_context(socket.socket())
            probe.bind(("127.0.0.1", 0))
            env[f"MODWATCH_{name}_URL"] = f"http://127.0.0.1:{probe.getsockname()[1]}"
            probe.close()
        made = Desk(folder=folder, env=env)
        exits.callback(subprocess.run, ["modwatch", "down"], cwd=folder, env=env, check=False)
        made.run(f"modwatch init comments.jsonl --yes --own-scores prob --day {MONDAY}")
        yield made


def test_every_page_is_followed():
    pages = {path.stem for path in RUNBOOKS.glob("*.md")}
    assert pages == {"rotate-secrets", "restore", "move", "replace-model"}


@pytest.mark.soak  # `tests/cli/test_models.py` has its commands
def test_replace_the_model(desk):
    (desk.folder / "recipe.toml").write_text('method = "deterministic"\n')
    desk.run("modwatch train --data labelled.csv --recipe recipe.toml")
    assert "version 2" in desk.follow("replace-model", "Train a challenger")
    assert "2" in desk.follow("replace-model", "Make it the champion")
    assert "1" in desk.follow("replace-model", "Go back")


@pytest.mark.soak  # its commands have tests of their own
def test_rotate_secrets(desk):
    names = ("passwords.json", "jwt_secret", "airflow.cfg")
    before = {name: desk.file(f"modwatch-home/airflow/{name}") for name in names}
    desk.run("modwatch person add ada --role lead")
    key = re.compile("^fernet_key = .*$", re.M)
    for section in (
        "Airflow's password and signing key",
        "Secrets in the settings file",
        "Airflow's Fernet key",
        "A person's password and access tokens",
        "A key that signs audits",
    ):
        desk.follow("rotate-secrets", section)
    assert "0 decisions" in desk.follow("rotate-secrets", "Afterwards")
    after = {name: desk.file(f"modwatch-home/airflow/{name}") for name in names}
    assert all(before[name] != after[name] for name in names)
    assert key.findall(before["airflow.cfg"]) != key.findall(after["airflow.cfg"])
    assert "," not in key.findall(after["airflow.cfg"])[0]
    assert desk.file("modwatch.env").count("MODWATCH_ALERT_WEBHOOK_SECRET=whsec_") == 1
    assert desk.file("ada.token").startswith("mw_")


@pytest.mark.soak  # `test_restore_to_a_moment` restores a server and a lake
def test_restore_the_newest_backup(desk):
    desk.follow("restore", "Back up one machine")
    desk.run(f"modwatch person add late && modwatch run verify_log {TUESDAY}")
    newer = len(list((desk.folder / "witnesses").iterdir()))
    assert "late" in desk.run("modwatch person list")
    shown = desk.follow("restore", "Restore one machine to the newest backup")
    people = desk.run("modwatch person list")
    assert "late" not in people
    assert "ada" in people
    assert f"{TUESDAY} is run again" in shown
    moved = list((desk.folder / "witnesses.later").iterdir())
    assert moved
    assert len(moved) < newer


@pytest.mark.soak  # `test_up` moves a home
def test_move(desk):
    desk.follow("move", "On the old machine")
    other = Desk(folder=desk.folder / "new", env=desk.env)
    other.folder.mkdir()
    (desk.folder / "move.tgz").rename(other.folder / "move.tgz")
    (desk.folder / "modwatch-home").rename(desk.folder / "gone")
    try:
        assert str(other.folder) in other.follow("move", "On the new machine")
        assert "ada" in other.run("modwatch person list")
    finally:
        other.run("modwatch down")
    assert not (desk.folder / "modwatch-home").exists()


@pytest.mark.skipif(not _POSTGRES, reason="no pg_basebackup of Debian's PostgreSQL is installed")
def test_restore_to_a_moment(tmp_path):
    """A server with an archive, and the tables of a lake."""
    archive, restore, tables = blocks("restore", "A PostgreSQL of your own, to any moment")
    lake = Lake(root=str(tmp_path))
    write(lake, "alerts", MONDAY)
    write(lake, "labels", MONDAY)
    with own_server() as server:
        server(archive)
        server("psql -qc 'CREATE TABLE decided AS SELECT 1 AS id'")
        moment = server("psql -Atc 'SELECT clock_timestamp()'").strip()
        server("psql -qc 'INSERT INTO decided VALUES (2)'")
        write(lake, "alerts", TUESDAY)
        write(lake, "days", TUESDAY)
        assert len(lake.days("alerts")) == 2
        server(restore, MOMENT=moment)
        assert server("psql -Atc 'SELECT id FROM decided'") == "1\n"
    env = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    Desk(folder=tmp_path, env=env).run(tables, MOMENT=moment, LAKE=str(tmp_path))
    kept = {table: lake.days(table) for table in ("alerts", "labels", "days")}
    assert kept == {"alerts": [MONDAY], "labels": [MONDAY], "days": []}


def write(lake: Lake, table: str, day: date) -> None:
    """Store one row, of whatever values the table allows."""
    schema = TABLES[table]
    row = {field.name: None if field.nullable else _ANY[str(field.type)] for field in schema}
    lake.replace(table, day, [pa.RecordBatch.from_pylist([row | {"dt": day}], schema=schema)])


@contextmanager
def own_server() -> Iterator[Callable[..., str]]:
    """Start a server in a folder, as a user that may; yield how to run commands as its admin."""
    with tempfile.TemporaryDirectory() as name:
        folder, user = Path(name), []
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres")
            user = ["runuser", "-u", "postgres", "--"]
        env = {
            "PATH": f"{_POSTGRES[-1].parent}:{os.environ['PATH']}",
            "PGDATA": f"{name}/data",
            "PGHOST": name,
            "PGUSER": "postgres",
            "ARCHIVE": f"{name}/archive",
        }

        def run(script: str, **more: str) -> str:
            given = [f"{key}={value}" for key, value in {**env, **more}.items()]
            command = [*user, "env", *given, "bash", "-euo", "pipefail", "-c", script]
            # To a file: the server inherits it, and would keep a pipe open.
            with tempfile.TemporaryFile() as output:
                done = subprocess.run(
                    command, cwd=folder, stdout=output, stderr=output, timeout=120, check=False
                )
                output.seek(0)
                said = output.read().decode()
            assert done.returncode == 0, script + said
            return said

        run("initdb --auth trust --username postgres")
        with (folder / "data" / "postgresql.conf").open("a") as file:
            file.write(f"\nlisten_addresses = ''\nunix_socket_directories = '{name}'\n")
        try:
            run('pg_ctl start --wait --silent --log "$PGDATA.log"')
            yield run
        finally:
            run("pg_ctl stop --wait --silent --mode immediate")
