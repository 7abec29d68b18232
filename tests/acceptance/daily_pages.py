"""Airflow's pages in a browser, and the run of a day in MLflow, for tests of the daily job."""

import datetime

import httpx
from daily_job import DailyJob
from playwright.sync_api import BrowserContext, Page


def log_in(job: DailyJob, context: BrowserContext) -> None:
    """Log the administrator of Airflow in, for all pages of a context."""
    page = context.new_page()
    page.goto(job.demo.settings.airflow_url)
    page.fill("input[name=username]", "admin")
    page.fill("input[name=password]", job.demo.airflow.password)
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Plugins").wait_for()
    leave(page)


def leave(*pages: Page) -> None:
    """Leave pages of Airflow, which would draw and ask the server all the time."""
    for page in pages:
        page.goto("about:blank")


def choose(page: Page, name: str, place: int, by: str) -> None:
    """Choose the entry at a place of the menu *Plugins*."""
    menu, entry = (
        page.get_by_role("button", name="Plugins"),
        page.get_by_role("menuitem", name=name),
    )
    menu.focus()
    if by == "mouse":
        menu.click()
        entry.hover()
        page.wait_for_selector(f"[role=menuitem][data-highlighted]:has-text('{name}')")
        entry.click()
        return
    page.keyboard.press("Enter")
    entry.wait_for()
    for _ in range(place):
        page.keyboard.press("ArrowDown")
    page.wait_for_selector(f"[role=menuitem][data-highlighted]:has-text('{name}')")
    page.keyboard.press("Enter")


def day_run(mlflow_url: str, day: datetime.date) -> dict[str, dict[str, dict[str, object]]]:
    """Return the day's only run, as MLflow's own API tells it, metrics and tags by name."""
    with httpx.Client(base_url=f"{mlflow_url}/api/2.0/mlflow", trust_env=False) as client:
        found = client.get("/experiments/get-by-name", params={"experiment_name": "modwatch"})
        experiment = found.json()["experiment"]["experiment_id"]
        wanted = {"experiment_ids": [experiment], "filter": f"tags.day = '{day}'"}
        runs = client.post("/runs/search", json=wanted).json()["runs"]
    assert len(runs) == 1
    data = runs[0]["data"]
    return {"data": {n: {e["key"]: e["value"] for e in data[n]} for n in ("metrics", "tags")}}
