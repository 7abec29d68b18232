"""The small lake, as a task of Airflow finds it: in its environment."""

from typing import Any

import pytest
from small_audits import begin

from modwatch.pipeline.airflow import audits


@pytest.fixture
def resources(small_home, small, monkeypatch):
    """The small lake, which the environment names, too."""
    for name, value in small_home.env.items():
        monkeypatch.setenv(name, value)
    return small


@pytest.fixture
def asked(monkeypatch):
    """What Airflow is asked to show to people."""
    shown: list[dict[str, Any]] = []

    def upsert(**question: Any) -> None:
        shown.append(question)

    monkeypatch.setattr("airflow.providers.standard.operators.hitl.upsert_hitl_detail", upsert)
    monkeypatch.setattr(audits, "upsert_hitl_detail", upsert)
    return shown


@pytest.fixture(autouse=True)
def address(monkeypatch):
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "http://airflow.test")


@pytest.fixture
def drawn(resources):
    begin(resources)
    return resources
