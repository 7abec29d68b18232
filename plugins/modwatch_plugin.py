"""Puts Modwatch in Airflow's navigation, under *Plugins*: its page, the console, MLflow.

At the top level, Airflow 3.3 shows links to other addresses as buttons that do nothing. Inside its
own page it would show them in a frame in which no link to MLflow or to Airflow works.
Airflow leaves the endpoints of plugins open to everybody. So the console, which Airflow serves at
`/modwatch`, asks for its own log-in, and the page, at `/modwatch-ops`, for that of Airflow.

It registers the timetables of the DAGs, too, without which Airflow does not read them.
"""

from typing import ClassVar

from airflow.plugins_manager import AirflowPlugin

from modwatch.common.addresses import OPS_PREFIX, overview_url
from modwatch.installation.console import AIRFLOW_PREFIX, MountedConsole
from modwatch.installation.mounted import MountedOpsPage
from modwatch.pipeline.airflow.timetables import DayTimetable, EveryDayTimetable
from modwatch.settings import load_settings

_settings = load_settings()


class ModwatchPlugin(AirflowPlugin):
    """The page and the console, and links to them and to MLflow."""

    name = "modwatch"
    timetables: ClassVar = [DayTimetable, EveryDayTimetable]
    fastapi_apps: ClassVar = [
        {"name": "Modwatch review", "app": MountedConsole(), "url_prefix": AIRFLOW_PREFIX},
        {"name": "Modwatch", "app": MountedOpsPage(), "url_prefix": OPS_PREFIX},
    ]
    external_views: ClassVar = [
        {
            "name": "Modwatch",
            "href": overview_url(_settings.airflow_url),
            "destination": "nav",
        },
        {
            "name": "Review",
            "href": f"{_settings.airflow_url.rstrip('/')}{AIRFLOW_PREFIX}/",
            "destination": "nav",
        },
        {
            "name": "MLflow",
            "href": f"{overview_url(_settings.airflow_url)}mlflow",
            "destination": "nav",
        },
    ]
