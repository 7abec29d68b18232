"""Addresses of days that cannot be."""

from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from modwatch.monitoring.ops_page.page import day_router


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("2026-99-99/validation", "The address names no day: write a day of the calendar as"),
        ("<script>/mlflow", "The address names no day"),
        ("20260105/airflow", "The address names no day"),
        ("2026-01-05/secrets", "it has airflow, mlflow, validation"),
        ("2026-01-05/airflow", "2026-01-05 has no run in Airflow yet"),
    ],
)
def test_an_address_that_leads_nowhere_is_answered_in_words(path: str, words: str) -> None:
    data: Any = SimpleNamespace(site=None)
    app = FastAPI()
    app.include_router(day_router(data, lambda _: None))
    answer = TestClient(app).get(f"/days/{path}")
    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["cache-control"] == "no-store"
    assert words in answer.text
    assert "<script" not in answer.text
