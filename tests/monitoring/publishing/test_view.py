"""The saved view of the days' runs, as MLflow's own pages show it."""

import dataclasses
from datetime import date, timedelta

from modwatch.common.mlflow_client import connect, experiment_id
from modwatch.monitoring.incidents.messages.incidents import ActiveAlert
from modwatch.monitoring.publishing.content import DayTables
from modwatch.monitoring.publishing.keys import key_figures
from modwatch.monitoring.publishing.runs import publish_day
from modwatch.monitoring.publishing.timeline import publish_timeline
from modwatch.monitoring.publishing.view import days_address, days_url

DAY = date(2026, 1, 5)
COLUMNS = ["status", "alerts", "window accuracy", "window OC-Acc", "window RE", "comments",
           "labels", "checks", "window"]  # fmt: skip


def test_the_view_is_saved_once(mlflow_url, experiment):
    url = days_url(mlflow_url, experiment)
    with connect(mlflow_url) as client:
        number = experiment_id(client, experiment)
        before = client.get_experiment(number).tags
        assert days_url(mlflow_url, experiment) == url
        assert client.get_experiment(number).tags == before
    assert url.endswith(f"/#/experiments/{number}/runs?workflowType=machine_learning&"
                        "viewStateShareKey=days")  # fmt: skip


def test_while_mlflow_is_down_its_start_page_is_the_address(free_port):
    down = f"http://ops:secret@127.0.0.1:{free_port}"
    assert days_address(down) == f"http://127.0.0.1:{free_port}"


def test_mlflow_shows_one_row_a_day_with_its_status(
    chromium, mlflow_url, experiment, measure, facts
):
    """The newest day first, all columns, no run that is not a day."""
    critical = ActiveAlert(
        rule="accuracy_fell", subject="", severity="critical", since=DAY, description=""
    )
    days = []
    for number, alerts in enumerate([(), (critical,)]):
        day = dataclasses.replace(facts, day=DAY + timedelta(days=number), alerts=alerts)
        tables = DayTables(estimates=measure(day.day))
        days.append(dataclasses.replace(day, figures=key_figures(tables, day)))
        publish_day(days[-1], tables, tracking_uri=mlflow_url, experiment=experiment)
    publish_timeline(days, (), {}, tracking_uri=mlflow_url, experiment=experiment)
    with chromium.new_context(viewport={"width": 2600, "height": 900}) as context:
        page = context.new_page()
        page.goto(days_url(mlflow_url, experiment))
        page.get_by_text("critical since 2026-01-05").wait_for(timeout=60_000)
        names = page.locator("a[href*='/runs/']").all_inner_texts()
        heads = [
            (head.bounding_box()["x"], head.inner_text().strip())
            for head in page.locator("[role=columnheader]").all()
            if head.is_visible()
        ]
        page.set_viewport_size({"width": 1440, "height": 900})
        ends = {
            head.inner_text().strip(): head.bounding_box()["x"] + head.bounding_box()["width"]
            for head in page.locator("[role=columnheader]").all()
            if head.is_visible()
        }
        panel = page.get_by_text("MLflow Assistant").bounding_box()
    shown = [name for name in names if name.startswith("2026") or name == "timeline"]
    assert shown == ["2026-01-06", "2026-01-05"]
    assert all(ends[name] <= panel["x"] for name in COLUMNS[:4]), "seen without scrolling"
    in_order = [name for _, name in sorted(heads) if name in COLUMNS]
    assert list(dict.fromkeys(in_order)) == COLUMNS
