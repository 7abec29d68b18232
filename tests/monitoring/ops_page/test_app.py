"""The page inside Airflow: what it shows, to whom, and what it says of what is down."""

import datetime
import html
import re
from dataclasses import replace
from typing import Any

import httpx
import pyarrow as pa
import pytest
from airflow.api_fastapi.auth.managers.models.resource_details import AccessView
from airflow.api_fastapi.core_api.security import requires_access_view
from fastapi import FastAPI, HTTPException
from fastapi.testclient import TestClient
from sqlalchemy import Engine

from installation import MONDAY, TO_THE_QUEUE, copy_home, review
from modwatch.common.errors import AuditError, IncidentError, LakeError
from modwatch.common.mlflow_client import connect
from modwatch.data.lake.delta import Lake
from modwatch.data.lake.schemas import TABLES
from modwatch.installation.mounted import ops_data
from modwatch.installation.resources import Resources, open_resources
from modwatch.monitoring.incidents.actions import history, open_incidents
from modwatch.monitoring.incidents.messages.alert import Alert
from modwatch.monitoring.incidents.rules import Severity
from modwatch.monitoring.incidents.store import (
    IncidentChange,
    IncidentRecord,
    locked,
    save_changes,
)
from modwatch.monitoring.ops_page.app import AirflowAccess, create_ops_app
from modwatch.review.empty_days import declared_empty
from modwatch.review.queue.metrics import shown_counts
from modwatch.review.workload import measurements_left, work_left

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

PAGES = ("airflow", "mlflow", "validation")

OPEN: Any = {"severity": "critical", "headline": "The scores of <script> differ"}


def anybody() -> None:
    """Let everybody in."""


def scored(day: datetime.date) -> str | None:
    """Return the page of the run of Monday, as Airflow's database would."""
    return "dags/score_comments/runs/scheduled__1" if day == MONDAY else None


def access(**changes: Any) -> AirflowAccess:
    """Return an Airflow in which everybody may do everything as Ann."""
    plain: dict[str, Any] = {
        "may_read": anybody,
        "operator": lambda: "Ann",
        "run_path": scored,
        "repair": lambda day, person: f"{day} is run again by {person}",
    }
    return AirflowAccess(**{**plain, **changes})


def open_incident(
    resources: Resources, name: str = "scores<script>", *, severity: Severity, headline: str
) -> None:
    """Open an incident since the day before Monday."""
    alert = Alert(key=name, title=f"[{severity}] {name}", text="", facts={"event": "opened"})
    record = IncidentRecord(
        name=name, severity=severity, since=MONDAY - datetime.timedelta(days=1), opened=MONDAY,
        notified_on=MONDAY, headline=headline, first_headline=headline,
        text="psi is 0.31.\nLook at: the scores.",
        links={"MLflow": "http://mlflow/x", "bad": "javascript:alert(1)"},
        segment="platform=app: flagged 8.0 % → 37.0 %",
    )  # fmt: skip
    with locked(resources.database, "incident") as connection:
        save_changes(connection, (), "incident", [IncidentChange(alert=alert, record=record)])


@pytest.fixture(scope="module")
def home(make_installation, scored_monday, tmp_path_factory):
    """An installation with one published day and an open incident; no test changes it."""
    home = make_installation(tmp_path_factory.mktemp("ops"))
    copy_home(scored_monday.home, home.home)
    home.run(*TO_THE_QUEUE[4:])
    review(home, limit=20)
    home.run("collect_labels", "measure")
    row = {
        "dt": MONDAY,
        "rule": "psi_high",
        "subject": "<script>alert(1)</script>",
        "severity": "critical",
        "since": MONDAY - datetime.timedelta(days=1),
        "description": "psi 0.31",
    }
    with open_resources(home.settings) as resources:
        open_incident(resources, **OPEN)
        resources.lake.replace(
            "alerts", MONDAY, [pa.RecordBatch.from_pylist([row], schema=TABLES["alerts"])]
        )
    home.run("publish")
    return home


@pytest.fixture
def changing(home, queue_url):
    """The same with a database of its own, in which the incident is open, and nothing waits."""
    with open_resources(home.but(database_url=queue_url).settings) as resources:
        open_incident(resources, **OPEN)
        yield resources


@pytest.fixture
def client(home):
    """The page of that installation, for someone who is logged in."""
    with open_resources(home.settings) as resources:
        yield TestClient(create_ops_app(ops_data(resources), access()), follow_redirects=False)


def test_every_link_of_the_page_opens(client):
    page = client.get("/").text
    found = {html.unescape(link) for link in re.findall(r'<a href="([^"]+)"', page)}
    within = {link for link in found if "://" not in link}
    assert within >= {"timeline", "mlflow", *(f"days/{MONDAY}/{name}" for name in PAGES)}
    assert {link: client.get(f"/{link}").status_code >= 400 for link in within} == dict.fromkeys(
        within, False
    )


