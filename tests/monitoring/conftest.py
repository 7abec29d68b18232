"""An empty lake, and the place of its validation results."""

from pathlib import Path

import pytest

from modwatch.lake.delta import Lake
from modwatch.quality.store import CheckStore


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(root=str(tmp_path / "lake"))


@pytest.fixture
def checks(tmp_path: Path) -> CheckStore:
    return CheckStore(root=str(tmp_path / "checks"))
