"""Applications of Modwatch inside another server, opened by their first request."""

import threading
from abc import ABC, abstractmethod
from contextlib import ExitStack
from typing import TYPE_CHECKING

# Airflow loads this module in all its processes: functions import the rest, which takes seconds.
if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from modwatch.installation.resources import Resources


class OpenedEarly:
    """Middleware that does nothing but open an application when the server around it starts.

    A server does not start applications that are mounted in it, but it creates its middleware.
    """

    def __init__(self, app: "ASGIApp", application: "MountedApplication") -> None:
        self._app = app
        application.open_early()

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Serve one request."""
        await self._app(scope, receive, send)


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

    def open_early(self) -> None:
        """Open in the background what the first request needs, which takes seconds to import."""
        threading.Thread(target=self._prepare, name="modwatch-open", daemon=True).start()

    def _prepare(self) -> None:
        self._open()

    @abstractmethod
    def _create(self, resources: "Resources", exits: ExitStack) -> "ASGIApp":
        """Return the application; what `exits` holds is closed with it."""

    def _open(self) -> "ASGIApp":
        from modwatch.installation.resources import Resources
        from modwatch.settings import load_settings

        with self._lock:
            if self._app is not None:  # another request was first
                return self._app
            with ExitStack() as opened:  # closed again if the next steps fail
                app = self._create(Resources(load_settings(), opened), opened)
                self._exit.enter_context(opened.pop_all())
            self._app = app
            return app
