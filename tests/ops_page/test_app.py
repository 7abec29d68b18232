"""The page inside Airflow: what it shows, to whom, and what it says of what is down."""

import datetime
import re
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest
from airflow.api_fastapi.auth.managers.models.resource_details import AccessView
from airflow.api_fastapi.core_api.security import requires_access_view
from fastapi.testclient import TestClient
from installation import MONDAY, TO_THE_QUEUE, Installation, review

from modwatch.lake.schemas import TABLES
from modwatch.ops_page.app import create_ops_app
from modwatch.resources import open_resources
from modwatch.review.reporting.workload import overview

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

Install = Callable[..., Installation]


def anybody() -> None:
    """Let everybody in."""


@pytest.fixture
def home(install: Install) -> Installation:
    """An installation with one published day and an open incident of a hostile name."""
    home = install()
    home.run(*TO_THE_QUEUE)
    review(home, limit=20)
    home.run("collect_labels", "measure")
    row = {
        "dt": MONDAY,
        "rule": "psi_high",
        "subject": "<script>alert(1)</script>",
        "severity": "critical",
        "since": MONDAY - datetime.timedelta(days=1),
        "words": "psi 0.31",
    }
    with open_resources(home.settings) as at:
        at.lake.replace(
            "alerts", MONDAY, [pa.RecordBatch.from_pylist([row], schema=TABLES["alerts"])]
        )
    home.run("publish")
    return home


@pytest.fixture
def client(home: Installation) -> Iterator[TestClient]:
    """The page of that installation, for somebody who is logged in."""
    with open_resources(home.settings) as at:
        yield TestClient(create_ops_app(at, anybody), follow_redirects=False)


def test_one_look_tells_whether_the_day_is_normal_and_since_when(client: TestClient) -> None:
    page = client.get("/").text
    head = page.partition("</h1>")[0]
    assert "2026-01-05" in head
    assert "critical since 2026-01-04" in head
    assert "psi high" in page
    assert "psi 0.31" in page
    assert re.search(r"<td>20 of \d+<td>", page), "labels of the day"
    assert "None yet." in page, "no audit was published"
    assert "<script" not in page


def test_the_timeline_is_that_of_mlflow(client: TestClient) -> None:
    page = client.get("/timeline").text
    assert "Timeline to 2026-01-05" in page
    assert "<svg" in page


@pytest.mark.parametrize("path", ["/", "/timeline", "/mlflow"])
def test_nobody_who_is_not_logged_in_sees_anything(home: Installation, path: str) -> None:
    with open_resources(home.settings) as at:
        app = create_ops_app(at, requires_access_view(AccessView.WEBSITE))
        answer = TestClient(app, follow_redirects=False).get(path)
    assert answer.status_code == 401
    assert "2026" not in answer.text
    assert "location" not in answer.headers


def test_a_made_up_page_of_the_api_does_not_exist(client: TestClient) -> None:
    assert [client.get(path).status_code for path in ("/docs", "/openapi.json")] == [404, 404]


def test_the_link_to_mlflow_opens_the_saved_view(client: TestClient) -> None:
    answer = client.get("/mlflow")
    assert answer.status_code == 307
    assert answer.headers["location"].endswith("viewStateShareKey=days")


def test_without_mlflow_the_queue_is_shown(home: Installation) -> None:
    away = home.but(mlflow_url="http://127.0.0.1:9")
    with open_resources(away.settings) as at:
        client = TestClient(create_ops_app(at, anybody), follow_redirects=False)
        page = client.get("/").text
        assert "MLflow at http://127.0.0.1:9 cannot be reached" in page
        lane = overview(at.database)[0]
        assert f"<tr><td>{lane.queue}<td>{lane.reason}<td>{lane.waiting}<td" in page
        assert client.get("/timeline").status_code == 503
        assert client.get("/mlflow").headers["location"] == "http://127.0.0.1:9"
