"""Somebody who has a person's access token or session, after the person's access has ended."""

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine, update

from modwatch.common.errors import AccessDeniedError
from modwatch.review.events import recent_events
from modwatch.review.people import access_tokens, changes, passwords, sessions
from modwatch.review.people.accounts import Moderator
from modwatch.review.people.oidc import withdraw
from modwatch.review.tables import moderator
from review.console.visiting import by_cookie, session_of

SUBJECT = "https://provider.example|s-1"
OLD, NEW = "a long pass phrase", "another long pass phrase"


@pytest.fixture
def known(engine: Engine, ann: Moderator, fast_hashes: None) -> Moderator:
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
def test_no_token_and_no_session_outlives_the_access(
    engine: Engine, client: TestClient, known: Moderator, end: Callable[[Engine, Moderator], Any]
) -> None:
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


def test_a_token_does_not_come_back_when_an_account_is_enabled_after_a_reset(
    engine: Engine, client: TestClient, known: Moderator
) -> None:
    bearer = {"Authorization": f"Bearer {access_tokens.issue_token(engine, known.id)}"}
    changes.disable(engine, known.id)
    passwords.set_password(engine, known.id, NEW)
    changes.enable(engine, known.id)
    assert get(client, bearer) == 401


def test_the_end_is_an_event_and_happens_once(engine: Engine, known: Moderator) -> None:
    access_tokens.issue_token(engine, known.id)
    for _ in range(3):
        withdraw(engine, SUBJECT)
    withdraw(engine, "https://provider.example|nobody")
    found = [event for event in recent_events(engine) if event.action == "withdraw_role"]
    assert [(match.subject, dict(match.details)) for match in found] == [
        ("ann", {"revoked_tokens": [1], "had_password": True})
    ]
