"""The pages about one day: each address leads to what there is of the day now."""

import datetime
import html
from collections.abc import Callable
from typing import NamedTuple

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from modwatch.common.addresses import DAY_PAGES, DayPage
from modwatch.common.errors import ModwatchError
from modwatch.installation.resources import Resources
from modwatch.monitoring.publishing.view import day_run_url


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
    def show(day: str, page: str) -> Response:
        try:
            answer = pages[_page_named(page)](_day_named(day))
        except _NoAddressError as error:
            answer = said(str(error), status=404)
        except ModwatchError as error:
            answer = said(str(error), status=503)
        answer.headers["Cache-Control"] = "no-store"
        return answer

    return router


class _NoAddressError(Exception):
    """An address is that of no page; the message says what one looks like."""


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
