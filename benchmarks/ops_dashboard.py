"""How long an ops engineer waits for "normal or not, since when", on a history of many days.

Makes a history in a temporary home: one run a day as `publish` writes it, with a fall of accuracy
and a rejected day in it. Then opens the saved view of the days in Chromium, as the printed address
does, in a fresh profile each time, and measures the seconds until the newest day's status is on the
screen. The baseline, in the same run: MLflow's own list of the same runs, without the view.

    python benchmarks/ops_dashboard.py [--days 60] [--repeat 3] [--screenshots FOLDER] [--keep]
"""

import argparse
import contextlib
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from modwatch.common.mlflow_client import artifact_url, connect, experiment_id, run_url, runs_tagged
from modwatch.data.lake.schemas import DRIFT, MEASUREMENTS
from modwatch.monitoring.incidents.messages.incidents import ActiveAlert
from modwatch.monitoring.incidents.rules import Severity, load_rules
from modwatch.monitoring.publishing.content import DayTables
from modwatch.monitoring.publishing.days import Day, KeyFigure
from modwatch.monitoring.publishing.keys import key_figures
from modwatch.monitoring.publishing.runs import publish_day
from modwatch.monitoring.publishing.timeline import TIMELINE_PAGE, publish_days
from modwatch.monitoring.publishing.view import days_url

FIRST = date(2026, 1, 5)

#: Days before the last one on which accuracy falls, a day is rejected, and a new model starts.
FALLEN, REJECTED, NEW_MODEL = 5, 12, 30

#: Seconds that a page may take.
LIMIT = 3.0

_WIDE = ViewportSize(width=1600, height=1000)


def main() -> None:
    """Make the history, time the pages, print the figures; status 1 over the limit."""
    options = _options()
    with tempfile.TemporaryDirectory() as home, _mlflow(Path(home)) as url:
        begun = time.perf_counter()
        _make_history(url, options.days)
        print(f"history of {options.days} days: {time.perf_counter() - begun:.0f} s")
        slowest = _measure(url, options)
        if options.keep:
            print(f"{days_url(url)}\nPress Ctrl-C to stop.", flush=True)
            with contextlib.suppress(KeyboardInterrupt):
                signal.pause()
    sys.exit(slowest > LIMIT)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--days", type=int, default=60)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--screenshots", type=Path)
    parser.add_argument("--keep", action="store_true", help="leave MLflow running at the end")
    return parser.parse_args()


