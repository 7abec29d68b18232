import datetime
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from mlflow import MlflowClient
from mlflow.entities import Run

from installation import (
    MONDAY,
    TUESDAY,
    Installation,
    published,
    review,
)
from modwatch.common.errors import DayRejectedError
from modwatch.data.lake.day_scores import day_scores
from modwatch.data.lake.schemas import TABLES
from modwatch.installation.resources import Resources, open_resources
from modwatch.monitoring.publishing.days import read_days
from modwatch.monitoring.publishing.publication import record_days
from modwatch.pipeline import retention
from modwatch.statistics.collaboration.review_strategies import REVIEW_SCORES

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

Install = Callable[..., Installation]


def recorded(resources: Resources, day: datetime.date) -> list[datetime.date]:
    """Return the days of the window whose result is new, and record them."""
    return record_days(
        resources.lake, resources.checks, day, window_days=resources.settings.window_days
    )


def digests(resources: Resources) -> dict[datetime.date, str]:
    return {day.day: day.digest for day in read_days(resources.lake)}


def runs_of(url: str, query: str) -> tuple[MlflowClient, Run]:
    """Return a client, and the only run that a query finds."""
    client = MlflowClient(url)
    experiment = client.get_experiment_by_name("modwatch").experiment_id
    (run,) = client.search_runs([experiment], query)
    return client, run


def day_run(url: str) -> tuple[MlflowClient, Run]:
    return runs_of(url, "tags.kind = 'day'")


def run_named(url: str, name: str) -> tuple[MlflowClient, Run]:
    return runs_of(url, f"run_name = '{name}'")


def test_a_run_tells_the_days_facts_as_the_lake_has_them(install_routed):
    home = install_routed()
    done = review(home, limit=20)
    home.run("collect_labels", "measure", "detect_drift", "publish")
    client, run = day_run(home.settings.mlflow_url)
    facts = run.data.metrics
    with open_resources(home.settings) as resources:
        scores = day_scores(resources.lake, MONDAY)
        assert facts["day/comments"] == resources.lake.count("comments", MONDAY)
        assert facts["day/quarantined"] == resources.lake.count("quarantine", MONDAY) > 0
        assert facts["day/flagged_share"] == pytest.approx(scores.flagged.mean())
        assert facts["review/routed"] == resources.lake.count("routed", MONDAY)
        assert facts["review/labelled"] == done == 20
        verdicts = [resources.checks.load(suite, MONDAY) for suite in ("comments", "scores")]
        [day] = read_days(resources.lake)
    params = run.data.params
    assert params == {"model_version": "1", "strategy": "uncertainty", "review_fraction": "0.1"}
    assert run.data.tags["labels"] == f"20 of {facts['review/routed']:.0f}"
    artifacts = {file.path for file in client.list_artifacts(run.info.run_id)}
    assert {"checks.html", "figures", "tables"} <= artifacts
    order = ["passed", "warned", "rejected"]
    assert run.data.tags["checks"] == max((v.status for v in verdicts), key=order.index)

    # The table has all that the run has.
    assert {key: figure.value for key, figure in day.figures.items()} == facts
    shown = {"status": day.status, "checks": day.checks, "digest": day.digest, **day.columns}
    assert shown.items() <= run.data.tags.items()
    assert day.model_version == params["model_version"]

    # A run that was begun and never finished is not shown, and goes with the next publishing.
    whole = published(home.settings.mlflow_url)
    client.create_run(run.info.experiment_id, tags={"kind": "day", "day": MONDAY.isoformat()})
    client.delete_run(run.info.run_id)
    assert home.run("publish") == [1]
    assert published(home.settings.mlflow_url) == whole


def test_a_day_is_recorded_once_it_is_measured_and_anew_when_something_changes(install_routed):
    """A verdict, an incident, or drift; not the queue of another day."""
    home = install_routed(days=2)
    with open_resources(home.settings) as resources:
        assert recorded(resources, TUESDAY) == []
    home.run("measure", day=TUESDAY)
    with open_resources(home.settings) as resources:
        assert recorded(resources, TUESDAY) == [MONDAY, TUESDAY]
        assert recorded(resources, TUESDAY) == []
    home.run("detect_drift", day=TUESDAY)
    headline = "Comments have waited in the queue for 50 hours"
    row = {
        "dt": TUESDAY, "rule": "queue_old", "subject": "", "severity": "warning",
        "since": TUESDAY, "description": "it is old", "headline": headline,
    }  # fmt: skip
    with open_resources(home.settings) as resources:
        assert recorded(resources, TUESDAY) == [TUESDAY]
        queue = resources.lake.table("drift", TUESDAY).filter(pc.field("feature") == "queue")
        monday = queue.set_column(0, "dt", pa.array([MONDAY] * len(queue)))
        batches = monday.cast(queue.schema).to_batches()
        resources.lake.replace("drift", MONDAY, batches, feature="queue")
        assert recorded(resources, TUESDAY) == [MONDAY]
        assert "review/undecided" in read_days(resources.lake)[-1].figures
        batch = pa.RecordBatch.from_pylist([row], schema=TABLES["alerts"])
        resources.lake.replace("alerts", TUESDAY, [batch])
        assert recorded(resources, TUESDAY) == [TUESDAY]
        tuesday = read_days(resources.lake)[-1]
        assert [alert.headline for alert in tuesday.alerts] == [headline]
        assert tuesday.status == f"warning since {TUESDAY}"
        assert tuesday.figures["day/alerts"].value == 1
    with pytest.raises(DayRejectedError):
        home.but(max_text_length=20).run("check_comments", day=TUESDAY)
    with open_resources(home.settings) as resources:
        assert recorded(resources, TUESDAY) == [TUESDAY]
        tuesday = read_days(resources.lake)[-1]
        assert (tuesday.status, tuesday.is_measured) == ("rejected", True)


