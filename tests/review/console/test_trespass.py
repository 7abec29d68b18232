"""Forms of other sites, sessions of others, and eyes that look too far.

Which role opens which endpoint is in `test_scopes.py`.
"""

import re
from datetime import date
from typing import Any

import httpx
from databases import execute, scalar, unguarded
from fastapi.testclient import TestClient
from sqlalchemy import Engine, text

from modwatch.review.console.request_context import CSRF_HEADER, csrf_of
from modwatch.review.console.sign_in import LOGIN_COOKIE
from modwatch.review.events import recent_events
from modwatch.review.log.export import export
from modwatch.review.log.labels import annotation_days, given_labels
from modwatch.review.people import accounts
from modwatch.review.people.groups import SMALLEST_DRAW, counted_groups
from modwatch.review.people.sessions import authenticate
from modwatch.review.queue import metrics
from review.console.visiting import by_cookie, everything, routes_of, rows, session_of, used


def test_forged_forms_change_nothing(engine, app, stranger, new_item, day):
    """Every endpoint that changes something, with every proof but the right one."""
    who = used(engine, new_item, day)
    sessions = {role: session_of(engine, who[role]) for role in ("moderator", "lead", "admin")}
    before = rows(engine)
    changing = [(method, path) for method, path in routes_of(app) if method not in ("GET", "HEAD")]
    assert len(changing) > 30
    for role, session in sessions.items():
        other = csrf_of(next(item for item in sessions.values() if item != session))
        for method, path in changing:
            for forged in (None, "", other, csrf_of("the log-in form"), csrf_of(""), "é"):
                answer = forge(stranger, method, path, session, forged)
                where = (role, method, path, forged, answer.status_code)
                if path == "/login":  # whoever has no form of ours does not get in
                    assert answer.status_code in (403, 422), where
                else:
                    assert answer.status_code == 403 or (not forged and is_incomplete(answer)), (
                        where
                    )
    assert rows(engine) == before
    assert metrics.counts(engine).leased == 0
    assert all(authenticate(engine, item, "session") for item in sessions.values())


def is_incomplete(answer: httpx.Response) -> bool:
    """Return whether a form was refused for lack of the field that proves where it is from."""
    return answer.status_code == 422 and "body.csrf: " in answer.text


def forge(
    stranger: TestClient, method: str, path: str, session: str, forged: str | None
) -> httpx.Response:
    """Send a request as another site would have the browser of a person send it."""
    headers: Any = by_cookie(
        session, **{LOGIN_COOKIE: "the log-in form"} if path != "/login" else {}
    )
    headers |= {"Idempotency-Key": "k", "X-Lease-Token": "t"}
    if path.startswith("/api/") or path in ("/next", "/leave"):
        if forged is not None:
            headers[CSRF_HEADER] = forged.encode()
        body = None if method == "DELETE" else {}
        return stranger.request(method, path, json=body, headers=headers)
    fields = {
        "item_id": 1, "decision_id": 1, "moderator_id": 1, "version": 1, "seen": 0, "label": "1",
        "lease_token": "t", "verdict": "1", "reason": "slip", "why": "other", "key": "k",
        "queue": "general", "criteria": "{}", "expected": 1, "pseudonym": "zed", "role": "admin",
        "channel": "channel", "format": "csv", "token_id": 1, "name": "x", "old": "x",
        "new": "another long pass phrase", "group": "x", "password": "another long pass phrase",
    }  # fmt: skip
    # The header alone is no proof where a form is due.
    headers[CSRF_HEADER] = "0" * 64
    return stranger.request(
        method, path, data=fields | ({} if forged is None else {"csrf": forged}), headers=headers
    )


SECRETS = {"prob": 0.876543, "uncertainty": 0.108219, "review_score": 0.135791}


#: In every group that a person chose, so that one search finds what leaks.
GROUP = "quillfeather"


def test_no_answer_tells_an_auditor_a_score_or_anybody_a_group(
    engine, app, stranger, new_item, day
):
    """Neither the model's view nor why an item was sent, in any answer to whatever they may ask.

    What figures of groups tell is in `tests/monitoring/measurements/test_group_inference.py`.
    """
    for number in range(SMALLEST_DRAW):
        accounts.create_moderator(engine, f"person {number}", "moderator")
    who = used(engine, new_item, day)
    with unguarded(engine) as connection:
        values = {**SECRETS, "reason": "planted_reason", "model_version": "planted_version"}
        changes = ", ".join(f"{name} = :{name}" for name in values)
        connection.execute(text(f"UPDATE review_item SET {changes}"), values)
    choose(engine)
    message = {
        role: everything(engine, app, stranger, who[role]) for role in ("lead", "auditor", "admin")
    }
    shown = re.compile(r"876543|0\.8765|87\.[67]|88\s?%|0\.108|135791|planted_\w+")
    # Whoever may see them does, so the search for them can find something.
    assert len(set(shown.findall("\n".join(message["lead"].values())))) >= 4
    assert len(message["auditor"]) > 15
    assert {"csv", "jsonl", "parquet"} <= message["auditor"].keys()
    for where, answer in message["auditor"].items():
        assert shown.findall(answer) == [], where
    for role, answers in message.items():
        assert len(answers) > 10
        for where, answer in answers.items():
            assert GROUP not in answer, (role, where)
    # what was asked deleted some, but not all
    assert scalar(engine, "SELECT count(*) FROM moderator_group") > SMALLEST_DRAW


def choose(engine: Engine) -> None:
    """Let everybody choose a group, and count in one."""
    execute(engine, "DELETE FROM moderator_group")
    execute(engine, f"INSERT INTO moderator_group SELECT id, '{GROUP} ' || id FROM moderator")
    assert all(GROUP in counted for counted in counted_groups(engine).values())


def test_no_export_event_or_table_of_labels_has_a_group(engine, stranger, new_item, day):
    who = used(engine, new_item, day)
    session = session_of(engine, who["moderator"])
    form = {"csrf": csrf_of(session), "group": GROUP}
    answer = stranger.post("/preferences/group", data=form, headers=by_cookie(session))
    assert answer.status_code == 303
    # Not even their own page shows it.
    assert GROUP not in stranger.get("/preferences", headers=by_cookie(session)).text
    with engine.connect() as connection:
        names = connection.execute(text("SELECT group_name FROM moderator_group")).scalars().all()
    assert names == [GROUP]
    choose(engine)
    whole = [b"".join(export(engine, kind, with_notes=True)) for kind in ("csv", "jsonl")]
    days = annotation_days(engine, date(2020, 1, 1), date(2100, 1, 1))
    labels = [batch.to_pylist() for day in days for batch in given_labels(engine, day)]
    assert labels
    for item in (
        *whole, labels, accounts.people(engine), recent_events(engine),
        accounts.find_moderator(engine, "the moderator"),
    ):  # fmt: skip
        assert GROUP not in str(item)