@contextlib.contextmanager
def _mlflow(home: Path) -> Iterator[str]:
    """Yield the URL of an MLflow server of its own, on the loopback interface."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        *(sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port)),
        *("--workers", "1", "--backend-store-uri", f"sqlite:///{home / 'mlflow.db'}"),
        *("--artifacts-destination", str(home / "artifacts")),
    ]
    lean = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
    with (home / "log").open("wb") as log:
        server = subprocess.Popen(
            command, cwd=home, env=os.environ | lean, stdout=log, stderr=log, start_new_session=True
        )
    try:
        _wait(f"http://127.0.0.1:{port}/health")
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(20)


def _wait(url: str) -> None:
    for _ in range(600):
        with contextlib.suppress(urllib.error.URLError, TimeoutError):
            urllib.request.urlopen(url, timeout=5)
            return
        time.sleep(0.2)
    raise SystemExit(f"no answer from {url}")


def _make_history(url: str, days: int) -> None:
    rng = np.random.default_rng(7)
    last = FIRST + timedelta(days=days - 1)
    published = []
    for number in range(days):
        day = FIRST + timedelta(days=number)
        left = (last - day).days
        if left == REJECTED:
            result, tables = _rejected(day), None
        else:
            tables = DayTables(
                measurements=_measurements(rng, day, labels=190, fallen=left <= FALLEN),
                window=_measurements(rng, day, labels=2600, fallen=left == 0),
                drift=_drift(rng, day),
            )
            counted = _counted(rng, day, left)
            result = replace(counted, figures=key_figures(tables, counted))
        publish_day(result, tables, check_page=_PAGE, links=_LINKS, tracking_uri=url)
        published.append(result)
    publish_days(published, load_rules(), tracking_uri=url)


_LINKS = {
    "Review queue": "http://127.0.0.1:8090",
    "Airflow run": "http://127.0.0.1:8080/dags/score_comments/runs",
}

_PAGE = "<!doctype html><title>Validation</title><p>Validation of the day</p>"


def _rejected(day: date) -> Day:
    alerts = (_alert("checks_rejected", "critical", day), _alert("volume_low", "critical", day))
    return Day(
        day=day,
        checks="rejected",
        reason="`empty_day`: 0 rows, allowed: at least 1",
        figures={"day/alerts": KeyFigure(value=2.0)},
        alerts=alerts,
    )


def _alert(rule: str, severity: Severity, since: date, description: str = "") -> ActiveAlert:
    return ActiveAlert(
        rule=rule, subject="", severity=severity, since=since, description=description
    )


def _counted(rng: np.random.Generator, day: date, left: int) -> Day:
    fallen = day + timedelta(days=left - FALLEN)
    alerts = (_alert("accuracy_fell_far", "critical", fallen, "accuracy 0.96 to 0.75"),)
    comments = int(rng.poisson(2000))
    return Day(
        day=day,
        comments=comments,
        quarantined=int(rng.poisson(12)),
        flagged=int(rng.poisson(40)),
        routed=200,
        labelled=190 if left else 120,
        model_version="1" if left > NEW_MODEL else "2",
        strategy="uncertainty",
        review_fraction=0.1,
        checks="passed",
        pooled_days=14,
        window_days=14,
        alerts=alerts if left < FALLEN - 1 else (),
        digest=str(day),
    )


def _measurements(
    rng: np.random.Generator, day: date, *, labels: int, fallen: bool
) -> pd.DataFrame:
    """Return estimates of the deployed settings, from binomial samples of `labels` labels."""
    level = 0.75 if fallen else 0.96
    true = {
        "accuracy": level,
        "oc_accuracy": level + 0.02,
        "review_efficiency": 0.2,
        "prevalence": 0.05,
        "brier": 0.04,
    }
    rows = []
    for metric, share in true.items():
        value = rng.binomial(labels, share) / labels
        error = 1.96 * max(np.sqrt(share * (1 - share) / labels), 1e-3)
        together = metric in ("oc_accuracy", "review_efficiency")
        rows.append(
            {
                "dt": day,
                "metric": metric,
                "strategy": "uncertainty" if together else None,
                "alpha": 0.1 if together else None,
                "value": value,
                "low": max(value - error, 0.0),
                "high": min(value + error, 1.0),
                "n": labels,
                "effective_n": float(labels),
                "status": "ok",
                "reason": "",
                "labels_digest": "0",
            }
        )
    return pd.DataFrame(rows, columns=MEASUREMENTS.names)


def _drift(rng: np.random.Generator, day: date) -> pd.DataFrame:
    psi = abs(rng.normal(0.01, 0.01))
    row = {
        "dt": day,
        "metric": "psi",
        "feature": "prob",
        "reference": "trailing",
        "value": psi,
        "low": max(psi - 0.01, 0.0),
        "high": psi + 0.02,
        "direction": None,
        "n": 2000,
        "reference_n": 28000,
        "status": "ok",
        "reason": "",
    }
    return pd.DataFrame([row], columns=DRIFT.names)


def _measure(url: str, options: argparse.Namespace) -> float:
    """Print the median seconds of each page and their ratio; return those of the saved view."""
    found: dict[str, float] = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for name, (address, until) in _pages(url, options.days).items():
            _open(browser, address, until)  # the server's first answer is slow
            seconds = [
                _open(browser, address, until, _picture(options, name, number))
                for number in range(options.repeat)
            ]
            found[name] = statistics.median(seconds)
        browser.close()
    baseline = found["plain list"]
    for name, seconds_of in found.items():
        print(f"{name}: {seconds_of:.2f} s, {seconds_of / baseline:.2f} times the plain list")
    return found["saved view"]


def _pages(url: str, days: int) -> dict[str, tuple[str, Callable[[Page], None]]]:
    """Return address of each page by name, and what waits until it shows what it should."""
    with connect(url) as client:
        number = experiment_id(client, "modwatch")
        runs = runs_tagged(client, number, {"kind": "day"})
        [timeline] = runs_tagged(client, number, {"kind": "timeline"})
    newest = max(runs, key=lambda run: int(run.info.start_time)).info.run_id
    last = FIRST + timedelta(days=days - 1)
    critical = f"critical since {last - timedelta(days=FALLEN)}"
    return {
        "plain list": (
            f"{url}/#/experiments/{number}/runs?workflowType=machine_learning",
            _shows(str(last)),
        ),
        "saved view": (days_url(url), _shows(critical)),
        "day": (run_url(url, number, newest).replace("/model-metrics", ""), _shows("CRITICAL")),
        "timeline": (
            artifact_url(url, number, timeline.info.run_id, TIMELINE_PAGE),
            _shows_in_frame(f"{last}: {critical}"),
        ),
    }


def _shows(text: str) -> Callable[[Page], None]:
    return lambda page: page.get_by_text(text).first.wait_for(timeout=60_000)


def _shows_in_frame(text: str) -> Callable[[Page], None]:
    return lambda page: (
        page.frame_locator("iframe").get_by_text(text).first.wait_for(timeout=60_000)
    )


def _picture(options: argparse.Namespace, name: str, number: int) -> Path | None:
    if options.screenshots is None or number:
        return None
    options.screenshots.mkdir(parents=True, exist_ok=True)
    return Path(options.screenshots) / f"{name.replace(' ', '-')}.png"


def _open(
    browser: Browser, address: str, until: Callable[[Page], None], picture: Path | None = None
) -> float:
    """Return the seconds until a page shows what it should, in a profile without cache."""
    with browser.new_context(viewport=_WIDE) as context:
        page = context.new_page()
        begun = time.perf_counter()
        page.goto(address)
        until(page)
        seconds = time.perf_counter() - begun
        if picture is not None:
            page.wait_for_timeout(1500)
            page.screenshot(path=picture)
    return seconds


if __name__ == "__main__":
    main()
