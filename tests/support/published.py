"""Where the published research data lies; tests that need it skip without it."""

import os
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]


def published_folder() -> Path:
    """Return the folder of the published files, which need not exist."""
    return Path(os.environ.get("MODWATCH_DATA", _ROOT.parent / "shared" / "data"))


def real_data(relative: str) -> Path:
    """Return the path of a published file, or skip the test that asks for it."""
    path = published_folder() / relative
    if not path.exists():
        pytest.skip(f"published data {relative} not found; set MODWATCH_DATA to its folder")
    return path
