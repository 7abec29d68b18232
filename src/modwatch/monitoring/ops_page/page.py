"""The page as an application, the pages about a day, and what the first of them shows.

It shows the worst that is open, the newest day, the week, the queue, the last audit. Every
part is read on its own: what cannot be reached is named, and the rest is shown.
"""

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import urlencode, urljoin, urlsplit

from fastapi import APIRouter, Depends, FastAPI, Form, HTTPException, Path, Request
from fastapi.exception_handlers import http_exception_handler
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from sqlalchemy import Engine
from starlette.middleware.base import RequestResponseEndpoint

from modwatch.common.addresses import Site
from modwatch.common.cache import TimedCache
from modwatch.common.errors import IncidentError, ModwatchError
from modwatch.common.html import render_html
from modwatch.data.lake.delta import Lake
from modwatch.data.validation.result import CheckStore
from modwatch.monitoring.incidents.actions import (
    Action,
    OpenIncident,
    accept,
    open_incidents,
    record,
    record_repair,
)
from modwatch.monitoring.incidents.delivery import Channels
from modwatch.monitoring.incidents.rules import AlertRule
from modwatch.monitoring.publishing.days import Day, read_days
from modwatch.monitoring.publishing.timeline_page import timeline_page
from modwatch.monitoring.publishing.view import day_run_url, days_address
from modwatch.review.empty_days import declare_empty
from modwatch.review.workload import LaneWork, overview

_WEEK = 7

#: Incidents that are listed; the others are counted.
_MOST_INCIDENTS = 30

_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class LastAudit:
    """The published audit whose period ended last."""

    name: str
    period: str
    #: Precision and recall with their intervals, as text; insufficient ones are absent.
    figures: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class OpsData:
    """What the pages read; functions open their part at the first use, and may fail."""

    lake: Lake
    checks: CheckStore
    database: Callable[[], Engine]
    channels: Callable[[], Channels]
    rules: Callable[[], Sequence[AlertRule]]
    #: None: no audit was published.
    last_audit: Callable[[], LastAudit | None]
    site: Site


@dataclass(frozen=True, kw_only=True)
class WorstOpen:
    """The open incidents of the highest severity."""

    #: critical | warning
    severity: str
    count: int
    #: The first day of the oldest.
    since: date

    @property
    def heading(self) -> str:
        """The heading of the page, as a sentence.

        >>> WorstOpen(severity="critical", count=2, since=date(2026, 10, 20)).heading
        '2 critical incidents are open, since 2026-10-20'
        """
        are = "incident is" if self.count == 1 else "incidents are"
        return f"{self.count:,} {self.severity} {are} open, since {self.since}"


@dataclass(frozen=True, kw_only=True)
class Overview:
    """The content of the page; the template uses every field."""

    #: The newest days, latest first; none before the first was published. None: they could not be
    #: read.
    week: Sequence[Day] | None
    #: Incidents that are open now, the most severe first. None: they could not be read.
    incidents: Sequence[OpenIncident] | None
    #: How many more are open.
    more_incidents: int
    #: None: neither a critical incident nor a warning is open, or that is not known.
    worst: WorstOpen | None
    #: The states of the review queues, by name and reason. None: they could not be read.
    lanes: Sequence[LaneWork] | None
    #: None before the first.
    audit: LastAudit | None
    #: Whether audits could not be read.
    audit_unknown: bool
    #: Where the review console and Airflow are.
    console_url: str
    airflow_url: str
    #: What could not be read, as sentences.
    problems: Sequence[str]

    @property
    def newest(self) -> Day | None:
        """The newest published day."""
        return self.week[0] if self.week else None


