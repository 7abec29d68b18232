"""The page as an application, and the pages about a day; the server around it checks the log-in."""

import datetime
import html
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import urlencode, urljoin

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request
from fastapi.exception_handlers import http_exception_handler
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from modwatch.common.addresses import DAY_PAGES, DayPage
from modwatch.common.errors import ModwatchError
from modwatch.monitoring.ops_page.overview import OpsData, read_overview, render_overview
from modwatch.monitoring.publishing.days import read_days
from modwatch.monitoring.publishing.timeline_page import timeline_page
from modwatch.monitoring.publishing.view import day_run_url, days_address

#: Seconds for which a page is shown again before it is read anew.
FRESH_SECONDS = 15.0

_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class DagRunOf(NamedTuple):
    """A run in Airflow that covered a day."""

    dag: str
    run: str


#: Returns the run in Airflow that scored a day, or, without one, that measured it.
FindRun = Callable[[datetime.date], DagRunOf | None]


def create_ops_app(data: OpsData, logged_in: Callable[..., Any], find_run: FindRun) -> FastAPI:
    """Return the application; every request must pass the dependency `logged_in`.

    `state.read` of it reads the overview, so that a request right after does not wait for it.
    """
    app = FastAPI(
        dependencies=[Depends(logged_in)], openapi_url=None, docs_url=None, redoc_url=None
    )

    def overview_page() -> str:
        return render_overview(read_overview(data))

    def timeline() -> str:
        days = read_days(data.lake)
        return timeline_page(days, data.rules()) if days else overview_page()

    shown = _Fresh(overview_page), _Fresh(timeline)

    @app.get("/")
    def show_overview() -> HTMLResponse:
        return HTMLResponse(shown[0].text(), headers=_HEADERS)

    @app.get("/timeline")
    def show_timeline() -> HTMLResponse:
        try:
            return HTMLResponse(shown[1].text(), headers=_HEADERS)
        except ModwatchError:  # the overview names what cannot be read
            return HTMLResponse(shown[0].text(), headers=_HEADERS, status_code=503)

    @app.get("/mlflow")
    def open_mlflow() -> RedirectResponse:
        """Redirect to the saved view of the days, or to MLflow's start page while it is down."""
        return RedirectResponse(days_address(data.site.mlflow_url))

    @app.exception_handler(401)
    async def ask_for_log_in(request: Request, error: HTTPException) -> Response:
        """Redirect to Airflow's log-in page, and from there back to this page."""
        if "text/html" not in request.headers.get("accept", ""):
            return await http_exception_handler(request, error)
        here = urljoin(data.site.airflow_url, request.url.path)
        base = data.site.airflow_url.rstrip("/")
        return RedirectResponse(f"{base}/api/v2/auth/login?{urlencode({'next': here})}")

    app.include_router(day_router(data, find_run))
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


def day_router(data: OpsData, find_run: FindRun) -> APIRouter:
    """Return the routes of the pages about a day."""
    router = APIRouter()

    def airflow(day: datetime.date) -> Response:
        found = find_run(day)
        if found is None:
            return _missing(day, "no run in Airflow")
        base = data.site.airflow_url.rstrip("/")
        return RedirectResponse(f"{base}/dags/{found.dag}/runs/{found.run}")

    def mlflow(day: datetime.date) -> Response:
        url = day_run_url(data.site.mlflow_url, day)
        return RedirectResponse(url) if url else _missing(day, "no run in MLflow")

    def validation(day: datetime.date) -> Response:
        page = data.checks.read_page(day)
        return HTMLResponse(page) if page else _missing(day, "no validation page")

    pages: dict[DayPage, Callable[[datetime.date], Response]] = {
        "airflow": airflow,
        "mlflow": mlflow,
        "validation": validation,
    }

    @router.get("/days/{day}/{page}")
    def show(day: str, page: str) -> Response:
        try:
            answer = pages[_page_named(page)](_day_named(day))
        except _NoAddressError as error:
            answer = _sentence(str(error), status=404)
        except ModwatchError as error:
            answer = _sentence(str(error), status=503)
        answer.headers["Cache-Control"] = "no-store"
        return answer

    return router


class _NoAddressError(Exception):
    """No page has this address; the message shows what one looks like."""


def _day_named(text: str) -> datetime.date:
    try:
        return datetime.datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=datetime.UTC).date()
    except ValueError:
        raise _NoAddressError(
            "The address names no day: write a day of the calendar as YYYY-MM-DD, such as "
            "days/2026-01-31/validation, or open a day from the overview."
        ) from None


def _page_named(text: str) -> DayPage:
    found = next((page for page in DAY_PAGES if page == text), None)
    if found is None:
        raise _NoAddressError(
            f"A day has no page of this name; it has {', '.join(DAY_PAGES)}. Open one from the "
            "overview."
        )
    return found


def _missing(day: datetime.date, what: str) -> HTMLResponse:
    return _sentence(f"{day} has {what} yet.", status=404)


def _sentence(text: str, *, status: int) -> HTMLResponse:
    """Return a page with one sentence and a link to the overview."""
    return HTMLResponse(
        f'<!doctype html><title>Modwatch</title><p>{html.escape(text)}</p><p><a href="../..">'
        "Modwatch</a></p>",
        status_code=status,
    )
