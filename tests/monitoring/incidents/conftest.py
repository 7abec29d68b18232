"""Installations without a model, whose alerts go to a real server."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from receivers import Webhook, webhook

from conftest import Registry
from installation import Installation
from modwatch.installation.resources import Resources, open_resources
from monitoring.incidents.evenings import RULES, to


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture(scope="session")
def empty_mlflow(unmanned: Registry, tmp_path_factory: pytest.TempPathFactory) -> str:
    """An MLflow without runs; alerts link to it."""
    return unmanned.copy(tmp_path_factory.mktemp("alerts") / "mlflow")


@pytest.fixture
def server() -> Iterator[Webhook]:
    with webhook() as running:
        yield running


@pytest.fixture
def with_defaults(tmp_path: Path, queue_url: str, empty_mlflow: str) -> Installation:
    """An installation with the rules of Modwatch, without channels."""
    return Installation(
        values={
            "home": tmp_path / "home",
            "source": {"kind": "community"},
            "database_url": queue_url,
            "mlflow_url": empty_mlflow,
            "alert_timeout": 0.5,
        }
    )


@pytest.fixture
def home(with_defaults: Installation, tmp_path: Path) -> Installation:
    """The same with one rule."""
    (tmp_path / "rules.toml").write_text(RULES)
    return with_defaults.but(alert_rules=tmp_path / "rules.toml")


@pytest.fixture
def resources(home: Installation, server: Webhook) -> Iterator[Resources]:
    """The opened installation with one rule, whose alerts go to `server`."""
    with open_resources(home.but(**to(server)).settings) as opened:
        yield opened


@pytest.fixture
def by_defaults(with_defaults: Installation, server: Webhook) -> Iterator[Resources]:
    """The opened installation with the rules of Modwatch, whose alerts go to `server`."""
    with open_resources(with_defaults.but(**to(server)).settings) as opened:
        yield opened
