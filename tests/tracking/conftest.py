"""A real MLflow server over HTTP, and days of made-up figures."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from modwatch.records import MEASUREMENTS
from modwatch.tracking.facts import DayFacts, DayPictures, ScoreHistogram

_START_SECONDS = 120


@pytest.fixture(scope="session")
def mlflow_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a real MLflow server; it and its children end with the tests."""
    folder = tmp_path_factory.mktemp("mlflow")
    port = _free_port()
    command = [
        *(sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port)),
        *("--workers", "1", "--backend-store-uri", f"sqlite:///{folder / 'mlflow.db'}"),
        *("--artifacts-destination", str(folder / "artifacts")),
    ]
    lean = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            command,
            cwd=folder,
            env=os.environ | lean,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        _wait_until_healthy(f"http://127.0.0.1:{port}", server, folder / "log")
        yield f"http://127.0.0.1:{port}"
    finally:
        _end(server)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_healthy(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5):
                return
        except (urllib.error.URLError, TimeoutError):
            time.sleep(0.2)
    pytest.fail(f"MLflow did not start in {_START_SECONDS} s:\n{log.read_text()[-2000:]}")


def _end(server: subprocess.Popen[bytes]) -> None:
    """End the server's whole process group, gently, then for good."""
    os.killpg(server.pid, signal.SIGTERM)
    try:
        server.wait(20)
    except subprocess.TimeoutExpired:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait(20)


@pytest.fixture
def free_port() -> int:
    """A port of this machine on which nobody listens."""
    return _free_port()


@pytest.fixture
def experiment(request: pytest.FixtureRequest) -> str:
    """A name of an experiment that no other test uses."""
    return str(request.node.name)


@pytest.fixture
def facts() -> DayFacts:
    """A day of 2,000 comments, 40 of them routed, 38 labelled."""
    return DayFacts(
        comments=2000,
        quarantined=12,
        flagged=31,
        routed=40,
        labelled=38,
        model_version="3",
        strategy="uncertainty",
        review_fraction=0.02,
        checks="warned",
        check_page_url="http://localhost:8000/checks/2026-01-05.html",
        queue_url="http://localhost:8000/queue",
        airflow_run_url="http://localhost:8080/dags/monitor_collaboration/runs/a(1)",
        published_at=datetime(2026, 1, 6, 4, 12, tzinfo=UTC),
    )


@pytest.fixture
def pictures() -> DayPictures:
    """Scores of 2,000 comments, five reliability bins."""
    prob = np.random.default_rng(7).beta(0.5, 8, 2000)
    observed = np.array([0.01, 0.10, 0.45, 0.60, 0.80])
    return DayPictures(
        scores=ScoreHistogram.of(prob, threshold=0.5),
        reliability=pd.DataFrame(
            {
                "mean_prob": [0.02, 0.15, 0.40, 0.65, 0.90],
                "positive_rate": observed,
                "count": [180, 40, 20, 10, 5],
                "low": np.clip(observed - 0.1, 0, 1),
                "high": np.clip(observed + 0.1, 0, 1),
            }
        ),
    )


@pytest.fixture
def measure() -> Callable[..., pd.DataFrame]:
    """Make the measurements of a day: `measure(day, shift=0.0)`."""
    return made_up_measurements


def made_up_measurements(day: date, shift: float = 0.0) -> pd.DataFrame:
    """Return made-up measurements; OC-AUPRC by toxicity at the smallest α is insufficient."""
    alone = {
        "accuracy": 0.95,
        "auroc": 0.82,
        "auprc": 0.3,
        "calibration_auroc": 0.7,
        "calibration_auprc": 0.2,
        "brier_score": 0.04,
        "expected_calibration_error": 0.03,
    }
    rows = [_row(day, metric, None, None, value + shift) for metric, value in alone.items()]
    together = {
        "oc_accuracy": (0.95, 0.2),
        "oc_auroc": (0.82, 0.8),
        "oc_auprc": (0.3, 3.0),
        "review_efficiency": (0.42, -1.5),
        "review_effectiveness": (0.1, 4.0),
    }
    for metric, (start, slope) in together.items():
        for strategy, gain in (("uncertainty", 1.0), ("toxicity", 0.7)):
            for alpha in (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2):
                value = min(start + gain * slope * alpha + shift, 1.0)
                rows.append(_row(day, metric, strategy, alpha, value))
    table = pd.DataFrame(rows, columns=MEASUREMENTS.names)
    absent = (
        (table["metric"] == "oc_auprc")
        & (table["strategy"] == "toxicity")
        & (table["alpha"] == 0.001)
    )
    table.loc[absent, ["value", "low", "high"]] = np.nan
    table.loc[absent, ["status", "reason"]] = ["insufficient", "no labelled positive"]
    return table


def _row(
    day: date, metric: str, strategy: str | None, alpha: float | None, value: float
) -> dict[str, object]:
    return {
        "dt": day,
        "metric": metric,
        "strategy": strategy,
        "alpha": alpha,
        "value": value,
        "low": max(value - 0.03, 0.0),
        "high": min(value + 0.02, 1.0),
        "n": 38,
        "effective_n": 21.5,
        "status": "ok",
        "reason": "",
        "labels_digest": "5f2c",
    }
