import dataclasses
import json
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from modwatch.common.errors import TrackingError
from modwatch.common.mlflow_client import connect, experiment_id, midnight_ms, runs_tagged
from modwatch.data.lake.schemas import ESTIMATES
from modwatch.monitoring.incidents.messages.incidents import ActiveAlert
from modwatch.monitoring.publishing.content import DayTables
from modwatch.monitoring.publishing.days import Day, KeyFigure
from modwatch.monitoring.publishing.keys import MAX_KEYS, key_figures
from modwatch.monitoring.publishing.runs import outdated_days, publish_day
from modwatch.statistics.live.group_estimates import compare_scores

DAY, NEXT_DAY = date(2026, 1, 5), date(2026, 1, 6)
TAGS = {"kind": "day", "day": DAY.isoformat()}


def measured(tables, facts, day=DAY, **changes):
    """Return the result of a day with the figures of its tables."""
    facts = dataclasses.replace(facts, day=day, digest=str(day), **changes)
    return dataclasses.replace(facts, figures=key_figures(tables, facts))


def metrics_of(tables, facts):
    return {key: figure.value for key, figure in key_figures(tables, facts).items()}


@pytest.fixture
def publish(mlflow_url, experiment, measure, facts):
    """Publish a day: `publish(day, shift=0.0)`, or with tables of its own."""

    def publish_made_up(day=DAY, shift=0.0, *, tables=None, page=None, **changes):
        tables = tables or DayTables(estimates=measure(day, shift))
        return publish_day(
            measured(tables, facts, day, **changes),
            tables,
            check_page=page,
            tracking_uri=mlflow_url,
            experiment=experiment,
        )

    return publish_made_up


@pytest.fixture
def live(mlflow_url, experiment):
    """List the runs that MLflow shows."""

    def list_live():
        with connect(mlflow_url) as client:
            return runs_tagged(client, experiment_id(client, experiment), {"kind": "day"})

    return list_live


def test_a_run_says_all_about_its_day(
    mlflow_url, publish, full_tables, facts, pictures, live, capfd
):
    incident = ActiveAlert(
        rule="scores_jumped",
        subject="prob",
        severity="warning",
        since=DAY,
        description="psi 0.25",
        headline="The scores differ",
    )
    facts = dataclasses.replace(facts, alerts=(incident,))
    tables = dataclasses.replace(full_tables(DAY), **pictures)
    run_id = publish(tables=tables, alerts=(incident,))
    assert capfd.readouterr() == ("", "")  # MLflow would print two lines a run
    [run] = live()
    assert run.info.run_id == run_id
    assert run.info.run_name == "2026-01-05"
    assert run.info.status == "FINISHED"
    assert run.info.end_time - run.info.start_time == 24 * 3600 * 1000
    assert run.data.metrics == metrics_of(full_tables(DAY), facts)
    assert len(run.data.metrics) <= MAX_KEYS
    assert run.data.params == {
        "model_version": "3",
        "strategy": "uncertainty",
        "review_fraction": "0.02",
    }
    expected = {
        "day": "2026-01-05",
        "checks": "warned",
        "status": "warning since 2026-01-05",
        "comments": "2,000",
        "window accuracy": "0.960 (0.93–0.98)",
        "window OC-Acc": "0.964 (0.93–0.98)",
        "window RE": "0.400 (0.37–0.42)",
        "labels": "38 of 40",
        "estimates": "1 insufficient",
        "window": "12 of 14 days",
        "alerts": "warning: The scores differ",
    }
    assert expected.items() <= run.data.tags.items()
    assert run.data.tags["mlflow.note.content"].startswith("**WARNING** since 2026-01-05. ")
    assert _artifacts(mlflow_url, run_id) == {
        *(
            f"figures/{name}.png"
            for name in ("collaboration", "collaboration_window", "reliability")
        ),
        *(f"figures/{name}.png" for name in ("scores", "what_if")),
        *(
            f"tables/{name}.{kind}"
            for name in ("drift", "estimates", "what_if")
            for kind in ("csv", "json")
        ),
    }


def test_no_name_from_the_comments_is_a_formula(mlflow_url, publish, measure, tmp_path):
    prob = np.linspace(0, 1, 400)
    members = {("platform", name): prob < 0.5 for name in ("=1+1", "fine")}
    groups = compare_scores(prob, prob > 0.7, prob > 0.9, members).assign(dt=DAY, scope="day")
    run_id = publish(tables=DayTables(estimates=measure(DAY), comment_groups=groups))
    with connect(mlflow_url) as client:
        path = client.download_artifacts(run_id, "tables/comment_groups.csv", str(tmp_path))
    table = pd.read_csv(path)
    assert set(table["group"]) == {"'=1+1", "fine"}
    assert table["difference"].min() < 0, "numbers stay"


def test_tables_are_shown_as_they_are(mlflow_url, publish, full_tables, tmp_path):
    """Of the drift, only the day's own rows; what is unknown is empty, not the word nan."""
    tables = full_tables(DAY)
    run_id = publish(tables=tables)
    with connect(mlflow_url) as client:
        folder = client.download_artifacts(run_id, "tables", str(tmp_path))
    measured = pd.read_csv(f"{folder}/estimates.csv")
    assert list(measured.columns) == ESTIMATES.names
    of_day = measured[~measured["window"] & ~measured["design"]]
    assert of_day["value"].tolist() == pytest.approx(tables.estimates["value"], nan_ok=True)
    drift = pd.read_csv(f"{folder}/drift.csv")
    assert set(drift["dt"]) == {"2026-01-05"}
    assert len(drift) == (tables.drift["dt"] == DAY).sum()
    choices = json.loads((Path(folder) / "what_if.json").read_text())
    assert len(choices["data"]) == len(tables.what_if)
    text = (Path(folder) / "drift.json").read_text()
    assert '"nan"' not in text
    assert '"None"' not in text


