"""The Grafana dashboard asks for metrics that the console and the model server have."""

import functools
import json
import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from modwatch.models.serving.telemetry import ProcessTelemetry
from modwatch.review.people import accounts
from review.labelling import held, label

DASHBOARD = Path(__file__).resolve().parents[3] / "docker" / "grafana" / "modwatch.json"
_LIMIT_SECONDS = 60


def panels() -> list[dict[str, Any]]:
    return [
        panel for panel in json.loads(DASHBOARD.read_text())["panels"] if panel["type"] != "row"
    ]


def queries() -> list[str]:
    return [target["expr"] for panel in panels() for target in panel["targets"]]


@pytest.fixture
def pages(client, engine, fill, scraper):
    """Return what the console and the model server show, some time after they started."""
    fill(3)
    ann = accounts.create_moderator(engine, "ann", "moderator")
    lease = held(engine, ann)
    label(engine, ann, lease)
    client.get("/livez")
    server = ProcessTelemetry()
    server.watch(lambda: 2)
    server.answered(0.1)
    server.batch_scored(texts=10, subwords=200, seconds=0.1)
    console = client.get("/metrics", headers=scraper).text
    return {"console": console, "model": server.page().decode()}


def test_every_metric_of_the_dashboard_exists(pages):
    there = set(re.findall(r"^# TYPE (\w+)", "\n".join(pages.values()), re.M))
    asked = {name for query in queries() for name in re.findall(r"modwatch_\w+", query)}
    without_part = {re.sub(r"_(bucket|count|sum)$", "", name) for name in asked}
    assert len(without_part) > 10
    assert without_part <= there


def test_every_panel_says_what_it_shows_and_none_covers_another():
    places = set()
    for panel in panels():
        assert panel["title"]
        assert panel["description"].endswith(".")
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        cells = {(at["x"] + i, at["y"] + j) for i in range(at["w"]) for j in range(at["h"])}
        assert not cells & places
        places |= cells


@pytest.mark.skipif(not shutil.which("prometheus"), reason="Prometheus is not installed")
def test_a_real_prometheus_answers_every_query(pages, tmp_path):
    with prometheus(pages, tmp_path) as address:
        for query in queries():
            deadline = time.monotonic() + _LIMIT_SECONDS
            while not (found := answer(address, query)):
                assert time.monotonic() < deadline, query
                time.sleep(0.5)
            assert found, query


def answer(address: str, query: str) -> list[Any]:
    """Return the series of a query; none while Prometheus starts."""
    try:
        reply = httpx.get(f"{address}/api/v1/query", params={"query": query}, trust_env=False)
    except httpx.HTTPError:
        return []
    if reply.status_code == 503:  # it still starts
        return []
    assert reply.json()["status"] == "success", reply.text
    return list(reply.json()["data"]["result"])


class Silent(SimpleHTTPRequestHandler):
    """Serves files without a line for each."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def prometheus(pages: dict[str, str], folder: Path) -> Iterator[str]:
    """Run Prometheus, which reads the pages of two programs; yield its address."""
    for name, page in pages.items():
        (folder / name).mkdir()
        (folder / name / "metrics").write_text(page)
    handler = functools.partial(Silent, directory=str(folder))
    served = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=served.serve_forever, daemon=True).start()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    jobs = [
        {"job_name": name, "metrics_path": f"/{name}/metrics",
         "static_configs": [{"targets": [f"127.0.0.1:{served.server_port}"]}]}
        for name in pages
    ]  # fmt: skip
    config = folder / "prometheus.yml"
    config.write_text(json.dumps({"global": {"scrape_interval": "1s"}, "scrape_configs": jobs}))
    command = [
        "prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}", "--log.level=error",
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=_LIMIT_SECONDS)
        served.shutdown()
        served.server_close()
