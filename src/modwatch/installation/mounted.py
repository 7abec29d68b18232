"""Applications of Modwatch inside another server, opened by their first request."""

import threading
from abc import ABC, abstractmethod
from contextlib import ExitStack
from typing import TYPE_CHECKING

# Airflow loads this module in all its processes: functions import the rest, which takes seconds.
if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi import FastAPI
    from starlette.types import ASGIApp, Receive, Scope, Send

    from modwatch.installation.resources import Resources
    from modwatch.monitoring.ops_page.page import OpsData


class MountedApplication(ABC):
    """An application inside another server; the first request opens what it needs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._app: ASGIApp | None = None
        self._exit = ExitStack()

    def close(self) -> None:
        """Close the connections; the next request opens them again."""
        with self._lock:
            self._app = None
            self._exit.close()

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Serve one request."""
        from starlette.concurrency import run_in_threadpool

        if self._app is None:
            self._app = await run_in_threadpool(self._open)
        await self._app(scope, receive, send)

    @abstractmethod
    def _create(self, resources: "Resources", exits: ExitStack) -> "ASGIApp":
        """Return the application; what `exits` holds is closed with it."""

    def _open(self) -> "ASGIApp":
        from modwatch.installation.resources import Resources
        from modwatch.settings import load_settings

        with self._lock:
            if self._app is not None:  # another request was first
                return self._app
            with ExitStack() as failed:
                failed.callback(self._exit.close)
                self._app = self._create(Resources(load_settings(), self._exit), self._exit)
                failed.pop_all()
            return self._app


class MountedOpsPage(MountedApplication):
    """The page inside Airflow's server, which checks who is logged in, and what they may do."""

    def _create(self, resources: "Resources", _exits: ExitStack) -> "FastAPI":
        from airflow.api_fastapi.auth.managers.models.resource_details import AccessView
        from airflow.api_fastapi.core_api.security import requires_access_view

        from modwatch.installation.day_runs import repair_day, run_path
        from modwatch.monitoring.ops_page.app import AirflowAccess, create_ops_app

        access = AirflowAccess(
            may_read=requires_access_view(AccessView.WEBSITE),
            operator=operator(),
            run_path=run_path,
            repair=repair_day,
        )
        return create_ops_app(ops_data(resources), access)


def operator() -> "Callable[..., str]":
    """Return a dependency that returns the name of a user who may run DAGs again.

    Others are answered 403.
    """
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.models.resource_details import (
        DagAccessEntity,
        DagDetails,
    )
    from airflow.api_fastapi.core_api.security import GetUserDep
    from fastapi import HTTPException

    from modwatch.common.installed import SCORING

    def name(user: GetUserDep) -> str:
        may = get_auth_manager().is_authorized_dag(
            method="PUT",
            access_entity=DagAccessEntity.RUN,
            details=DagDetails(id=SCORING),
            user=user,
        )
        if not may:
            raise HTTPException(403, f"your role in Airflow may not run {SCORING}; ask an admin")
        return str(user.get_name())

    return name


def ops_data(resources: "Resources") -> "OpsData":
    """Return what the page reads of an installation."""
    from modwatch.monitoring.ops_page.page import OpsData

    return OpsData(
        lake=resources.lake,
        checks=resources.checks,
        database=lambda: resources.database,
        channels=lambda: resources.alert_channels,
        rules=lambda: resources.alert_rules,
        last_audit=lambda: last_audit(resources),
        site=resources.site,
    )


def last_audit(resources: "Resources") -> str | None:
    """Return the published audit whose period ended last, in a sentence; None before the first.

    Raises:
        AuditError: the chain of an audit was changed.
    """
    import json

    from modwatch.audits import files

    store = resources.audit_store
    results = [
        json.loads(store.file(name, files.RESULT))
        for name in store.names()
        if any(event.action == "published" for event in store.chain(name))
    ]
    if not results:
        return None
    result = max(results, key=lambda result: str(result["last_day"]))
    figures = {figure["metric"]: figure for figure in result["figures"]}
    shown = [
        "{metric} {value:.3f} ({low:.3f} to {high:.3f})".format(**figures[metric])
        for metric in ("precision", "recall")
        if figures[metric]["value"] is not None
    ]
    period = f"{result['first_day']} to {result['last_day']}"
    return f"{result['audit']}, {period}: {'; '.join(shown) or 'insufficient'}"
