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
    TO_THE_QUEUE,
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
from modwatch.statistics import STRATEGIES

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


def day_run(url: str) -> tuple[MlflowClient, Run]:
    client = MlflowClient(url)
    experiment = client.get_experiment_by_name("modwatch").experiment_id
    (run,) = client.search_runs([experiment], "tags.kind = 'day'")
    return client, run


def run_named(url: str, name: str) -> tuple[MlflowClient, Run]:
    client = MlflowClient(url)
    experiment = client.get_experiment_by_name("modwatch").experiment_id
    (run,) = client.search_runs([experiment], f"run_name = '{name}'")
    return client, run


def test_a_run_tells_the_days_facts_as_the_lake_has_them(install_routed: Install) -> None:
    home = install_routed()
    done = review(home, limit=20)
    home.run("collect_labels", "measure", "publish")
    client, run = day_run(home.settings.mlflow_url)
    facts = run.data.metrics
    with open_resources(home.settings) as resources:
        scores = day_scores(resources.lake, MONDAY)
        assert facts["day/comments"] == resources.lake.count("comments", MONDAY)
        assert facts["day/quarantined"] == resources.lake.count("quarantine", MONDAY) > 0
        assert facts["day/flagged_share"] == pytest.approx(scores.flagged.mean())
        assert facts["review/routed"] == resources.lake.count("routed", MONDAY)
        assert facts["review/labelled"] == done == 20
    params = run.data.params
    assert params == {"model_version": "1", "strategy": "uncertainty", "review_fraction": "0.1"}
    assert run.data.tags["labels"] == f"20 of {facts['review/routed']:.0f}"
    artifacts = {file.path for file in client.list_artifacts(run.info.run_id)}
    assert {"checks.html", "figures", "tables"} <= artifacts


def test_a_day_is_recorded_once_it_is_measured(install_routed: Install) -> None:
    home = install_routed()
    with open_resources(home.settings) as resources:
        assert recorded(resources, MONDAY) == []
    home.run("measure")
    with open_resources(home.settings) as resources:
        assert recorded(resources, MONDAY) == [MONDAY]
        assert recorded(resources, MONDAY) == []


def test_a_new_verdict_alone_changes_the_result(install_routed: Install) -> None:
    home = install_routed()
    home.run("measure", "publish")
    with pytest.raises(DayRejectedError):
        home.but(max_text_length=20).run("check_comments")
    with open_resources(home.settings) as resources:
        assert recorded(resources, MONDAY) == [MONDAY]
        [day] = read_days(resources.lake)
        assert (day.status, day.is_measured) == ("rejected", True)


def test_the_table_has_all_that_the_run_has(install_routed: Install) -> None:
    home = install_routed()
    review(home, limit=20)
    home.run("collect_labels", "measure", "detect_drift", "publish")
    _, run = day_run(home.settings.mlflow_url)
    with open_resources(home.settings) as resources:
        [day] = read_days(resources.lake)
    assert {key: figure.value for key, figure in day.figures.items()} == run.data.metrics
    shown = {"status": day.status, "checks": day.checks, "digest": day.digest, **day.columns}
    assert shown.items() <= run.data.tags.items()
    assert day.model_version == run.data.params["model_version"]


