"""Somebody who looks for the group that a person chose, wherever the console answers.

What figures of groups tell is in `tests/monitoring/measurements/test_group_inference.py`.
"""

import io
from collections.abc import Callable
from datetime import date

import pyarrow.parquet as pq
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import Engine, text

from modwatch.review.console.request_context import csrf_of
from modwatch.review.events import recent_events
from modwatch.review.log.export import export
from modwatch.review.log.labels import annotation_days, given_labels
from modwatch.review.people import accounts
from modwatch.review.people.accounts import Moderator
from modwatch.review.people.groups import SMALLEST_DRAW, counted_groups
from modwatch.review.queue.items import NewItem
from review.console.visiting import by_cookie, everything, session_of, used

#: In every group, so that one search finds what leaks.
SECRET = "quillfeather"


@pytest.fixture
def who(engine: Engine, new_item: Callable[..., NewItem], day: date) -> dict[str, Moderator]:
    """Everybody who works in the console, by role; and more people who chose groups."""
    for number in range(SMALLEST_DRAW):
        accounts.create_moderator(engine, f"person {number}", "moderator")
    return used(engine, new_item, day)


def choose(engine: Engine) -> None:
    """Let everybody choose a group, and count in one."""
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM moderator_group"))
        connection.execute(
            text(f"INSERT INTO moderator_group SELECT id, '{SECRET} ' || id FROM moderator")
        )
    assert all(SECRET in counted for counted in counted_groups(engine).values())


@pytest.mark.parametrize("role", ["moderator", "lead", "auditor", "ops", "admin"])
def test_no_page_api_answer_or_feed_tells_it(
    engine: Engine, app: FastAPI, stranger: TestClient, who: dict[str, Moderator], role: str
) -> None:
    choose(engine)
    message = everything(engine, app, stranger, who[role])
    assert len(message) > 10
    for where, answer in message.items():
        assert SECRET not in answer, where
    with engine.connect() as connection:  # what was asked deleted some, but not all
        assert connection.scalar(text("SELECT count(*) FROM moderator_group")) > SMALLEST_DRAW


def test_not_even_their_own_page_shows_it(
    engine: Engine, stranger: TestClient, who: dict[str, Moderator]
) -> None:
    session = session_of(engine, who["moderator"])
    form = {"csrf": csrf_of(session), "group": SECRET}
    answer = stranger.post("/preferences/group", data=form, headers=by_cookie(session))
    assert answer.status_code == 303
    assert SECRET not in stranger.get("/preferences", headers=by_cookie(session)).text
    with engine.connect() as connection:
        names = connection.execute(text("SELECT group_name FROM moderator_group")).scalars().all()
    assert names == [SECRET]


def test_no_export_account_event_or_table_of_labels_has_it(
    engine: Engine, who: dict[str, Moderator]
) -> None:
    choose(engine)
    whole = [b"".join(export(engine, kind, with_notes=True)) for kind in ("csv", "jsonl")]
    sink = b"".join(export(engine, "parquet", with_notes=True))
    days = annotation_days(engine, date(2020, 1, 1), date(2100, 1, 1))
    labels = [batch.to_pylist() for day in days for batch in given_labels(engine, day)]
    assert labels
    message = [
        *whole, pq.read_table(io.BytesIO(sink)).to_pylist(), labels, accounts.people(engine),
        recent_events(engine), accounts.find_moderator(engine, "the moderator"),
    ]  # fmt: skip
    for item in message:
        assert SECRET not in str(item)
