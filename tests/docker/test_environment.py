"""The environment that `docker/` hands over: real settings, and no variable left unexplained."""

import importlib
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from modwatch.settings import Settings
from modwatch.settings.fields import variables

DOCKER = Path(__file__).parents[2] / "docker"
SETTINGS = {variable.name for variable in variables()}
Compose = dict[str, Any]
#: `${NAME}`, `${NAME:-default}`, `${NAME:?message}`; `$$` is a plain dollar.
VARIABLE = re.compile(r"(?<!\$)\$\{(\w+)(?::([-?])([^}]*))?\}")


@pytest.fixture(scope="module")
def compose():
    return dict(yaml.safe_load((DOCKER / "compose.yaml").read_text()))


def real_settings(compose: Compose) -> list[str]:
    return [
        f"{name}: {key} is no setting of Modwatch"
        for name, service in compose["services"].items()
        for key in service.get("environment", {})
        if key.startswith("MODWATCH_") and key not in SETTINGS
    ]


def test_compose_sets_real_settings_only(compose):
    assert real_settings(compose) == []


@pytest.mark.parametrize("name", ["MODWATCH_ALPHA", "MODWATCH_SOURCE__NONSENSE", "MODWATCH_"])
def test_unknown_setting_is_found(name):
    assert real_settings({"services": {"a": {"environment": {name: "x"}}}})


def test_every_secret_can_be_set_in_the_env_file(compose):
    secrets = {
        f"MODWATCH_{name.upper()}"
        for name, field in Settings.model_fields.items()
        if "SecretStr" in str(field.annotation)
    }
    handed_over = {name for one in compose["services"].values() for name in one["environment"]}
    assert secrets <= handed_over


def test_images_set_real_settings_only():
    texts = [path.read_text() for path in DOCKER.glob("*.Dockerfile")]
    names = {name for text in texts for name in re.findall(r"\b(MODWATCH_\w+)=", text)}
    assert names
    assert names <= SETTINGS


def test_every_required_variable_stands_in_the_example():
    """And none there has a value, or is not asked for."""
    used = VARIABLE.findall((DOCKER / "compose.yaml").read_text())
    required = {name for name, how, _ in used if how == "?"}
    example = (DOCKER / ".env.example").read_text()
    assert required == set(re.findall(r"^(\w+)=", example, re.MULTILINE))
    assert not re.findall(r"^\w+=.+", example, re.MULTILINE)


def test_optional_variables_stand_in_the_example_as_comments(compose):
    used = VARIABLE.findall((DOCKER / "compose.yaml").read_text())
    optional = {name for name, how, _ in used if how != "?"}
    handed_over = {
        key
        for service in compose["services"].values()
        for key, value in service.get("environment", {}).items()
        if value is None
    }
    example = (DOCKER / ".env.example").read_text()
    assert optional | handed_over == set(re.findall(r"^#(\w+)=", example, re.MULTILINE))


def test_settings_file_holds_settings_that_fit(monkeypatch):
    lines = (DOCKER / "modwatch.env").read_text().splitlines()
    pairs = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    assert set(pairs) <= SETTINGS
    assert not [name for name in pairs if re.search(r"PASSWORD|SECRET|TOKEN|SALT|URL", name)]
    for name, value in pairs.items():
        monkeypatch.setenv(name, value)
    Settings()


# MLflow 3.17 maps its tables with a loader that SQLAlchemy 2.1 wants to drop.
@pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")
@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("mlflow.localhost:5000", True),
        ("127.0.0.1:5000", True),
        ("localhost:5055", True),
        ("attacker.example:5000", False),
        ("attacker.example", False),
        ("mlflow.localhost.attacker.example:5000", False),
    ],
)
def test_mlflow_answers_to_its_own_names_alone(compose, host, allowed):
    from mlflow.server.security_utils import is_allowed_host_header

    names = compose["services"]["mlflow"]["environment"]["MLFLOW_SERVER_ALLOWED_HOSTS"]
    assert is_allowed_host_header(names.split(","), host) is allowed


def test_the_executor_is_a_local_one_that_can_be_loaded(compose):
    """Airflow reads it as a path of a class; a wrong one stops the scheduler."""
    from airflow.executors.local_executor import LocalExecutor

    environments = [service.get("environment", {}) for service in compose["services"].values()]
    chosen = {
        environment["AIRFLOW__CORE__EXECUTOR"]
        for environment in environments
        if "AIRFLOW__API__WORKERS" in environment
    }
    (path,) = chosen
    module, _, name = path.rpartition(".")
    assert issubclass(getattr(importlib.import_module(module), name), LocalExecutor)


def test_secrets_are_as_long_as_signing_keys_should_be():
    """A key for HMAC with SHA-512 has 64 bytes or more (RFC 7518), or Airflow warns."""
    [size] = re.findall(r"openssl rand -hex (\d+)", (DOCKER / ".env.example").read_text())
    assert 2 * int(size) >= 64
