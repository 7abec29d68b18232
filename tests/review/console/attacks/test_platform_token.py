"""The platform's token, as its operator, a log or a thief may have it.

It reads the feed of decisions. Whatever else the console has is not for it: texts, notes, scores,
and who decided.
"""

from collections.abc import Callable
from datetime import date

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import Engine

from modwatch.review.console.request_context import CSRF_HEADER, SESSION_COOKIE, csrf_of
from modwatch.review.people import access_tokens, accounts, sessions
from modwatch.review.queue import intake
from modwatch.review.queue.items import NewItem
from review.console.visiting import by_cookie, endpoints
from review.labelling import label_next

#: In texts, notes and names of people, so that one search finds what leaks.
SECRETS = ("quillfeather", "zedfox", "0.345")

#: What anybody may ask, with a token or without.
OPEN = {"/livez", "/readyz", "/login", "/logout", "/oidc/start", "/oidc/callback"}

#: What every token tells of itself.
ABOUT_ONESELF = {"/api/v1/me"}


@pytest.fixture
def platform(engine: Engine, new_item: Callable[..., NewItem], day: date) -> str:
    """The token of the platform; one comment is decided and one waits."""
    items = [new_item(f"c{n}", n, text=f"quillfeather {n}", prob=0.345) for n in (1, 2)]
    intake.enqueue(engine, items, day)
    label_next(
        engine, accounts.create_moderator(engine, "zedfox", "moderator"), note="quillfeather"
    )
    ops = accounts.create_moderator(engine, "olga", "ops")
    return access_tokens.issue_token(engine, ops.id, name="platform", scopes=["feed:read"])


def test_it_reads_the_feed_and_opens_nothing_else(
    engine: Engine, app: FastAPI, client: TestClient, platform: str
) -> None:
    """Nor does a session that it opened: no settings, no group, no attempt at the password."""
    allowed = set()
    session = sessions.open_session(engine, platform)
    csrf = csrf_of(session)
    form = {"csrf": csrf, "old": "a wrong one", "new": "a new one", "password": "a wrong one"}
    for method, path in endpoints(app.routes):
        where = path
        for name in ("token_id", "closing_id", "item_id", "person_id", "decision_id"):
            where = where.replace("{" + name + "}", "1")
        for headers in (
            {"Authorization": f"Bearer {platform}"},
            {"Cookie": f"{SESSION_COOKIE}={platform}", "Accept": "text/html"},
            {**by_cookie(session), CSRF_HEADER: csrf, "Accept": "text/html"},
        ):
            if path == "/logout":
                continue
            sent = {"json": {}} if "/api/" in path else {"data": form}
            answer = client.request(
                method,
                where,
                headers=headers,
                follow_redirects=False,
                **({} if method in ("GET", "DELETE") else sent),
            )
            if path.startswith(("/preferences", "/second-factor", "/api/v1/me/preferences")):
                assert answer.status_code in (303, 401, 403), (method, path)
                assert "preferences?notice" not in answer.headers.get("location", ""), (
                    method,
                    path,
                )
            assert not [secret for secret in SECRETS if secret in answer.text], (method, path)
            if answer.status_code < 300 and path not in OPEN:
                allowed.add(path)
    assert allowed - ABOUT_ONESELF == {"/api/v1/decisions"}
