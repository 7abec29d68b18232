"""Somebody who has a person's access token or session, after the person's access has ended."""

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import update

from modwatch.common.errors import AccessDeniedError
from modwatch.review.console.request_context import CSRF_HEADER, SESSION_COOKIE, csrf_of
from modwatch.review.events import recent_events
from modwatch.review.people import access_tokens, accounts, changes, passwords, sessions
from modwatch.review.people.oidc import withdraw
from modwatch.review.queue import intake
from modwatch.review.tables import moderator
from review.console.visiting import by_cookie, endpoints, session_of
from review.labelling import label_next

SUBJECT = "https://provider.example|s-1"
OLD, NEW = "a long pass phrase", "another long pass phrase"


@pytest.fixture
def known(engine, ann, fast_hashes):
    """A person with a password, who also comes by the identity provider."""
    passwords.set_password(engine, ann.id, OLD)
    with engine.begin() as connection:
        connection.execute(update(moderator).values(oidc_subject=SUBJECT))
    return ann


def get(client: TestClient, headers: dict[str, str]) -> int:
    return client.get("/api/v1/me", headers=headers).status_code


@pytest.mark.parametrize(
    "end",
    [
        lambda engine, ann: passwords.set_password(engine, ann.id, NEW, actor_id=None),
        lambda engine, ann: passwords.set_password(engine, ann.id, NEW, actor_id=ann.id),
        lambda engine, _: withdraw(engine, SUBJECT),
        lambda engine, ann: changes.disable(engine, ann.id),
        lambda engine, ann: passwords.change_password(engine, ann.id, OLD, NEW),
    ],
    ids=["reset", "own reset as an admin", "withdrawn", "disabled", "changed"],
)
def test_no_token_and_no_session_outlives_the_access(engine, client, known, end):
    token = access_tokens.issue_token(engine, known.id)
    stolen = [
        {"Authorization": f"Bearer {token}"},
        by_cookie(sessions.open_session(engine, token)),
        by_cookie(session_of(engine, known)),
        by_cookie(passwords.log_in(engine, "ann", OLD, address="::1")),
    ]
    assert [get(client, headers) for headers in stolen] == [200] * 4
    end(engine, known)
    assert [get(client, headers) for headers in stolen] == [401] * 4
    with pytest.raises(AccessDeniedError):
        sessions.open_session(engine, token)
    with pytest.raises(AccessDeniedError):
        passwords.log_in(engine, "ann", OLD, address="::1")


def test_a_token_does_not_come_back_when_an_account_is_enabled_after_a_reset(engine, client, known):
    bearer = {"Authorization": f"Bearer {access_tokens.issue_token(engine, known.id)}"}
    changes.disable(engine, known.id)
    passwords.set_password(engine, known.id, NEW)
    changes.enable(engine, known.id)
    assert get(client, bearer) == 401


def test_the_end_is_an_event_and_happens_once(engine, known):
    access_tokens.issue_token(engine, known.id)
    for _ in range(3):
        withdraw(engine, SUBJECT)
    withdraw(engine, "https://provider.example|nobody")
    found = [event for event in recent_events(engine) if event.action == "withdraw_role"]
    assert [(match.subject, dict(match.details)) for match in found] == [
        ("ann", {"revoked_tokens": [1], "had_password": True})
    ]


# The platform's token, as its operator, a log or a thief may have it, reads the feed of decisions.

#: In texts, notes and names of people, so that one search finds what leaks.
SECRETS = ("quillfeather", "zedfox", "0.345")

#: What anybody may ask, with a token or without.
OPEN = {"/livez", "/readyz", "/login", "/logout", "/oidc/start", "/oidc/callback"}

#: What every token tells of itself.
ABOUT_ONESELF = {"/api/v1/me"}


@pytest.fixture
def platform(engine, new_item, day):
    """The token of the platform; one comment is decided and one waits."""
    items = [new_item(f"c{n}", n, text=f"quillfeather {n}", prob=0.345) for n in (1, 2)]
    intake.enqueue(engine, items, day)
    label_next(
        engine, accounts.create_moderator(engine, "zedfox", "moderator"), note="quillfeather"
    )
    ops = accounts.create_moderator(engine, "olga", "ops")
    return access_tokens.issue_token(engine, ops.id, name="platform", scopes=["feed:read"])


def test_it_reads_the_feed_and_opens_nothing_else(engine, app, client, platform):
    """Nor does a session that it opened: no settings, no group, no attempt at the password."""
    allowed = set()
    session = sessions.open_session(engine, platform)
    csrf = csrf_of(session)
    form = {"csrf": csrf, "old": "a wrong one", "new": "a new one", "password": "a wrong one"}
    for method, path in endpoints(app.routes):
        where = path
        for name in ("closing_id", "item_id", "person_id"):
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
                **({} if method == "GET" else sent),
            )
            if path.startswith(("/preferences", "/second-factor")):
                assert answer.status_code in (303, 401, 403), (method, path)
                assert "preferences?notice" not in answer.headers.get("location", ""), (
                    method,
                    path,
                )
            assert not [secret for secret in SECRETS if secret in answer.text], (method, path)
            if answer.status_code < 300 and path not in OPEN:
                allowed.add(path)
    assert allowed - ABOUT_ONESELF == {"/api/v1/decisions"}
