"""The pages about one day: each address leads to what there is of the day now."""

import datetime
import html
from collections.abc import Callable
from typing import NamedTuple

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from modwatch.addresses import DayPage
from modwatch.errors import ModwatchError
from modwatch.resources import Resources
from modwatch.tracking.view import day_run_url


class DagRunOf(NamedTuple):
    """A run in Airflow that covered a day."""

    dag: str
    run: str


#: Returns the run in Airflow that scored a day, or, without one, that measured it.
FindRun = Callable[[datetime.date], DagRunOf | None]


def day_router(at: Resources, find_run: FindRun) -> APIRouter:
    """Return the routes of the pages about a day."""
    router, settings = APIRouter(), at.settings

    def airflow(day: datetime.date) -> Response:
        found = find_run(day)
        if found is None:
            return missing(day, "no run in Airflow")
        base = settings.airflow_url.rstrip("/")
        return RedirectResponse(f"{base}/dags/{found.dag}/runs/{found.run}")

    def mlflow(day: datetime.date) -> Response:
        url = day_run_url(settings.mlflow_url, day)
        return RedirectResponse(url) if url else missing(day, "no run in MLflow")

    def validation(day: datetime.date) -> Response:
        page = at.checks.read_page(day)
        return HTMLResponse(page) if page else missing(day, "no validation page")

    pages: dict[DayPage, Callable[[datetime.date], Response]] = {
        "airflow": airflow,
        "mlflow": mlflow,
        "validation": validation,
    }

    @router.get("/days/{day}/{page}")
    def show(day: datetime.date, page: DayPage) -> Response:
        try:
            answer = pages[page](day)
        except ModwatchError as error:
            answer = said(str(error), status=503)
        answer.headers["Cache-Control"] = "no-store"
        return answer

    return router


def missing(day: datetime.date, what: str) -> HTMLResponse:
    """Return the page that tells that there is nothing to show of a day yet."""
    return said(f"{day} has {what} yet.", status=404)


def said(text: str, *, status: int) -> HTMLResponse:
    """Return a page with one sentence and a link to the overview."""
    return HTMLResponse(
        f'<!doctype html><title>Modwatch</title><p>{html.escape(text)}</p><p><a href="../..">'
        "Modwatch</a></p>",
        status_code=status,
    )
