"""The page inside Airflow's server, for people who are logged in there."""

import datetime
from contextlib import ExitStack
from typing import TYPE_CHECKING

from modwatch.installation.mounted import MountedApplication

# Airflow loads this module in all its processes: functions import the rest, which takes seconds.
if TYPE_CHECKING:
    from fastapi import FastAPI

    from modwatch.installation.ops_page.day_pages import DagRunOf
    from modwatch.installation.resources import Resources


#: The DAGs that score a day and that measure it.
SCORING, MEASURING = "score_comments", "monitor_collaboration"


class MountedOpsPage(MountedApplication):
    """The page inside Airflow's server, which says who is logged in."""

    def _create(self, at: "Resources", _exits: ExitStack) -> "FastAPI":
        from airflow.api_fastapi.auth.managers.models.resource_details import AccessView
        from airflow.api_fastapi.core_api.security import requires_access_view

        from modwatch.installation.ops_page.app import create_ops_app

        return create_ops_app(at, requires_access_view(AccessView.WEBSITE), find_run)

    def _prepare(self) -> None:
        """Read the page once: imports, MLflow, the database."""
        self._open().state.read()  # type: ignore[attr-defined]


def find_run(day: datetime.date) -> "DagRunOf | None":
    """Return the newest run that scored `day`; without one, the newest that measured it."""
    from airflow.models import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import select

    from modwatch.installation.ops_page.day_pages import DagRunOf

    first = datetime.datetime.combine(day, datetime.time(), tzinfo=datetime.UTC)
    scoring = (
        DagRun.data_interval_start >= first,
        DagRun.data_interval_start < first + datetime.timedelta(days=1),
    )
    of_day = {SCORING: scoring, MEASURING: (DagRun.partition_key == day.isoformat(),)}
    with create_session() as session:
        for dag, covers in of_day.items():
            runs = select(DagRun.run_id).where(DagRun.dag_id == dag, *covers)
            run = session.scalar(runs.order_by(DagRun.id.desc()).limit(1))
            if run is not None:
                return DagRunOf(dag=dag, run=run)
    return None
