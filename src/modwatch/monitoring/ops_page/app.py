"""The page as an application: the pages about a day, and what people do on them."""

import html
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Annotated, Any, Literal
from urllib.parse import urlencode, urljoin, urlsplit

from fastapi import APIRouter, Depends, FastAPI, Form, HTTPException, Path, Request
from fastapi.exception_handlers import http_exception_handler
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.middleware.base import RequestResponseEndpoint

from modwatch.common.cache import TimedCache
from modwatch.common.errors import IncidentError, ModwatchError
from modwatch.monitoring.incidents.actions import Action, accept, record, repair
from modwatch.monitoring.ops_page.page import OpsData, overview_page
from modwatch.monitoring.publishing.days import read_days
from modwatch.monitoring.publishing.timeline_charts import read_charts
from modwatch.monitoring.publishing.timeline_page import timeline_page
from modwatch.monitoring.publishing.view import day_run_url, days_address

#: Seconds for which a page is shown again before it is read anew.
FRESH_SECONDS = 15.0

#: Pages allow their own style sheet by its hash; this is for those that have none, and for frames.
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'self'",
}


@dataclass(frozen=True, kw_only=True)
class AirflowAccess:
    """What the pages need of the Airflow around them."""

    #: A dependency of every request, which fails unless somebody is logged in.
    may_read: Callable[..., Any]
    #: A dependency that returns the name of a person who may act, and fails for others.
    operator: Callable[..., str]
    #: Returns the path of the page of the run in Airflow that covered a day.
    run_path: Callable[[date], str | None]
    #: Runs a day again for a person; returns what was done, as a sentence without full stop.
    repair: Callable[[date, str], str]


def create_ops_app(data: OpsData, airflow: AirflowAccess) -> FastAPI:
    """Return the application.

    `state.read` of it reads the overview, so that a request right after does not wait for it.
    """
    app = FastAPI(
        dependencies=[Depends(airflow.may_read)], openapi_url=None, docs_url=None, redoc_url=None
    )

    def overview() -> str:
        return overview_page(data)

    def timeline() -> str:
        days = read_days(data.lake)
        if not days:
            return overview()
        return timeline_page(days, data.rules(), read_charts(data.lake))

    shown = TimedCache(overview, FRESH_SECONDS), TimedCache(timeline, FRESH_SECONDS)

    @app.middleware("http")
    async def with_headers(request: Request, following: RequestResponseEndpoint) -> Response:
        answer = await following(request)
        answer.headers.update(_HEADERS)
        return answer

    @app.get("/")
    def show_overview() -> HTMLResponse:
        return HTMLResponse(shown[0]())

    @app.get("/timeline")
    def show_timeline() -> HTMLResponse:
        try:
            return HTMLResponse(shown[1]())
        except ModwatchError:  # the overview names what cannot be read
            return HTMLResponse(shown[0](), status_code=503)

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

    app.include_router(day_router(data, airflow.run_path))
    app.include_router(action_router(data, airflow, shown[0].clear))
    app.state.read = shown[0]
    return app


def action_router(data: OpsData, airflow: AirflowAccess, changed: Callable[[], None]) -> APIRouter:
    """Return the routes of what people do: repair a day, and act on an incident.

    `changed` is called after each.
    """
    router = APIRouter(dependencies=[Depends(_from_this_page)])
    person = Annotated[str, Depends(airflow.operator)]

    def done(text: str, overview: str = "../..") -> Response:
        changed()
        return _sentence(text, status=200, overview=overview)

    @router.post("/days/repair")
    def repair_day(
        day: Annotated[date, Form()], person: person, empty: Annotated[bool, Form()] = False
    ) -> Response:
        try:
            said = repair(data.database(), day, person, run=airflow.repair, empty=empty)
        except ModwatchError as error:
            return _sentence(str(error), status=409, overview="..")
        return done(said, overview="..")

    @router.post("/incidents/{number}/{action}")
    def act(
        number: Annotated[str, Path(pattern=r"^\d{1,18}$")],
        action: Literal["acknowledge", "silence", "accept"],
        person: person,
        note: Annotated[str, Form()] = "",
        until: Annotated[date | None, Form()] = None,
    ) -> Response:
        try:
            if action == "accept":
                accept(
                    data.database(),
                    data.channels(),
                    number,
                    person=person,
                    note=note,
                    measured=data.lake.days("estimates"),
                )
            else:
                if action == "silence" and until is None:
                    raise IncidentError("name the last day of the silence")
                taken = Action(
                    incident=number,
                    action=action,
                    person=person,
                    note=note,
                    until=until if action == "silence" else None,
                )
                record(data.database(), taken)
        except ModwatchError as error:
            return _sentence(str(error), status=409)
        return done(f"Recorded: {action} by {person}.")

    return router


def _from_this_page(request: Request) -> None:
    """Refuse a form of another site, which a browser would send with the cookie of the log-in."""
    site = request.headers.get("sec-fetch-site")
    origin = urlsplit(request.headers.get("origin", "")).netloc
    if site not in (None, "same-origin") or (site is None and origin != request.url.netloc):
        raise HTTPException(403, "the form is of another site; open Modwatch's page in Airflow")


def day_router(data: OpsData, run_path: Callable[[date], str | None]) -> APIRouter:
    """Return the routes of the pages about a day."""
    router = APIRouter()

    def airflow(day: date) -> Response:
        found = run_path(day)
        if found is None:
            return _missing(day, "no run in Airflow")
        return RedirectResponse(f"{data.site.airflow_url.rstrip('/')}/{found}")

    def mlflow(day: date) -> Response:
        url = day_run_url(data.site.mlflow_url, day)
        return RedirectResponse(url) if url else _missing(day, "no run in MLflow")

    def validation(day: date) -> Response:
        page = data.checks.read_page(day)
        return HTMLResponse(page) if page else _missing(day, "no validation page")

    pages: dict[str, Callable[[date], Response]] = {
        "airflow": airflow,
        "mlflow": mlflow,
        "validation": validation,
    }

    @router.get("/days/{day}/{page}")
    def show(day: str, page: str) -> Response:
        if page not in pages:
            named = f"A day has no page of this name; it has {', '.join(pages)}."
            return _sentence(f"{named} Open one from the overview.", status=404)
        try:
            chosen = datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC).date()
        except ValueError:
            return _sentence(
                "The address names no day: write a day of the calendar as YYYY-MM-DD, such as "
                "days/2026-01-31/validation, or open a day from the overview.",
                status=404,
            )
        try:
            return pages[page](chosen)
        except ModwatchError as error:
            return _sentence(str(error), status=503)

    return router


def _missing(day: date, what: str) -> HTMLResponse:
    return _sentence(f"{day} has {what} yet.", status=404)


def _sentence(text: str, *, status: int, overview: str = "../..") -> HTMLResponse:
    """Return a page with one sentence and a link to the overview."""
    return HTMLResponse(
        f'<!doctype html><title>Modwatch</title><p>{html.escape(text)}</p><p><a href="{overview}">'
        "Modwatch</a></p>",
        status_code=status,
    )
