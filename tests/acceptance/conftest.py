"""The daily job, made once for all tests of the folder."""

from collections.abc import Iterator

import pytest
from daily_job import DailyJob, daily_job


@pytest.fixture(scope="module")
def job(services: None) -> Iterator[DailyJob]:
    with daily_job() as made:
        yield made
