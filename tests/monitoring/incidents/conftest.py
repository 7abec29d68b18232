"""Installations without a model, whose alerts go to a real server."""

from functools import partial

import pytest
from receivers import webhook

from installation import Installation, config_with
from modwatch.installation import resources as resources_module
from modwatch.installation.resources import open_resources
from modwatch.monitoring.incidents.channels import Retry
from monitoring.incidents.evenings import RULES, to


@pytest.fixture(autouse=True)
def _nearby(monkeypatch):
    """Servers of this machine answer soon, and without a proxy."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(resources_module, "Retry", partial(Retry, timeout=0.5))


@pytest.fixture(scope="session")
def empty_mlflow(unmanned, tmp_path_factory):
    """An MLflow without runs; alerts link to it."""
    return unmanned.copy(tmp_path_factory.mktemp("alerts") / "mlflow")


@pytest.fixture
def server():
    with webhook() as running:
        yield running


@pytest.fixture
def with_defaults(tmp_path, queue_url, empty_mlflow):
    """An installation with the rules of Modwatch, without channels."""
    return Installation(
        values={
            "home": tmp_path / "home",
            "source": {"kind": "community"},
            "database_url": queue_url,
            "mlflow_url": empty_mlflow,
        }
    )


@pytest.fixture
def home(with_defaults, tmp_path):
    """The same with one rule."""
    return with_defaults.but(config=config_with(tmp_path, {"alerts.toml": RULES}))


@pytest.fixture
def resources(home, server):
    """The opened installation with one rule, whose alerts go to `server`."""
    with open_resources(home.but(**to(server)).settings) as opened:
        yield opened


@pytest.fixture
def by_defaults(with_defaults, server):
    """The opened installation with the rules of Modwatch, whose alerts go to `server`."""
    with open_resources(with_defaults.but(**to(server)).settings) as opened:
        yield opened
