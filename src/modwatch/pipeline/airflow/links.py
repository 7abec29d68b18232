"""Buttons of a task in Airflow: they lead to the day's validation page, MLflow run or review queue.

When a task has ended, also when it has failed, Airflow stores the address of each button as an
XCom. The addresses of a day's pages stay valid when the day is scored or published again.
"""

import datetime
from collections.abc import Callable
from typing import Any

from airflow.sdk import BaseOperatorLink

from modwatch.common.addresses import day_url, overview_url
from modwatch.common.errors import SettingsError
from modwatch.pipeline.airflow import day_of
from modwatch.settings import Settings, load_settings


class PageLink(BaseOperatorLink):  # type: ignore[misc]
    """A button that opens a page about the day of the run."""

    def __init__(self, name: str, address: Callable[[Settings, datetime.date], str]) -> None:
        self._name, self._address = name, address

    @property
    def name(self) -> str:
        """Text of the button."""
        return self._name

    @property
    def xcom_key(self) -> str:
        """Key of the XCom with the address.

        >>> VALIDATION_PAGE.xcom_key
        'link_validation_page'
        """
        return f"link_{self._name.lower().replace(' ', '_')}"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:  # noqa: ARG002 - Airflow's signature
        """Return the address for the run of the task instance `ti_key`.

        Of a run without a day, it is that of Modwatch's page in Airflow.
        """
        settings, context = load_settings(), ti_key.get_template_context()
        try:
            day = day_of(context.get("dag_run"), context.get("data_interval_start"))
        except SettingsError:
            return overview_url(settings.airflow_url)
        return self._address(settings, day)


VALIDATION_PAGE = PageLink(
    "Validation page", lambda settings, day: day_url(settings.airflow_url, day, "validation")
)
MLFLOW_RUN = PageLink(
    "MLflow run", lambda settings, day: day_url(settings.airflow_url, day, "mlflow")
)
REVIEW_QUEUE = PageLink("Review queue", lambda settings, _day: settings.console_url)