def test_what_mlflow_lost_is_published_again_and_what_is_old_is_not(
    install_routed, tmp_path, monkeypatch
):
    """Days out of the window as well; the tables stay as they are."""
    home = install_routed(days=2, window_days=1, keep_landed=1, keep_quarantine=1)
    for day in (MONDAY, TUESDAY):
        home.run("measure", "detect_drift", "raise_alerts", "publish", day=day)
    whole = published(home.settings.mlflow_url)
    with open_resources(home.settings) as resources:
        before = digests(resources)
    monkeypatch.chdir(tmp_path)  # a store without a server keeps its artifacts here
    home = home.but(mlflow_url=f"sqlite:///{home.home / 'new.db'}")
    assert home.run("publish", day=TUESDAY) == [2]
    assert published(home.settings.mlflow_url) == whole
    with open_resources(home.settings) as resources:
        assert digests(resources) == before
    assert home.run("publish", day=TUESDAY) == [0]

    # Runs of old days are removed with their files, and are not published again.
    home = home.but(keep_runs=1)
    _, run = run_named(home.settings.mlflow_url, MONDAY.isoformat())
    folder = Path(run.info.artifact_uri.removeprefix("file://"))
    with open_resources(home.settings) as resources:
        for removed, dry_run in ((1, True), (1, False), (0, False)):
            assert folder.exists() is bool(removed)
            assert retention.remove_runs(resources, TUESDAY, dry_run=dry_run) == [
                f"runs in MLflow before {TUESDAY}: {removed}"
            ]
        retention.remove_rows(resources, TUESDAY)
        assert resources.lake.days("landed") == [TUESDAY]
    home.run("measure", "detect_drift", "raise_alerts", day=TUESDAY)
    assert home.run("publish", day=TUESDAY) == [0]


def test_a_window_is_shown_with_what_other_settings_would_bring(install_routed):
    home = install_routed(days=2)
    review(home)
    assert home.run("collect_labels", "measure", "publish", day=TUESDAY)[0] > 0
    client, tuesday = run_named(home.settings.mlflow_url, TUESDAY.isoformat())
    _, timeline = run_named(home.settings.mlflow_url, "timeline")
    assert tuesday.data.tags["window"] == "2 of 14 days"
    value = tuesday.data.metrics["model_window/accuracy"]
    with open_resources(home.settings) as resources:
        known = read_days(resources.lake)[-1].figures["model_window/accuracy"].interval
    assert known is not None
    low, high = known
    assert low < value < high
    history = client.get_metric_history(timeline.info.run_id, "day/comments")
    assert [point.step for point in history] == [0, 1]
    assert history[1].value == tuesday.data.metrics["day/comments"]
    page = client.download_artifacts(timeline.info.run_id, "timeline.html", str(home.home))
    assert f"{TUESDAY}: {value:.4g} ({low:.4g} to {high:.4g})" in Path(page).read_text("utf-8")
    table = client.download_artifacts(tuesday.info.run_id, "tables/what_if.csv", str(home.home))
    choices = pd.read_csv(table)
    compared = {name for name, score in REVIEW_SCORES.items() if score.compared}
    assert set(choices["strategy"]) == compared
    [deployed] = choices[choices["deployed"]].to_dict("records")
    with open_resources(home.settings) as resources:
        comments = [resources.lake.count("scores", day) for day in (MONDAY, TUESDAY)]
    expected = 0.1 * sum(comments) / 2
    assert deployed["comments_per_day"] == pytest.approx(expected)
    assert deployed["hours_per_day"] == pytest.approx(expected * 3.0 / 3600)  # as `review` says


def test_a_day_that_was_never_run_did_not_fail(install):
    home = install()
    assert home.run("publish") == [1]
    assert home.run("publish") == [0], "it is no news any more"
    _, run = day_run(home.settings.mlflow_url)
    assert (run.info.run_name, run.info.status) == (MONDAY.isoformat(), "FINISHED")
    assert run.data.tags["status"] == "not run"
    assert run.data.tags["mlflow.note.content"].startswith("**NOT** run: no comments were ingested")


def test_a_day_that_failed_has_a_run_with_its_reason_and_its_page(install):
    """It was not scored, or it was rejected; days before the first did not fail."""
    home = install()
    home.run("ingest", "check_comments", "publish", day=TUESDAY)
    _, run = day_run(home.settings.mlflow_url)
    assert run.info.run_name == TUESDAY.isoformat()
    first = run.data.tags["mlflow.note.content"].splitlines()[0]
    assert first.startswith("**FAILED**: the comments were not scored; open the Airflow run")
    with pytest.raises(DayRejectedError):
        home.but(max_text_length=20).run("check_comments", day=TUESDAY)
    steps = ("collect_labels", "measure", "detect_drift", "raise_alerts", "publish")
    home.run(*steps, day=TUESDAY)
    client, run = day_run(home.settings.mlflow_url)
    assert (run.info.status, run.data.tags["status"]) == ("FAILED", "rejected")
    assert run.data.tags["alerts"].startswith("critical: Data validation rejected the day")
    text = run.data.tags["mlflow.note.content"]
    assert text.startswith("**REJECTED**: quarantined most: ")
    assert [file.path for file in client.list_artifacts(run.info.run_id)] == ["checks.html"]
    with open_resources(home.settings) as resources:
        assert recorded(resources, TUESDAY) == []
        resources.lake.replace("alerts", TUESDAY, [])
        assert recorded(resources, TUESDAY) == [TUESDAY], "its incident ended"
