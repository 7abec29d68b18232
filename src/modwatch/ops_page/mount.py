"""The page inside Airflow's server, for people who are logged in there."""

from contextlib import ExitStack
from typing import TYPE_CHECKING

from modwatch.mounted import MountedApplication

# Airflow loads this module in all its processes: functions import the rest, which takes seconds.
if TYPE_CHECKING:
    from fastapi import FastAPI

    from modwatch.resources import Resources

#: Path of the page on Airflow's address.
OPS_PREFIX = "/modwatch-ops"


class MountedOpsPage(MountedApplication):
    """The page inside Airflow's server, which says who is logged in."""

    def _create(self, at: "Resources", _exits: ExitStack) -> "FastAPI":
        from airflow.api_fastapi.auth.managers.models.resource_details import AccessView
        from airflow.api_fastapi.core_api.security import requires_access_view

        from modwatch.ops_page.app import create_ops_app

        return create_ops_app(at, requires_access_view(AccessView.WEBSITE))