def test_publishing_again_replaces_the_run(publish, live):
    old = publish(DAY)
    other_day = publish(NEXT_DAY)
    new = publish(DAY, shift=0.01, checks="rejected")
    assert {run.info.run_id for run in live()} == {new, other_day}
    assert old not in {new, other_day}
    values = {run.info.run_id: run.data.metrics["single_day/accuracy"] for run in live()}
    assert values[new] == 0.95 + 0.01
    states = {run.info.run_id: (run.info.status, run.data.tags["status"]) for run in live()}
    assert states[new] == ("FAILED", "rejected")  # after it was measured


@pytest.fixture
def outdated(mlflow_url, experiment, measure, facts):
    """Return whether the day has to be published: `outdated(digest)`."""

    def is_outdated(digest=str(DAY)):
        day = dataclasses.replace(facts, digest=digest)
        return outdated_days([day], tracking_uri=mlflow_url, experiment=experiment) == [day]

    return is_outdated


def test_an_unfinished_run_hides_nothing_and_is_removed(
    mlflow_url, experiment, publish, live, outdated
):
    publish(DAY)
    with connect(mlflow_url) as client:  # killed after the first step
        client.create_run(experiment_id(client, experiment), tags=TAGS)
    assert len(live()) == 2
    assert not outdated()
    new = publish(DAY)
    assert [run.info.run_id for run in live()] == [new]


def test_a_day_is_outdated_without_exactly_one_whole_run_of_its_result(
    mlflow_url, experiment, publish, live, outdated
):
    assert outdated()
    publish()
    assert not outdated()
    assert outdated("of other labels")
    with connect(mlflow_url) as client:
        second = client.create_run(experiment_id(client, experiment), tags=TAGS)
        client.set_terminated(second.info.run_id)
        assert outdated(), "killed before the earlier run was deleted"
        whole = publish()
        assert [run.info.run_id for run in live()] == [whole]
        client.delete_run(whole)
    assert outdated()


def test_an_empty_day_has_a_run(publish, live):
    nothing = DayTables(estimates=ESTIMATES.empty_table().to_pandas())
    publish(tables=nothing, comments=0, flagged=0, routed=0, labelled=0, pooled_days=0)
    [run] = live()
    assert run.data.metrics["day/comments"] == 0
    assert run.data.tags["labels"] == "0 of 0"
    assert run.data.tags["window accuracy"] == "insufficient"


def test_a_day_without_measurements_has_a_failed_run(mlflow_url, experiment, publish, live):
    """With the reason, the page and the alerts; and the day's measurement replaces it."""
    volume = ActiveAlert(
        rule="volume_low",
        subject="",
        severity="critical",
        since=DAY,
        description="0.1 of 0.33",
        headline="Few comments",
    )
    day = Day(
        day=DAY,
        checks="rejected",
        reason="`empty_day`: 0 rows, allowed: at least 1",
        figures={"day/alerts": KeyFigure(value=1.0)},
        alerts=(volume,),
    )
    run_id = publish_day(
        day,
        None,
        check_page="<p>bad</p>",
        links={"Airflow run": "http://localhost:8080/dags/score_comments/runs"},
        tracking_uri=mlflow_url,
        experiment=experiment,
    )
    [run] = live()
    assert (run.info.run_name, run.info.status) == ("2026-01-05", "FAILED")
    assert run.info.start_time == midnight_ms(DAY)
    assert run.data.metrics == {"day/alerts": 1.0}
    expected = {"status": "rejected", "checks": "rejected", "alerts": "critical: Few comments"}
    assert expected.items() <= run.data.tags.items()
    first, links = run.data.tags["mlflow.note.content"].splitlines()
    assert first.startswith("**REJECTED**: `empty_day`: 0 rows, allowed: at least 1. ")
    assert "**critical**: Few comments, since 2026-01-05." in first
    assert f"{run_id}/artifacts/checks.html" in links
    measured_run = publish(DAY)
    [run] = live()
    assert (run.info.run_id, run.info.status) == (measured_run, "FINISHED")


def test_refused_measurements_leave_the_old_run(
    mlflow_url, experiment, publish, live, measure, facts
):
    old = publish(DAY)
    tables = DayTables(estimates=measure(DAY))
    with pytest.raises(KeyError):
        publish_day(
            measured(tables, facts),
            DayTables(estimates=measure(DAY).drop(columns="metric")),
            tracking_uri=mlflow_url,
            experiment=experiment,
        )
    assert [run.info.run_id for run in live()] == [old]


def test_no_server_is_a_tracking_error(free_port, measure, facts):
    tables, url = DayTables(estimates=measure(DAY)), f"http://127.0.0.1:{free_port}"
    with pytest.raises(TrackingError, match="MODWATCH_MLFLOW_URL"):
        publish_day(measured(tables, facts), tables, tracking_uri=url)


def _artifacts(mlflow_url, run_id):
    with connect(mlflow_url) as client:
        folders = [item.path for item in client.list_artifacts(run_id)]
        return {item.path for folder in folders for item in client.list_artifacts(run_id, folder)}
