"""The page as an application; whoever serves it says who is logged in."""

import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode, urljoin

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.exception_handlers import http_exception_handler
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from modwatch.common.errors import ModwatchError
from modwatch.installation.ops_page.day_pages import FindRun, day_router
from modwatch.installation.ops_page.overview import read_overview, render_overview
from modwatch.installation.resources import Resources
from modwatch.monitoring.publishing.history import thresholds
from modwatch.monitoring.publishing.runs import published_history
from modwatch.monitoring.publishing.timeline_page import timeline_page
from modwatch.monitoring.publishing.view import days_address

#: Seconds for which a page is shown again before it is read anew.
FRESH_SECONDS = 15.0

_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


def create_ops_app(at: Resources, logged_in: Callable[..., Any], find_run: FindRun) -> FastAPI:
    """Return the application; every request must pass the dependency `logged_in`.

    `state.read` of it reads the overview, so that a request right after does not wait for it.
    """
    app = FastAPI(
        dependencies=[Depends(logged_in)], openapi_url=None, docs_url=None, redoc_url=None
    )
    settings = at.settings

    def overview_page() -> str:
        return render_overview(read_overview(at))

    def timeline() -> str:
        days = published_history(settings.mlflow_url)
        return timeline_page(days, thresholds(at.alert_rules)) if days else overview_page()

    shown = _Fresh(overview_page), _Fresh(timeline)

    @app.get("/")
    def show_overview() -> HTMLResponse:
        return HTMLResponse(shown[0].text(), headers=_HEADERS)

    @app.get("/timeline")
    def show_timeline() -> HTMLResponse:
        try:
            return HTMLResponse(shown[1].text(), headers=_HEADERS)
        except ModwatchError:  # MLflow is down: the overview says so
            return HTMLResponse(shown[0].text(), headers=_HEADERS, status_code=503)

    @app.get("/mlflow")
    def open_mlflow() -> RedirectResponse:
        """Lead to the saved view of the days, or to MLflow's start while it is down."""
        return RedirectResponse(days_address(settings.mlflow_url))

    @app.exception_handler(401)
    async def ask_for_log_in(request: Request, error: HTTPException) -> Response:
        """Lead people to Airflow's log-in, and from there back to the page."""
        if "text/html" not in request.headers.get("accept", ""):
            return await http_exception_handler(request, error)
        here = urljoin(settings.airflow_url, request.url.path)
        base = settings.airflow_url.rstrip("/")
        return RedirectResponse(f"{base}/api/v2/auth/login?{urlencode({'next': here})}")

    app.include_router(day_router(at, find_run))
    app.state.read = shown[0].text
    return app


class _Fresh:
    """A page that is made at most once in `FRESH_SECONDS`, however many ask for it."""

    def __init__(self, make: Callable[[], str]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._made: tuple[float, str] | None = None

    def text(self) -> str:
        with self._lock:
            if self._made is None or time.monotonic() - self._made[0] > FRESH_SECONDS:
                self._made = time.monotonic(), self._make()
            return self._made[1]
