"""An empty lake, the place of its validation results, and days that wait in the queue."""

from typing import Any

import pytest

from installation import MONDAY, TO_THE_QUEUE, TUESDAY, Installation, copy_home
from modwatch.data.lake.delta import Lake
from modwatch.data.validation.result import CheckStore


@pytest.fixture
def lake(tmp_path):
    return Lake(root=str(tmp_path / "lake"))


@pytest.fixture
def checks(tmp_path):
    return CheckStore(root=str(tmp_path / "checks"))


@pytest.fixture
def install_routed(request, install):
    """Return a function that makes an installation whose Monday waits in the queue.

    With `days=2` Tuesday does, too. Other options are settings.
    """

    def make(*, days: int = 1, **changes: Any) -> Installation:
        home = install(**changes)
        scored = request.getfixturevalue("scored_monday" if days == 1 else "two_scored_days")
        copy_home(scored.home, home.home)
        for day in (MONDAY, TUESDAY)[:days]:
            home.run(*TO_THE_QUEUE[4:], day=day)
        return home

    return make
