"""An empty lake, the place of its validation results, and a day that is scored once a session."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from installation import TO_THE_QUEUE, Installation
from modwatch.data.lake.delta import Lake
from modwatch.data.validation.result import CheckStore


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(root=str(tmp_path / "lake"))


@pytest.fixture
def checks(tmp_path: Path) -> CheckStore:
    return CheckStore(root=str(tmp_path / "checks"))


@pytest.fixture(scope="session")
def scored_home(
    make_installation: Callable[..., Installation], tmp_path_factory: pytest.TempPathFactory
) -> Installation:
    """An installation whose Monday is scored; no test changes it."""
    home = make_installation(tmp_path_factory.mktemp("scored"))
    home.run(*TO_THE_QUEUE[:4])
    return home


@pytest.fixture
def install_routed(
    install: Callable[..., Installation], scored_home: Installation
) -> Callable[[], Installation]:
    """Return a function that makes an installation whose Monday waits in the queue."""

    def make() -> Installation:
        home = install()
        shutil.copytree(scored_home.home, home.home)
        home.run(*TO_THE_QUEUE[4:])
        return home

    return make
