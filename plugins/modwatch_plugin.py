"""Puts the review console and the MLflow dashboard in Airflow's navigation, under *Plugins*.

At the top level, Airflow 3.3 shows links to other addresses as buttons that do nothing.
Airflow serves the console too, at `/modwatch`. Whichever way it is reached, the console asks for
its own log-in: Airflow leaves the endpoints of plugins open to everybody.
"""

from typing import ClassVar

from airflow.plugins_manager import AirflowPlugin

from modwatch.console import AIRFLOW_PREFIX, MountedConsole
from modwatch.settings import load_settings

_settings = load_settings()


class ModwatchPlugin(AirflowPlugin):
    """The console, and links to it and to MLflow."""

    name = "modwatch"
    fastapi_apps: ClassVar = [
        {"name": "Modwatch review", "app": MountedConsole(), "url_prefix": AIRFLOW_PREFIX}
    ]
    external_views: ClassVar = [
        {
            "name": "Review",
            "href": f"{_settings.airflow_url.rstrip('/')}{AIRFLOW_PREFIX}/",
            "destination": "nav",
        },
        {
            "name": "MLflow",
            "href": f"{_settings.mlflow_url}/#/experiments?workflowType=machine_learning",
            "destination": "nav",
        },
    ]
