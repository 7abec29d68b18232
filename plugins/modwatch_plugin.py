"""Puts Modwatch in Airflow's navigation, under *Plugins*: its page, the console, MLflow.

At the top level, Airflow 3.3 shows links to other addresses as buttons that do nothing.
Airflow leaves the endpoints of plugins open to everybody. So the console, which Airflow serves at
`/modwatch`, asks for its own log-in, and the page, at `/modwatch-ops`, for that of Airflow.
"""

from typing import ClassVar

from airflow.plugins_manager import AirflowPlugin

from modwatch.console import AIRFLOW_PREFIX, MountedConsole
from modwatch.ops_page.mount import OPS_PREFIX, MountedOpsPage
from modwatch.settings import load_settings

_settings = load_settings()


class ModwatchPlugin(AirflowPlugin):
    """The page and the console, and links to them and to MLflow."""

    name = "modwatch"
    fastapi_apps: ClassVar = [
        {"name": "Modwatch review", "app": MountedConsole(), "url_prefix": AIRFLOW_PREFIX},
        {"name": "Modwatch", "app": MountedOpsPage(), "url_prefix": OPS_PREFIX},
    ]
    external_views: ClassVar = [
        {
            "name": "Modwatch",
            "href": f"{_settings.airflow_url.rstrip('/')}{OPS_PREFIX}/",
            "destination": "nav",
            "url_route": "modwatch",
        },
        {
            "name": "Review",
            "href": f"{_settings.airflow_url.rstrip('/')}{AIRFLOW_PREFIX}/",
            "destination": "nav",
        },
        {
            "name": "MLflow",
            "href": f"{_settings.airflow_url.rstrip('/')}{OPS_PREFIX}/mlflow",
            "destination": "nav",
        },
    ]
