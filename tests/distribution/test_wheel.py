"""What a wheel holds: every file of the package, the DAGs, the plugin and the license."""

from email.parser import Parser
from zipfile import ZipFile

import pytest

from extras import PROJECT
from wheel import ROOT, build_wheel

VERSION = PROJECT["project"]["version"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory, services: None) -> ZipFile:
    return ZipFile(build_wheel(tmp_path_factory.mktemp("wheel")))


def test_it_holds_every_file_of_the_package(wheel: ZipFile) -> None:
    source = {
        str(path.relative_to(ROOT / "src"))
        for path in (ROOT / "src" / "modwatch").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    # A template for developers who add a migration.
    assert source - set(wheel.namelist()) <= {"modwatch/review/migrations/script.py.mako"}


@pytest.mark.parametrize("folder", ["dags", "plugins"])
def test_it_holds_dags_and_plugin(wheel: ZipFile, folder: str) -> None:
    for path in (ROOT / folder).glob("*.py"):
        assert wheel.read(f"modwatch/{folder}/{path.name}") == path.read_bytes()


def test_it_puts_nothing_next_to_the_package(wheel: ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert tops == {"modwatch", f"modwatch-{VERSION}.dist-info"}


def test_its_metadata_are_whole(wheel: ZipFile) -> None:
    folder = f"modwatch-{VERSION}.dist-info"
    about = Parser().parsestr(wheel.read(f"{folder}/METADATA").decode())
    assert about["Version"] == VERSION
    assert about["License-Expression"] == "Apache-2.0"
    assert "Apache License" in wheel.read(f"{folder}/licenses/LICENSE").decode()
    entries = wheel.read(f"{folder}/entry_points.txt").decode()
    assert "[airflow.plugins]\nmodwatch = modwatch.plugins.modwatch_plugin:" in entries
    assert (ROOT / "CHANGELOG.md").read_text().split("\n## ")[1].startswith(VERSION)
