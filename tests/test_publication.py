from collections.abc import Callable

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
from modwatch import publication, tables
from modwatch.errors import DayRejectedError
from modwatch.wiring import open_wiring

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

Install = Callable[..., Installation]


def day_run(url: str) -> tuple[MlflowClient, Run]:
    client = MlflowClient(url)
    experiment = client.get_experiment_by_name("modwatch").experiment_id
    (run,) = client.search_runs([experiment], "tags.kind = 'day'")
    return client, run


def test_a_run_tells_the_days_facts_as_the_lake_has_them(install: Install) -> None:
    home = install()
    home.run(*TO_THE_QUEUE)
    done = review(home, limit=20)
    home.run("collect_labels", "measure", "publish")
    client, run = day_run(home.settings.mlflow_url)
    facts = run.data.metrics
    with open_wiring(home.settings) as at:
        scores = tables.day_scores(at.lake, MONDAY)
        assert facts["day/comments"] == at.lake.count("comments", MONDAY)
        assert facts["day/quarantined"] == at.lake.count("quarantine", MONDAY) > 0
        assert facts["day/flagged_share"] == pytest.approx(scores.flagged.mean())
        assert facts["review/routed"] == at.lake.count("routed", MONDAY)
        assert facts["review/labelled"] == done == 20
    params = run.data.params
    assert params == {"model_version": "1", "strategy": "uncertainty", "review_fraction": "0.1"}
    assert run.data.tags["labels"] == "incomplete"
    artifacts = {file.path for file in client.list_artifacts(run.info.run_id)}
    assert {"checks.html", "figures", "tables"} <= artifacts


def test_stale_is_what_was_measured_and_is_not_shown(install: Install) -> None:
    home = install()
    window = [MONDAY, TUESDAY]
    with open_wiring(home.settings) as at:
        assert publication.stale_days(at, window) == []
    home.run(*TO_THE_QUEUE, "measure")
    with open_wiring(home.settings) as at:
        assert publication.stale_days(at, window) == [MONDAY]
        publication.publish(at, MONDAY)
        assert publication.stale_days(at, window) == []


def test_a_new_verdict_alone_makes_a_day_stale(install: Install) -> None:
    home = install()
    home.run(*TO_THE_QUEUE, "measure", "publish")
    with pytest.raises(DayRejectedError):
        home.but(max_text_length=20).run("check_comments")
    with open_wiring(home.settings) as at:
        assert publication.stale_days(at, [MONDAY]) == [MONDAY]


def test_what_a_crash_left_unfinished_is_made_good(install: Install) -> None:
    """A run that was begun and never finished is not shown, and goes with the next publishing."""
    home = install()
    home.run(*TO_THE_QUEUE, "measure", "publish")
    whole = published(home.settings.mlflow_url)
    client, run = day_run(home.settings.mlflow_url)
    client.create_run(run.info.experiment_id, tags={"kind": "day", "day": MONDAY.isoformat()})
    client.delete_run(run.info.run_id)
    assert home.run("publish") == [1]
    assert published(home.settings.mlflow_url) == whole


def test_the_timeline_of_no_day_is_none(install: Install) -> None:
    home = install()
    assert home.run("publish") == [0]
    assert published(home.settings.mlflow_url) == []


def test_the_worse_of_two_verdicts_counts(install: Install) -> None:
    home = install()
    home.run(*TO_THE_QUEUE, "measure", "publish")
    _, run = day_run(home.settings.mlflow_url)
    with open_wiring(home.settings) as at:
        verdicts = [at.checks.load(suite, MONDAY) for suite in ("comments", "scores")]
    order = ["passed", "warned", "rejected"]
    assert run.data.tags["checks"] == max((v.status for v in verdicts), key=order.index)
