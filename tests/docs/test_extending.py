"""The source of docs/extending.md, installed as a package of its own."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "extending.md").read_text()


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found
    return found[1]


@pytest.fixture
def site(tmp_path):
    """The folder of an installation that has nothing but the package of the page."""
    folder = tmp_path / "site"
    metadata = folder / "tickets-1.0.dist-info"
    metadata.mkdir(parents=True)
    (folder / "tickets.py").write_text(block("python"))
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: tickets\nVersion: 1.0\n")
    groups = tomllib.loads(block("toml"))["project"]["entry-points"]
    lines = [
        line
        for group, names in groups.items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in names.items()))
    ]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    return folder


def modwatch(site: Path, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    env = {name: value for name, value in os.environ.items() if not name.startswith("MODWATCH_")}
    env |= {"PYTHONPATH": str(site), "MODWATCH_HOME": str(site / "home")} | variables
    command = [sys.executable, "-m", "modwatch", *arguments]
    return subprocess.run(command, env=env, cwd=site, capture_output=True, text=True, check=False)


def test_the_source_of_the_page_is_configured_checked_and_read(site):
    named = dict(re.findall(r"(MODWATCH_\w+)=(\S+)", block("bash")))
    shown = modwatch(site, "settings", **named)
    assert re.search(
        r"MODWATCH_SOURCE__QUEUE +parcels +environment +Name of the queue", shown.stdout
    )
    ingested = modwatch(site, "run", "ingest", "2026-03-01", **named)
    assert (ingested.returncode, ingested.stdout) == (0, "ingest: 3\n")
    without = modwatch(site, "settings", MODWATCH_SOURCE__KIND="tickets")
    assert without.stderr == (
        "modwatch: MODWATCH_SOURCE__KIND=tickets requires MODWATCH_SOURCE__QUEUE; set it "
        "(Name of the queue)\n"
    )


def test_an_entry_point_that_is_no_kind_of_source_is_named(site):
    points = site / "tickets-1.0.dist-info" / "entry_points.txt"
    sql, ours = "modwatch.data.sources.settings:SqlSourceSettings", "tickets:TicketSettings"
    for name, value, problem in (
        ("tickets", "tickets:TicketSource", "kind of source 'tickets', is no class of SourceSett"),
        ("tickets", sql, "the kind of source 'tickets', has no field `kind`"),
        ("sql", ours, f"{sql} and {ours} are both 'sql' of modwatch.sources"),
    ):
        points.write_text(f"[modwatch.sources]\n{name} = {value}\n")
        assert problem in modwatch(site, "up").stderr
