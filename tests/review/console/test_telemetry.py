"""What Prometheus reads."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from databases import execute
from fastapi.testclient import TestClient
from sqlalchemy import event

from modwatch.review.console.app import create_app
from modwatch.review.console.request_context import ConsoleOptions
from modwatch.review.people import accounts
from modwatch.review.queue import leases
from review.labelling import held, label

Fill = Callable[[int], None]


@pytest.fixture
def fresh(engine):
    with TestClient(create_app(engine, ConsoleOptions(metrics_age=timedelta()))) as client:
        yield client


def test_figures_of_the_queue(fresh, scraper, engine, fill):
    fill(3)
    ann = accounts.create_moderator(engine, "ann", "moderator")
    lease = held(engine, ann)
    label(engine, ann, lease)
    leases.lease(engine, ann.id)
    execute(engine, "UPDATE review_item SET due_at = now() - interval '1 hour'")
    fresh.put("/api/v1/items/7/lease")
    figures = fresh.get("/metrics", headers=scraper).text.splitlines()
    for line in (
        'modwatch_queue_waiting{reason="uncertainty"} 1.0',
        'modwatch_queue_leased{reason="uncertainty"} 1.0',
        'modwatch_queue_overdue{reason="uncertainty"} 2.0',
        'modwatch_decisions_last_hour{action="label"} 1.0',
    ):
        assert line in figures
    assert any(
        'route="/api/v1/items/{item_id}/lease"' in line and 'status="401"' in line
        for line in figures
    )


def test_they_are_for_those_who_may(client, scraper, bearer):
    assert client.get("/metrics").status_code == 401
    assert client.get("/metrics", headers=bearer).status_code == 403
    assert client.get("/metrics", headers=scraper).status_code == 200
    assert client.get("/api/v1/decisions", headers=scraper).status_code == 403  # that token alone


def test_scrapes_are_cheap_and_addresses_make_no_labels(client, scraper, engine):
    asked: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *given: asked.append(given[2]))
    for n in range(20):
        client.get(f"/nowhere/{n}")
        client.get("/metrics", headers=scraper)
    figures = client.get("/metrics", headers=scraper).text
    assert "/nowhere" not in figures
    assert sum("outbox_delivery" in statement for statement in asked) == 1
