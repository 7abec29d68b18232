"""The page inside Airflow's server, for people who are logged in there."""

import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING

from modwatch.settings import load_settings

# Airflow loads this module in all its processes: functions import the rest, which takes seconds.
if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.types import Receive, Scope, Send

#: Path of the page on Airflow's address.
OPS_PREFIX = "/modwatch-ops"


class MountedOpsPage:
    """The page inside Airflow's server; the first request imports and opens what it needs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._app: FastAPI | None = None
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

    def _open(self) -> "FastAPI":
        from airflow.api_fastapi.auth.managers.models.resource_details import AccessView
        from airflow.api_fastapi.core_api.security import requires_access_view

        from modwatch.ops_page.app import create_ops_app
        from modwatch.resources import Resources

        with self._lock:
            if self._app is None:
                at = self._exit.enter_context(ExitStack())
                self._app = create_ops_app(
                    Resources(load_settings(), at), requires_access_view(AccessView.WEBSITE)
                )
            return self._app
