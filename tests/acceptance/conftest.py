"""The daily job, made once for all tests of a file, and its administrator's browser."""

import pytest
from daily_job import daily_job

from acceptance.daily_pages import log_in


@pytest.fixture(scope="module")
def job(services):
    with daily_job() as made:
        yield made


@pytest.fixture(scope="module")
def admin(job, chromium):
    """Return the administrator of Airflow, logged in.

    Pages stay open until the browser ends: Chromium may never close a page that has just opened one
    of another server.
    """
    context = chromium.new_context(viewport={"width": 1300, "height": 900})
    log_in(job, context)
    return context
