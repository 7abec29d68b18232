"""The console as this installation serves it: alone, inside Airflow, with its deliveries."""

import gc
import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import text

from installation import Installation
from modwatch.common.addresses import OPS_PREFIX
from modwatch.installation.console import AIRFLOW_PREFIX, MountedConsole, console_options, deliverer
from modwatch.installation.resources import open_resources
from modwatch.review.people.access_tokens import issue_token
from modwatch.review.people.accounts import create_moderator

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

Install = Callable[..., Installation]
PLUGIN = Path(__file__).parents[2] / "plugins" / "modwatch_plugin.py"


@pytest.fixture
def home(install, monkeypatch):
    made = install()
    for name, value in made.env.items():
        monkeypatch.setenv(name, value)
    return made


@pytest.fixture
def airflow(home):
    """What Airflow does with the plugin's application, and a page of its own."""
    root = FastAPI()
    console = MountedConsole()
    root.mount(AIRFLOW_PREFIX, console)

    @root.get("/{rest:path}")
    def page(rest: str) -> str:
        return f"Airflow's page {rest}"

    with TestClient(root, raise_server_exceptions=False) as client:
        yield client
    console.close()


def test_inside_airflow_every_endpoint_asks_who_it_is(airflow):
    schema = airflow.get(f"{AIRFLOW_PREFIX}/api/v1/openapi.json").json()
    asked = 0
    for path, methods in schema["paths"].items():
        for method in methods:
            answer = airflow.request(
                method, AIRFLOW_PREFIX + path.replace("{", "1").replace("}", "")
            )
            if path in ("/livez", "/readyz"):
                assert answer.status_code == 200
            else:
                assert answer.status_code in (401, 403), (method, path)
                asked += 1
    assert asked >= 5


def test_inside_airflow_people_log_in_at_the_prefix(airflow, home):
    with open_resources() as resources:
        token = issue_token(
            resources.database, create_moderator(resources.database, "ann", "moderator").id
        )
    way_in = airflow.get(f"{AIRFLOW_PREFIX}/", headers={"accept": "text/html"})
    assert way_in.url.path == f"{AIRFLOW_PREFIX}/login"
    csrf = way_in.text.split('name="csrf" value="')[1].split('"')[0]
    form = {"token": token, "csrf": csrf}
    inside = airflow.post(f"{AIRFLOW_PREFIX}/login", data=form, headers={"accept": "text/html"})
    assert inside.status_code == 200
    assert inside.url.path == f"{AIRFLOW_PREFIX}/"
    assert "ann" in inside.text
    assert {cookie.path for cookie in airflow.cookies.jar} == {AIRFLOW_PREFIX}
    assert airflow.get("/anything").text == '"Airflow\'s page anything"'


@pytest.fixture
def plugin(home):
    spec = importlib.util.spec_from_file_location("modwatch_plugin", PLUGIN)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.ModwatchPlugin


def test_the_plugin_opens_nothing_until_it_is_asked(home, plugin):
    mounted = [app["url_prefix"] for app in plugin.fastapi_apps]
    assert mounted == [AIRFLOW_PREFIX, OPS_PREFIX]
    assert not (home.home / "postgres").exists()


def test_every_link_that_the_plugin_adds_to_airflow_opens(home, plugin, monkeypatch):
    """And has figures: nothing is unknown, though no day was run. No connection is left."""
    security = "airflow.api_fastapi.core_api.security.requires_access_view"
    monkeypatch.setattr(security, lambda _: lambda: None)  # Airflow's own log-in
    monkeypatch.setattr("modwatch.installation.mounted.operator", lambda: lambda: "Ann")
    root = FastAPI()
    for app in plugin.fastapi_apps:
        root.mount(app["url_prefix"], app["app"])
    web = TestClient(root, base_url=home.settings.airflow_url, follow_redirects=False)
    opened = {}
    for view in plugin.external_views:
        answer = web.get(view["href"], headers={"accept": "text/html"})
        opened[view["name"]] = (answer.status_code, answer.headers.get("location", ""))
        assert "Not known" not in answer.text
    for app in plugin.fastapi_apps:
        app["app"].close()
    gc.collect()  # of a connection that nobody closed, psycopg warns
    assert opened.pop("MLflow")[0] == 307
    assert opened == {"Modwatch": (200, ""), "Review": (303, "./login")}


def test_https_makes_the_cookies_secure(home):
    with open_resources(home.settings) as resources:
        assert console_options(resources, "https://mods.example.org").secure_cookies
        assert not console_options(resources, "http://127.0.0.1:8090").secure_cookies


def test_the_provider_sends_people_back_to_this_console(install):
    made = install(
        "with_oidc", oidc_issuer="https://id.example.org", oidc_client_id="modwatch",
        oidc_roles={"mods": "moderator"},
    )  # fmt: skip
    with open_resources(made.settings) as resources:
        oidc = console_options(resources, "https://mods.example.org/").oidc
    assert oidc is not None
    assert oidc.issuer == "https://id.example.org"
    assert (oidc.client_id, oidc.client_secret) == ("modwatch", "")
    assert oidc.redirect_url == "https://mods.example.org/oidc/callback"


def test_without_a_webhook_nothing_is_posted(home):
    with open_resources() as resources:
        assert deliverer(resources).channels == {}
        assert not deliverer(resources).once()


def test_a_console_that_cannot_begin_leaves_no_connection_behind(home, monkeypatch, tmp_path):
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "queues.toml").write_text("no TOML")
    monkeypatch.setenv("MODWATCH_CONFIG", str(tmp_path / "config"))
    root = FastAPI()
    root.mount(AIRFLOW_PREFIX, MountedConsole())
    web = TestClient(root, raise_server_exceptions=False)
    count = text("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
    with open_resources(home.settings) as resources, resources.database.connect() as connection:
        before = connection.scalar(count)
        for _ in range(3):
            assert web.get(f"{AIRFLOW_PREFIX}/livez").status_code == 500
        assert connection.scalar(count) == before