def test_one_look_tells_whether_the_day_is_normal_and_since_when(client):
    page = client.get("/").text
    head, _, rest = page.partition("</h1>")
    assert '<span class="bad">1 critical incident is open, since 2026-01-04</span>' in head
    newest = '2026-01-05: <span class="bad">critical since 2026-01-04</span>'
    assert f"The newest day is {newest}, " in rest
    assert "The scores of &lt;script&gt; differ" in page
    assert "Most of it: platform=app: flagged 8.0 % → 37.0 %" in page
    assert "<p>psi is 0.31.</p>" in page
    assert "no one" in page
    assert 'href="http://mlflow/x"' in page
    assert "javascript:" not in page
    assert re.search(r"<td>20 of \d+<td>", page), "labels of the day"
    assert "None yet." in page, "no audit was published"
    assert "<script" not in page


SAME = {"sec-fetch-site": "same-origin"}


def test_people_act_on_an_incident_by_its_number(changing):
    ann = access(operator=lambda: "Ann <b>")
    client = TestClient(create_ops_app(ops_data(changing), ann))
    (incident,) = open_incidents(changing.database)
    at = f"/incidents/{incident.number}"
    forms = {
        "acknowledge": {},
        "silence": {"until": str(datetime.datetime.now(datetime.UTC).date())},
    }
    client.get("/")
    for action, form in forms.items():
        answer = client.post(f"{at}/{action}", data=form, headers=SAME)
        assert answer.status_code == 200, answer.text
        assert f"{action} by Ann &lt;b&gt;" in answer.text
    page = client.get("/").text
    assert "acknowledged by Ann &lt;b&gt;" in page
    assert "silenced until" in page
    assert ">no one<" not in page
    assert f'action="incidents/{incident.number}/accept"' in page
    answer = client.post(f"{at}/silence", headers=SAME)
    assert (answer.status_code, "last day" in answer.text) == (409, True)
    assert (
        client.post(f"{at}/silence", data={"until": "2999-01-01"}, headers=SAME).status_code == 409
    )
    assert client.post("/incidents/99999/acknowledge", headers=SAME).status_code == 409
    assert client.post(f"{at}/delete", headers=SAME).status_code == 422
    assert client.post("/incidents/x/acknowledge", headers=SAME).status_code == 422
    done = [entry.what for entry in history(changing.database, str(incident.number)).entries]
    assert done == ["opened", "acknowledge", "silence"]

    # A level is accepted with a reason.
    answer = client.post(f"{at}/accept", headers=SAME)
    assert (answer.status_code, "note" in answer.text) == (409, True)
    answer = client.post(f"{at}/accept", data={"note": "a new platform"}, headers=SAME)
    assert answer.status_code == 200
    assert open_incidents(changing.database) == []


@pytest.mark.parametrize("path", ["/incidents/1/acknowledge", "/days/repair"])
def test_another_site_or_whoever_may_only_read_does_nothing(changing, path):
    client = TestClient(create_ops_app(ops_data(changing), access()))
    for headers in (
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "none"},
        {"origin": "http://evil"},
        {},
    ):
        assert client.post(path, headers=headers).status_code == 403
    own = {"origin": "http://testserver"}
    assert client.post("/incidents/99999/acknowledge", headers=own).status_code == 409

    def refuse() -> str:
        raise HTTPException(403, "ask an admin")

    client = TestClient(create_ops_app(ops_data(changing), access(operator=refuse)))
    assert client.post(path, headers=SAME).status_code == 403


def test_a_day_is_repaired_with_one_button(changing):
    client = TestClient(create_ops_app(ops_data(changing), access()))
    page = client.get("/").text
    assert f'action="days/repair"><input type="hidden" name="day" value="{MONDAY}">' in page
    assert '<input name="day" type="date"' in page, "an older day is repaired, too"
    answer = client.post("/days/repair", data={"day": str(MONDAY)}, headers=SAME)
    assert f"{MONDAY} is run again by Ann." in answer.text
    assert declared_empty(changing.database, MONDAY, MONDAY) == {}
    form = {"day": str(MONDAY), "empty": "true"}
    answer = client.post("/days/repair", data=form, headers=SAME)
    assert "a day without comments" in answer.text
    assert declared_empty(changing.database, MONDAY, MONDAY) == {MONDAY: "Ann"}

    def running(day: datetime.date, _: str) -> str:
        raise IncidentError(f"{day} is queued already; wait until its run has ended")

    client = TestClient(create_ops_app(ops_data(changing), access(repair=running)))
    answer = client.post("/days/repair", data={"day": str(MONDAY)}, headers=SAME)
    assert (answer.status_code, "queued already" in answer.text) == (409, True)
    assert client.post("/days/repair", data={"day": "soon"}, headers=SAME).status_code == 422


def test_incidents_are_listed_the_most_severe_first_and_no_more_than_fit(changing):
    for number in range(40):
        name, headline = f"late{number}", f"Late {number:02}"
        open_incident(changing, name, severity="warning", headline=headline)
    page = TestClient(create_ops_app(ops_data(changing), access())).get("/").text
    headlines = re.findall(r'<td class="headline">([^<]*)', page)
    assert headlines[0].startswith("The scores of")
    assert len(headlines) == 30
    assert "11 more" in page