@pytest.mark.parametrize("lost", ["runs", "server"])
def test_what_mlflow_lost_is_published_again_from_the_tables(
    install_routed: Install, lost: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Days out of the window as well; the tables stay as they are."""
    home = install_routed(days=2, window_days=1)
    for day in (MONDAY, TUESDAY):
        home.run("measure", "detect_drift", "raise_alerts", "publish", day=day)
    whole = published(home.settings.mlflow_url)
    with open_resources(home.settings) as resources:
        before = digests(resources)
    if lost == "runs":
        client = MlflowClient(home.settings.mlflow_url)
        experiment = client.get_experiment_by_name("modwatch").experiment_id
        for run in client.search_runs([experiment]):
            client.delete_run(run.info.run_id)
    else:
        monkeypatch.chdir(tmp_path)  # a store without a server keeps its artifacts here
        home = home.but(mlflow_url=f"sqlite:///{home.home / 'new.db'}")
    assert home.run("publish", day=TUESDAY) == [2]
    assert published(home.settings.mlflow_url) == whole
    with open_resources(home.settings) as resources:
        assert digests(resources) == before
    assert home.run("publish", day=TUESDAY) == [0]


def test_runs_of_old_days_are_removed_with_their_files_and_not_published_again(
    install_routed: Install,
) -> None:
    """With the shortest settings, days are still measured."""
    home = install_routed(days=2, window_days=1, keep_landed=1, keep_quarantine=1, keep_runs=1)
    for day in (MONDAY, TUESDAY):
        home.run("measure", "detect_drift", "raise_alerts", "publish", day=day)
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


def test_a_window_is_shown_with_what_other_settings_would_bring(
    install_routed: Install,
) -> None:
    home = install_routed(days=2)
    review(home)
    for _ in range(2):  # the second time changes nothing
        assert home.run("collect_labels", "measure", "publish", day=TUESDAY)[0] > 0
        client, tuesday = run_named(home.settings.mlflow_url, TUESDAY.isoformat())
        _, timeline = run_named(home.settings.mlflow_url, "timeline")
        assert tuesday.data.tags["window"] == "2 of 14 days"
        value = tuesday.data.metrics["model_window/accuracy"]
        with open_resources(home.settings) as resources:
            low, high = read_days(resources.lake)[-1].figures["model_window/accuracy"].interval or (
                1.0,
                0.0,
            )
        assert low < value < high
        history = client.get_metric_history(timeline.info.run_id, "day/comments")
        assert [point.step for point in history] == [0, 1]
        assert history[1].value == tuesday.data.metrics["day/comments"]
        page = client.download_artifacts(timeline.info.run_id, "timeline.html", str(home.home))
        assert f"{TUESDAY}: {value:.4g} ({low:.4g} to {high:.4g})" in Path(page).read_text("utf-8")
    table = client.download_artifacts(tuesday.info.run_id, "tables/what_if.csv", str(home.home))
    choices = pd.read_csv(table)
    assert set(choices["strategy"]) == set(STRATEGIES)
    [deployed] = choices[choices["deployed"]].to_dict("records")
    with open_resources(home.settings) as resources:
        comments = [resources.lake.count("scores", day) for day in (MONDAY, TUESDAY)]
    expected = 0.1 * sum(comments) / 2
    assert deployed["comments_per_day"] == pytest.approx(expected)
    assert deployed["hours_per_day"] == pytest.approx(expected * 3.0 / 3600)  # as `review` says


def test_drift_changes_a_result_and_the_queue_of_another_day_does_not(
    install_routed: Install,
) -> None:
    home = install_routed(days=2)
    home.run("measure", "publish", day=TUESDAY)
    home.run("detect_drift", day=TUESDAY)
    with open_resources(home.settings) as resources:
        assert recorded(resources, TUESDAY) == [TUESDAY]
        queue = resources.lake.table("drift", TUESDAY).filter(pc.field("feature") == "queue")
        monday = queue.set_column(0, "dt", pa.array([MONDAY] * len(queue)))
        resources.lake.replace(
            "drift", MONDAY, monday.cast(queue.schema).to_batches(), feature="queue"
        )
        assert recorded(resources, TUESDAY) == [MONDAY]
    assert home.run("publish", day=TUESDAY) == [2]
    _, run = run_named(home.settings.mlflow_url, TUESDAY.isoformat())
    assert "review/waiting" in run.data.metrics


def test_an_incident_changes_the_result_and_stands_on_its_page(install_routed: Install) -> None:
    home = install_routed()
    home.run("measure", "publish")
    row = {
        "dt": MONDAY,
        "rule": "queue_old",
        "subject": "",
        "severity": "warning",
        "since": MONDAY,
        "description": "it is old",
        "headline": "Comments have waited in the queue for 50 hours",
    }
    with open_resources(home.settings) as resources:
        batch = pa.RecordBatch.from_pylist([row], schema=TABLES["alerts"])
        resources.lake.replace("alerts", MONDAY, [batch])
    assert home.run("publish") == [1]
    _, run = day_run(home.settings.mlflow_url)
    assert run.data.tags["alerts"] == "warning: Comments have waited in the queue for 50 hours"
    assert run.data.metrics["day/alerts"] == 1
    sentence = f"**warning**: Comments have waited in the queue for 50 hours, since {MONDAY}"
    assert sentence in run.data.tags["mlflow.note.content"]


def test_what_a_crash_left_unfinished_is_made_good(install_routed: Install) -> None:
    """A run that was begun and never finished is not shown, and goes with the next publishing."""
    home = install_routed()
    home.run("measure", "publish")
    whole = published(home.settings.mlflow_url)
    client, run = day_run(home.settings.mlflow_url)
    client.create_run(run.info.experiment_id, tags={"kind": "day", "day": MONDAY.isoformat()})
    client.delete_run(run.info.run_id)
    assert home.run("publish") == [1]
    assert published(home.settings.mlflow_url) == whole


def test_a_day_that_was_never_run_did_not_fail(install: Install) -> None:
    home = install()
    assert home.run("publish") == [1]
    assert home.run("publish") == [0], "it is no news any more"
    _, run = day_run(home.settings.mlflow_url)
    assert (run.info.run_name, run.info.status) == (MONDAY.isoformat(), "FINISHED")
    assert run.data.tags["status"] == "not run"
    assert run.data.tags["mlflow.note.content"].startswith("**NOT** run: no comments were ingested")


def test_days_before_the_first_did_not_fail(install: Install) -> None:
    home = install()
    home.run(*TO_THE_QUEUE, "measure", "publish", day=TUESDAY)
    _, run = day_run(home.settings.mlflow_url)
    assert run.info.run_name == TUESDAY.isoformat()


def test_a_rejected_day_has_a_run_with_its_reason_and_its_page(install: Install) -> None:
    """Until it is scored and measured: then that is its run."""
    home = install()
    home.run("ingest")
    with pytest.raises(DayRejectedError):
        home.but(max_text_length=20).run("check_comments")
    home.run("collect_labels", "measure", "detect_drift", "raise_alerts", "publish")
    client, run = day_run(home.settings.mlflow_url)
    assert (run.info.status, run.data.tags["status"]) == ("FAILED", "rejected")
    assert run.data.tags["alerts"].startswith("critical: Data validation rejected the day")
    text = run.data.tags["mlflow.note.content"]
    assert text.startswith("**REJECTED**: quarantined most: ")
    assert [file.path for file in client.list_artifacts(run.info.run_id)] == ["checks.html"]
    home.run(*TO_THE_QUEUE[1:], "measure", "raise_alerts", "publish")
    _, run = day_run(home.settings.mlflow_url)
    assert run.info.status == "FINISHED"


def test_a_day_that_was_not_scored_has_a_failed_run(install: Install) -> None:
    home = install()
    home.run("ingest", "check_comments", "publish")
    _, run = day_run(home.settings.mlflow_url)
    first = run.data.tags["mlflow.note.content"].splitlines()[0]
    assert first.startswith("**FAILED**: the comments were not scored; open the Airflow run")


def test_the_worse_of_two_verdicts_counts(install_routed: Install) -> None:
    home = install_routed()
    home.run("measure", "publish")
    _, run = day_run(home.settings.mlflow_url)
    with open_resources(home.settings) as resources:
        verdicts = [resources.checks.load(suite, MONDAY) for suite in ("comments", "scores")]
    order = ["passed", "warned", "rejected"]
    assert run.data.tags["checks"] == max((v.status for v in verdicts), key=order.index)
