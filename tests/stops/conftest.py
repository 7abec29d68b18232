"""A lake that is made in no time, for tests of what comes after the scores."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from installation import MONDAY, TUESDAY, Installation
from lake_days import put_comments, put_scores
from modwatch.wiring import Wiring, open_wiring

SIZE = 400


@pytest.fixture
def small(queue_url: str, tmp_path: Path) -> Iterator[Wiring]:
    """Two days of scored comments, the later half of each flagged."""
    home = Installation(values={"home": tmp_path, "database_url": queue_url})
    with open_wiring(home.settings) as wiring:
        for day in (MONDAY, TUESDAY):
            put_comments(wiring.lake, day, SIZE, language=["de", "en"] * (SIZE // 2))
            put_scores(wiring.lake, day, np.arange(SIZE, dtype=np.float32) / SIZE + 0.001)
        yield wiring
