"""Puts the review console and the MLflow dashboard in Airflow's navigation."""

from typing import ClassVar

from airflow.plugins_manager import AirflowPlugin

from modwatch.settings import load_settings

_settings = load_settings()


class ModwatchPlugin(AirflowPlugin):
    """Links only: the console asks for its own log-in, whichever way it is reached."""

    name = "modwatch"
    external_views: ClassVar = [
        {
            "name": "Review",
            "href": _settings.console_url,
            "destination": "nav",
            "nav_top_level": True,
        },
        {
            "name": "MLflow",
            "href": f"{_settings.mlflow_url}/#/experiments?workflowType=machine_learning",
            "destination": "nav",
            "nav_top_level": True,
        },
    ]