def read_overview(data: OpsData) -> Overview:
    """Return the content of the page, as it is now."""
    problems: list[str] = []
    week = _or_none(problems, lambda: read_days(data.lake, last=_WEEK)[::-1])
    incidents = _or_none(problems, lambda: open_incidents(data.database()))
    lanes = _or_none(problems, lambda: overview(data.database()))
    before = len(problems)
    audit = _or_none(problems, data.last_audit)
    return Overview(
        week=week,
        incidents=incidents and incidents[:_MOST_INCIDENTS],
        more_incidents=len((incidents or [])[_MOST_INCIDENTS:]),
        worst=worst_open(incidents or []),
        lanes=lanes,
        audit=audit,
        audit_unknown=len(problems) > before,
        console_url=data.site.console_url,
        airflow_url=data.site.airflow_url,
        problems=list(dict.fromkeys(problems)),
    )


def worst_open(incidents: Sequence[OpenIncident]) -> WorstOpen | None:
    """Return the critical incidents, without one the warnings; None if there are neither."""
    for severity in ("critical", "warning"):
        if since := [incident.since for incident in incidents if incident.severity == severity]:
            return WorstOpen(severity=severity, count=len(since), since=min(since))
    return None


def _or_none(problems: list[str], read: Callable[[], _T]) -> _T | None:
    """Return what `read` returns; after an error of Modwatch, None, and note the error."""
    try:
        return read()
    except ModwatchError as error:
        problems.append(str(error))
        return None


def render_overview(shown: Overview, *, now: datetime | None = None) -> str:
    """Return the page as HTML text."""
    now = (now or datetime.now(UTC)).astimezone(UTC)
    return render_html(
        "modwatch.monitoring.ops_page",
        "overview.html",
        shown=shown,
        days_late=_days_late(shown.newest.day, now.date()) if shown.newest else 0,
        now=f"{now:%Y-%m-%d %H:%M} UTC",
    )


def _days_late(day: date, today: date) -> int:
    """Return how old a day is; 0 if it is not older than the day before.

    >>> _days_late(date(2026, 11, 24), date(2026, 11, 25))
    0
    >>> _days_late(date(2026, 10, 20), date(2026, 11, 25))
    36
    """
    age = (today - day).days
    return age if age > 1 else 0


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
    #: Runs a day again for a person; returns what was done, as a sentence.
    repair: Callable[[date, str], str]


def create_ops_app(data: OpsData, airflow: AirflowAccess) -> FastAPI:
    """Return the application.

    `state.read` of it reads the overview, so that a request right after does not wait for it.
    """
    app = FastAPI(
        dependencies=[Depends(airflow.may_read)], openapi_url=None, docs_url=None, redoc_url=None
    )

    def overview_page() -> str:
        return render_overview(read_overview(data))

    def timeline() -> str:
        days = read_days(data.lake)
        return timeline_page(days, data.rules()) if days else overview_page()

    shown = TimedCache(overview_page, FRESH_SECONDS), TimedCache(timeline, FRESH_SECONDS)

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

    def done(text: str) -> Response:
        changed()
        return _sentence(text, status=200)

    @router.post("/days/{day}/repair")
    def repair(day: date, person: person, empty: Annotated[bool, Form()] = False) -> Response:
        try:
            if empty:
                declare_empty(data.database(), day, person)
            said = airflow.repair(day, person)
            record_repair(data.database(), day, person)
        except ModwatchError as error:
            return _sentence(str(error), status=409)
        return done(f"{said}{'. It counts as a day without comments' if empty else ''}.")

    @router.post("/incidents/{number}/{action}")
    def act(
        number: Annotated[str, Path(pattern=r"^\d{1,18}$")],
        action: Literal["acknowledge", "assign", "silence", "accept"],
        person: person,
        note: Annotated[str, Form()] = "",
        assignee: Annotated[str | None, Form()] = None,
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
                    measured=data.lake.days("measurements"),
                )
            else:
                if action == "silence" and until is None:
                    raise IncidentError("name the last day of the silence")
                taken = Action(
                    incident=number,
                    action=action,
                    person=person,
                    note=note,
                    assignee=assignee or person if action == "assign" else None,
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


def _sentence(text: str, *, status: int) -> HTMLResponse:
    """Return a page with one sentence and a link to the overview."""
    return HTMLResponse(
        f'<!doctype html><title>Modwatch</title><p>{html.escape(text)}</p><p><a href="../..">'
        "Modwatch</a></p>",
        status_code=status,
    )