def test_the_address_of_a_page_about_a_day_leads_to_its_run_or_the_page(client, home):
    run = client.get(f"/days/{MONDAY}/airflow")
    assert run.status_code == 307
    expected = f"{home.settings.airflow_url}/dags/score_comments/runs/scheduled__1"
    assert run.headers["location"] == expected
    page = client.get(f"/days/{MONDAY}/validation")
    assert page.status_code == 200
    assert "Comments" in page.text
    with connect(home.settings.mlflow_url) as mlflow:
        number = mlflow.get_experiment_by_name("modwatch").experiment_id
        (published,) = mlflow.search_runs([number], "tags.day = '2026-01-05'")
    run = client.get(f"/days/{MONDAY}/mlflow")
    assert run.status_code == 307
    assert published.info.run_id in run.headers["location"]
    run = client.get("/mlflow")
    assert run.status_code == 307
    assert run.headers["location"].endswith("viewStateShareKey=days")


def test_an_address_without_a_page_says_so(client):
    for page in PAGES:
        answer = client.get(f"/days/2026-01-20/{page}")
        assert answer.status_code == 404
        assert "2026-01-20 has no " in answer.text
    for path in ("/days/soon/mlflow", "/days/2026-01-05/secrets", "/days/..%2f/validation"):
        assert client.get(path).status_code in (404, 422)
    for path in ("/docs", "/openapi.json"):
        assert client.get(path).status_code == 404


def test_the_timeline_is_that_of_the_run_in_mlflow(client):
    page = client.get("/timeline").text
    assert "Timeline to 2026-01-05" in page
    assert "<svg" in page


def test_no_one_who_is_not_logged_in_sees_anything(home):
    """A browser is led to the log-in and back."""
    with open_resources(home.settings) as resources:
        app = create_ops_app(
            ops_data(resources), access(may_read=requires_access_view(AccessView.WEBSITE))
        )
        for path in ("/", "/timeline", "/mlflow", "/days/2026-01-05/validation"):
            answer = TestClient(app, follow_redirects=False).get(path)
            assert answer.status_code == 401
            assert "2026" not in answer.text
            assert "location" not in answer.headers
        root = FastAPI()
        root.mount("/modwatch-ops", app)
        client = TestClient(root, follow_redirects=False, headers={"accept": "text/html"})
        answer = client.get("/modwatch-ops/days/2026-01-05/validation")
    assert answer.status_code == 307
    where = httpx.URL(answer.headers["location"])
    assert str(where.copy_with(query=None)) == f"{home.settings.airflow_url}/api/v2/auth/login"
    back = f"{home.settings.airflow_url}/modwatch-ops/days/2026-01-05/validation"
    assert where.params["next"] == back
    assert "2026" not in answer.text


def test_without_mlflow_all_but_its_own_pages_is_shown(home):
    away = home.but(mlflow_url="http://127.0.0.1:9")
    with open_resources(away.settings) as resources:
        client = TestClient(create_ops_app(ops_data(resources), access()), follow_redirects=False)
        page = client.get("/").text
        assert "cannot be reached" not in page
        assert "Timeline to 2026-01-05" in client.get("/timeline").text
        assert client.get("/mlflow").headers["location"] == "http://127.0.0.1:9"
        assert client.get(f"/days/{MONDAY}/mlflow").status_code == 503


def assert_shows_queue(page: str, database: Engine) -> None:
    """The counts are those that moderators and leads see, and what these do not see apart."""
    lanes, apart = page.partition("Items for figures and audits")[::2]
    assert work_left(database)
    for rows, part in ((work_left(database), lanes), (measurements_left(database), apart)):
        for lane in rows:
            assert f"<tr><td>{lane.queue}<td>{lane.reason}<td>{lane.waiting:,}<td" in part
    assert f"In review: {shown_counts(database).leased}." in page
    assert "<th>waiting<th>overdue<th>escalated<th>oldest, hours<th>reviewed today" in page


def test_what_cannot_be_read_is_named_and_the_rest_is_shown(home):
    with open_resources(home.settings) as resources:
        data = replace(
            ops_data(resources), lake=BrokenLake(root=resources.lake.root), last_audit=broken
        )
        client = TestClient(create_ops_app(data, access()), follow_redirects=False)
        page = client.get("/").text
        assert "table days cannot be read" in page
        assert "Not known whether the newest day is normal" in page
        assert "None yet." not in page, "nobody knows"
        assert page.count("Not known: see above.") == 2, "the week and the audit"
        assert_shows_queue(page, resources.database)
        assert client.get("/timeline").status_code == 503


class BrokenLake(Lake):
    """A lake whose table `days` cannot be read."""

    def days(self, table: str) -> list[datetime.date]:
        if table == "days":
            raise LakeError("table days cannot be read")
        return super().days(table)


def broken() -> str | None:
    raise AuditError("the chain of audit x was changed")
