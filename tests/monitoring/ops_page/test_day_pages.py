"""Addresses of days that cannot be."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi.testclient import TestClient

import modwatch
from modwatch.monitoring.ops_page.app import AirflowAccess, create_ops_app


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
def test_an_address_that_leads_nowhere_is_answered_in_words(path, words):
    data: Any = SimpleNamespace(site=None)
    airflow = AirflowAccess(
        may_read=lambda: None,
        operator=lambda: "Ann",
        run_path=lambda _: None,
        repair=lambda *_: "",
    )
    app = create_ops_app(data, airflow)
    answer = TestClient(app).get(f"/days/{path}")
    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; style-src")
    assert words in answer.text
    assert "<script" not in answer.text


#: What serves pages with a policy in a header, and so needs none in the page.
BY_HEADER = {"review/console", "monitoring/ops_page"}


def test_every_page_has_a_content_security_policy():
    """In a header where Modwatch serves it, or in itself where it is opened from a disk."""
    source = Path(modwatch.__file__).parent
    bare = {
        path.relative_to(source)
        for path in source.rglob("*")
        if path.suffix in (".py", ".html")
        and "<!doctype html>" in (words := path.read_text().lower())
        and "content-security-policy" not in words
    }
    assert {"/".join(path.parts[:2]) for path in bare} <= BY_HEADER
