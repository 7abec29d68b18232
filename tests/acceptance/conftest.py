"""The daily job, made once for all tests of a file, and its administrator's browser."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from daily_job import DailyJob, daily_job
from playwright.sync_api import Browser, BrowserContext

from acceptance.daily_pages import log_in


@pytest.fixture(scope="module")
def job(services: None) -> Iterator[DailyJob]:
    with daily_job() as made:
        yield made


@pytest.fixture(scope="module")
def admin(job: DailyJob, chromium: Browser) -> Iterator[BrowserContext]:
    """Somebody who is logged in to Airflow."""
    with closing(chromium.new_context(viewport={"width": 1300, "height": 900})) as context:
        log_in(job, context)
        yield context
