"""The run of an audit in a real MLflow."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from modwatch.audits.tracking import audit_metrics, publish_audit
from modwatch.common.errors import TrackingError
from modwatch.common.mlflow_client import connect, experiment_id, runs_tagged

FILES = {"report.html": b"<p>Recall \xe2\x80\x93 of a month</p>", "plan.json": b"{}"}
DESCRIPTION = "490 of 500 drawn comments are labelled."


def figure(metric: str, value: float | None, **changes: Any) -> dict[str, Any]:
    if value is None:
        numbers = {"status": "insufficient", "value": None, "low": None, "high": None}
    else:
        numbers = {"status": "ok", "value": value, "low": value - 0.125, "high": value + 0.0625}
    return {"metric": metric, **numbers, **changes}


def result(**changes: Any) -> dict[str, Any]:
    """Return a result, as far as the run of an audit shows it."""
    plain = {
        "audit": "2026-01",
        "plan": "0f" * 32,
        "first_day": "2026-01-01",
        "last_day": "2026-01-31",
        "model_version": "3",
        "threshold": 0.5,
        "comments": 50_000_000,
        "flagged": 900,
        "drawn": 500,
        "labelled": 490,
        "decisions": 588,
        "labellers": 4,
        "figures": [figure("precision", 0.75), figure("recall", 0.5)],
    }
    return {**plain, **changes}


@pytest.fixture
def publish(mlflow_url, experiment):
    """Publish a made-up audit: `publish(**changes)`."""

    def publish_made_up(description: str = DESCRIPTION, **changes: Any) -> str:
        return publish_audit(
            result(**changes),
            description=description,
            files=FILES,
            tracking_uri=mlflow_url,
            experiment=experiment,
        )

    return publish_made_up


@pytest.fixture
def client(mlflow_url):
    with connect(mlflow_url) as made:
        yield made


@pytest.fixture
def live(client, experiment):
    """List the runs that MLflow shows: `live(audit="2026-01")`."""
    return lambda **tags: runs_tagged(
        client, experiment_id(client, experiment), {"kind": "audit", **tags}
    )


def test_a_run_says_all_about_its_audit(publish, live, client, tmp_path, capfd):
    run_id = publish()
    assert capfd.readouterr() == ("", "")  # MLflow would print two lines a run
    [run] = live()
    assert (run.info.run_id, run.info.run_name, run.info.status) == (run_id, "2026-01", "FINISHED")
    last = datetime(2026, 1, 31, tzinfo=UTC).timestamp() * 1000
    assert (run.info.start_time, run.info.end_time) == (last, last + 24 * 3600 * 1000)
    assert run.data.metrics == {
        "precision": 0.75,
        "precision_low": 0.625,
        "precision_high": 0.8125,
        "recall": 0.5,
        "recall_low": 0.375,
        "recall_high": 0.5625,
        "comments": 50_000_000,
        "flagged": 900,
        "drawn": 500,
        "labelled": 490,
        "decisions": 588,
        "labellers": 4,
    }
    assert run.data.params == {"plan": "0f" * 32, "model_version": "3", "threshold": "0.5"}
    tags = ("kind", "audit", "period", "status", "mlflow.note.content")
    assert [run.data.tags[name] for name in tags] == [
        *("audit", "2026-01", "2026-01-01 to 2026-01-31", "ok", DESCRIPTION),
    ]
    [point] = client.get_metric_history(run_id, "recall")
    assert (point.timestamp, point.step) == (last, 0)
    assert {artifact.path for artifact in client.list_artifacts(run_id)} == {*FILES}
    for name, content in FILES.items():
        assert Path(client.download_artifacts(run_id, name, str(tmp_path))).read_bytes() == content


def test_publishing_again_replaces_the_run_and_no_other(publish, live):
    other = publish(audit="2026-02")
    first = publish()
    again = publish(figures=[figure("recall", 0.25)], labelled=300)
    assert first != again
    [run] = live(audit="2026-01")
    assert run.info.run_id == again
    assert (run.data.metrics["recall"], run.data.metrics["labelled"]) == (0.25, 300)
    assert "precision" not in run.data.metrics
    assert {item.info.run_id for item in live()} == {other, again}


def test_what_is_insufficient_has_no_metric_and_is_named(publish, live):
    publish(figures=[figure("precision", 0.75), figure("recall", None), figure("f1", None)])
    [run] = live()
    assert not [name for name in run.data.metrics if name.startswith(("recall", "f1"))]
    assert run.data.metrics["precision"] == 0.75
    assert run.data.tags["status"] == "insufficient: recall, f1"


def test_a_bound_of_nought_is_a_bound():
    zero = figure("recall", 0.0, low=0.0, high=0.0)
    assert audit_metrics({"figures": [zero]}) == {
        "recall": 0.0,
        "recall_low": 0.0,
        "recall_high": 0.0,
    }


def test_a_server_that_is_not_there_is_named(free_port):
    with pytest.raises(TrackingError, match="cannot be reached or rejected a call"):
        publish_audit(
            result(), description="", files={}, tracking_uri=f"http://127.0.0.1:{free_port}"
        )
