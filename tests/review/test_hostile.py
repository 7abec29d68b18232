"""Two consoles on one database, for one person and for two, at the same time."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine, text

from modwatch.review.console.app import create_app
from modwatch.review.console.request_context import SESSION_COOKIE, csrf_of
from modwatch.review.database import connect
from modwatch.review.log import verification
from modwatch.review.people import access_tokens, sessions
from modwatch.review.people.accounts import Moderator

Fill = Callable[[int], None]
Consoles = tuple[TestClient, TestClient]


@pytest.fixture
def consoles(engine, queue_url):
    """Two, which share the database and nothing else."""
    other = connect(queue_url)
    with (
        TestClient(create_app(engine), follow_redirects=False) as first,
        TestClient(create_app(other), follow_redirects=False) as second,
    ):
        yield first, second
    other.dispose()


def bearer(engine: Engine, person: Moderator) -> dict[str, str]:
    return {"Authorization": f"Bearer {access_tokens.issue_token(engine, person.id)}"}


def decide(
    console: TestClient, headers: dict[str, str], lease: Any, key: str, label: int = 1
) -> Any:
    return console.post(
        f"/api/v1/items/{lease['item']['id']}/decisions",
        json={"lease_token": lease["token"], "label": label},
        headers={**headers, "Idempotency-Key": key},
    )


def test_a_person_may_go_from_one_console_to_the_other(engine, consoles, ann, fill):
    fill(1)
    first, second = consoles
    session = sessions.open_session(engine, access_tokens.issue_token(engine, ann.id))
    cookie = {"Cookie": f"{SESSION_COOKIE}={session}"}
    shown = first.get("/", headers=cookie)
    held = {"Cookie": f"{cookie['Cookie']}; modwatch_lease={shown.cookies['modwatch_lease']}"}
    assert "invented text of c0" in shown.text
    assert "invented text of c0" in second.get("/", headers=held).text
    item, _, token = shown.cookies["modwatch_lease"].partition(".")
    form = {"csrf": csrf_of(session), "item_id": item, "lease_token": token, "verdict": "1"}
    places = [value.post("/decide", data=form, headers=cookie) for value in (second, first)]
    assert {place.headers["Location"] for place in places} == {"./?done=1"}
    second.post("/logout", data={"csrf": csrf_of(session)}, headers=cookie)
    assert first.get("/day", headers=cookie).headers["Location"].startswith("./login")
    assert verification.verify_log(engine).decisions == 1


@pytest.mark.parametrize("same_key", [True, False])
def test_one_item_decided_at_both_at_once_is_decided_once(engine, consoles, ann, fill, same_key):
    fill(8)
    headers = bearer(engine, ann)
    with ThreadPoolExecutor(2) as pool:
        for race in range(8):
            lease = consoles[race % 2].post("/api/v1/leases", headers=headers).json()
            keys = [f"{race}", f"{race}" if same_key else f"other {race}"]
            answers = list(
                pool.map(
                    lambda console, key, label, lease=lease: decide(
                        console, headers, lease, key, label
                    ),
                    consoles,
                    keys,
                    [1, 1 if same_key else 0],
                )
            )
            statuses = sorted(answer.status_code for answer in answers)
            assert statuses == ([201, 201] if same_key else [201, 409])
            if same_key:
                assert answers[0].json() == answers[1].json()
    log = verification.verify_log(engine)
    assert (log.decisions, log.intact) == (8, True)


def test_an_undo_and_a_correction_at_once_are_one_of_both(engine, consoles, ann, fill):
    fill(5)
    headers = bearer(engine, ann)
    session = sessions.open_session(engine, access_tokens.issue_token(engine, ann.id))
    cookie = {"Cookie": f"{SESSION_COOKIE}={session}"}
    for race in range(5):
        lease = consoles[0].post("/api/v1/leases", headers=headers).json()
        done = decide(consoles[0], headers, lease, f"{race}").json()
        form = {"csrf": csrf_of(session), "decision_id": done["id"]}
        correction = {
            "item_id": done["item_id"],
            "version": lease["item"]["version"] + 1,
            "label": 0,
            "reason": "slip",
        }
        with ThreadPoolExecutor(2) as pool:
            undo = pool.submit(consoles[0].post, "/undo", data=form, headers=cookie)
            correct = pool.submit(
                consoles[1].post, "/correct", data=form | correction, headers=cookie
            )
        places = [each.result().headers["Location"] for each in (undo, correct)]
        undone, corrected = places[0].endswith("undone"), places[1].endswith("corrected")
        assert undone != corrected, places
    with engine.connect() as connection:
        pairs = "SELECT count(*) FROM decision WHERE action IN ('undo', 'correct')"
        assert connection.scalar(text(pairs)) == 5
    assert verification.verify_log(engine).intact
