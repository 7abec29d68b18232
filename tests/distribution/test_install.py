"""`pip install` without extras, in an empty virtual environment: statistics and file checks."""

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import pytest
from audit_making import finished

from extras import PROJECT
from wheel import ROOT, build_wheel, pip

pytestmark = [pytest.mark.acceptance, pytest.mark.usefixtures("services")]

Run = Callable[..., "subprocess.CompletedProcess[str]"]
PAGES = ("getting-started.md", "data-scientists.md")
_LIST = """
from importlib.metadata import distributions
for found in distributions():
    print(f"{found.name}=={found.version}")
"""
_EXAMPLES = "import doctest, sys; sys.exit(doctest.testfile(sys.argv[1], False).failed)"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
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
    wheel = str(build_wheel(folder / "wheel"))
    pip(sys.executable, "--python", python, "install", "--no-compile", wheel)
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


def test_only_the_base_is_installed(run: Run) -> None:
    listed = run("python", "-c", _LIST).stdout.lower()
    assert f"modwatch=={PROJECT['project']['version']}" in listed
    assert "sqlalchemy" not in listed
    assert len(listed.splitlines()) < 25


def test_the_statistics_are_imported(run: Run) -> None:
    code = "import modwatch.statistics, modwatch.routing, modwatch.statistics.audit"
    done = run("python", "-W", "error", "-c", code)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_the_documentation_run(run: Run, page: str) -> None:
    done = run("python", "-c", _EXAMPLES, str(ROOT / "docs" / page))
    assert done.returncode == 0, done.stdout


def test_the_command_line_says_what_it_is(run: Run) -> None:
    assert run("modwatch", "--version").stdout == f"modwatch {PROJECT['project']['version']}\n"
    assert "Usage: modwatch" in run("modwatch", "--help").stdout


def test_airflow_would_find_the_dags(run: Run) -> None:
    folder = Path(run("modwatch", "airflow", "dags-folder").stdout.rstrip())
    assert "site-packages" in folder.parts
    for path in (ROOT / "dags").glob("*.py"):
        assert (folder / path.name).read_bytes() == path.read_bytes()


def test_a_transparency_report_is_validated(run: Run, tmp_path: Path) -> None:
    report = tmp_path / "report.csv"
    shutil.copy(ROOT / "tests" / "golden" / "dsa" / "automated_means.csv", report)
    done = run("modwatch", "audit", "validate-dsa", str(report))
    assert (done.returncode, done.stderr) == (0, "")
    report.write_text("not a report")
    assert run("modwatch", "audit", "validate-dsa", str(report)).returncode == 1


def test_an_audit_is_verified_from_its_files(run: Run, tmp_path: Path) -> None:
    for name, content in finished().folder.items():
        (tmp_path / name).write_bytes(content)
    done = run("modwatch", "audit", "verify", "--files", str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    (tmp_path / "labels-1.csv").unlink()
    assert run("modwatch", "audit", "verify", "--files", str(tmp_path)).returncode == 1


def test_a_command_that_lacks_an_extra_names_it(run: Run) -> None:
    done = run("modwatch", "console")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "modwatch: \"console\" needs extra dependencies; run pip install 'modwatch[console]'\n"
    )
