"""The wheel: what it holds, and `pip install` without extras in an empty virtual environment."""

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest
from audit_making import finished

from extras import PROJECT
from wheel import ROOT, build_wheel, pip

pytestmark = [pytest.mark.acceptance, pytest.mark.usefixtures("services")]

Run = Callable[..., "subprocess.CompletedProcess[str]"]
VERSION = PROJECT["project"]["version"]
_LIST = """
from importlib.metadata import distributions
for found in distributions():
    print(f"{found.name}=={found.version}")
"""
_EXAMPLES = "import doctest, sys; sys.exit(doctest.testfile(sys.argv[1], False).failed)"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def files(wheel):
    return ZipFile(wheel)


@pytest.fixture(scope="module")
def run(wheel, tmp_path_factory):
    """Return a function that runs a program of an environment in which only the wheel is."""
    folder = tmp_path_factory.mktemp("base")
    venv.create(folder / "venv")
    programs = folder / "venv" / "bin"
    python = str(programs / "python")
    try:
        pip(sys.executable, "download", "--no-deps", "--dest", str(folder / "probe"), "MarkupSafe")
    except AssertionError:
        pytest.skip("no package index is reachable; configure one for pip")
    # Few of the modules are imported: those are compiled then.
    pip(sys.executable, "--python", python, "install", "--no-compile", str(wheel))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}

    def started(program: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [str(programs / program), *arguments],
            cwd=folder,
            env=kept,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return started


def test_it_holds_every_file_of_the_packages(files):
    source = {
        str(path.relative_to(ROOT / "src"))
        for package in ("modwatch", "modwatch_lab")
        for path in (ROOT / "src" / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    # A template for developers who add a migration.
    assert source - set(files.namelist()) <= {"modwatch/review/migrations/script.py.mako"}


@pytest.mark.parametrize("folder", ["dags", "plugins"])
def test_it_holds_dags_and_plugin(files, folder):
    for path in (ROOT / folder).glob("*.py"):
        assert files.read(f"modwatch/{folder}/{path.name}") == path.read_bytes()


def test_it_puts_nothing_next_to_the_packages(files):
    tops = {name.split("/")[0] for name in files.namelist()}
    assert tops == {"modwatch", "modwatch_lab", f"modwatch-{VERSION}.dist-info"}


def test_its_metadata_are_whole(files):
    folder = f"modwatch-{VERSION}.dist-info"
    about = Parser().parsestr(files.read(f"{folder}/METADATA").decode())
    assert about["Version"] == VERSION
    assert about["License-Expression"] == "Apache-2.0"
    assert "Apache License" in files.read(f"{folder}/licenses/LICENSE").decode()
    entries = files.read(f"{folder}/entry_points.txt").decode()
    assert "[airflow.plugins]\nmodwatch = modwatch.plugins.modwatch_plugin:" in entries
    assert (ROOT / "CHANGELOG.md").read_text().split("\n## ")[1].startswith(VERSION)


def test_only_the_base_is_installed(run):
    listed = run("python", "-c", _LIST).stdout.lower()
    assert f"modwatch=={VERSION}" in listed
    assert "sqlalchemy" not in listed
    assert len(listed.splitlines()) < 25


def test_the_statistics_are_imported(run):
    code = "import modwatch.statistics, modwatch.routing, modwatch.statistics.audit"
    done = run("python", "-W", "error", "-c", code)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_examples_of_the_documentation_run(run):
    done = run("python", "-c", _EXAMPLES, str(ROOT / "docs" / "data-scientists.md"))
    assert done.returncode == 0, done.stdout


def test_the_command_line_says_what_it_is(run):
    assert run("modwatch", "--version").stdout == f"modwatch {VERSION}\n"
    assert "Usage: modwatch" in run("modwatch", "--help").stdout


def test_airflow_would_find_the_dags(run):
    folder = Path(run("modwatch", "airflow", "dags-folder").stdout.rstrip())
    assert "site-packages" in folder.parts
    for path in (ROOT / "dags").glob("*.py"):
        assert (folder / path.name).read_bytes() == path.read_bytes()


def test_a_transparency_report_is_validated(run, tmp_path):
    report = tmp_path / "report.csv"
    shutil.copy(ROOT / "tests" / "golden" / "dsa" / "automated_means.csv", report)
    done = run("modwatch", "audit", "validate-dsa", str(report))
    assert (done.returncode, done.stderr) == (0, "")
    report.write_text("not a report")
    assert run("modwatch", "audit", "validate-dsa", str(report)).returncode == 1


def test_an_audit_is_verified_from_its_files(run, tmp_path):
    for name, content in finished().folder.items():
        (tmp_path / name).write_bytes(content)
    done = run("modwatch", "audit", "verify", "--files", str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    (tmp_path / "labels-1.csv").unlink()
    assert run("modwatch", "audit", "verify", "--files", str(tmp_path)).returncode == 1


def test_a_command_that_lacks_an_extra_names_it(run):
    done = run("modwatch", "console")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "modwatch: \"console\" needs extra dependencies; run pip install 'modwatch[console]'\n"
    )
