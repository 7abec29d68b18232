from datetime import timedelta

import pytest
from sqlalchemy import Engine, select

from modwatch.common.errors import AccessDeniedError, QueueError
from modwatch.review.people import access_tokens, accounts, changes, sessions
from modwatch.review.people.access_tokens import Purpose
from modwatch.review.tables import access_token

HOUR = timedelta(hours=1)


def works(engine: Engine, token: str, purpose: Purpose = "api") -> bool:
    try:
        sessions.authenticate(engine, token, purpose)
    except AccessDeniedError:
        return False
    return True


def test_tokens_are_known_by_their_digest_alone(engine, ann):
    token = access_tokens.issue_token(engine, ann.id)
    assert sessions.authenticate(engine, token) == ann
    with engine.connect() as connection:
        stored = connection.execute(select(access_token)).one()
    assert token not in str(stored)
    for wrong in ("", token[:-1], token + "x", "\ud800", "x\0"):
        assert not works(engine, wrong)


def test_tokens_end_and_have_a_lifetime_and_a_name(engine, ann):
    for days in (0, -1, -0.5):
        with pytest.raises(QueueError, match=f"must be more than 0 days, got {days:g}"):
            access_tokens.issue_token(engine, ann.id, lifetime=timedelta(days=days))
    for name in ("", "a\nb", "a\0", "x" * 101):
        with pytest.raises(QueueError, match="token's name"):
            access_tokens.issue_token(engine, ann.id, name=name)
    assert access_tokens.tokens(engine, ann.id) == []
    over = access_tokens.issue_token(engine, ann.id, lifetime=timedelta(microseconds=1))
    with pytest.raises(AccessDeniedError, match="expired"):
        sessions.authenticate(engine, over)
    with pytest.raises(QueueError, match="moderator 99 does not exist"):
        access_tokens.issue_token(engine, 99)


def test_scopes_are_cut_to_the_role_now_and_later(engine):
    lead = accounts.create_moderator(engine, "lee", "lead")
    token = access_tokens.issue_token(engine, lead.id, scopes=["lead", "decisions:read", "admin"])
    assert sessions.authenticate(engine, token).scopes == {"lead", "decisions:read"}
    session = sessions.open_session(engine, token)
    assert sessions.authenticate(engine, session, "session").scopes == {"lead", "decisions:read"}
    changes.change_role(engine, lead.id, "auditor")
    person = sessions.authenticate(engine, token)
    assert person.scopes == {"decisions:read"}
    assert not person.reviews
    changes.change_role(engine, lead.id, "admin")  # what was asked for is not kept for later
    assert not sessions.authenticate(engine, token).may("admin")


def test_tokens_are_listed_without_their_secret(engine, ann):
    first = access_tokens.issue_token(
        engine, ann.id, name="script", scopes=["review"], lifetime=HOUR
    )
    second = access_tokens.issue_token(engine, ann.id)
    sessions.open_session(engine, first)
    session, plain, script = access_tokens.tokens(engine, ann.id)
    assert (session.purpose, plain.name, script.name) == ("session", None, "script")
    assert script.scopes == {"review"}
    assert plain.scopes is None
    assert first not in str(access_tokens.tokens(engine, ann.id))
    access_tokens.revoke_token_by_id(engine, script.id)
    assert not works(engine, first)
    assert works(engine, second)
    assert [token.name for token in access_tokens.tokens(engine, ann.id)] == [None, "script"]
    assert access_tokens.tokens(engine, ann.id)[1].revoked_at is not None
    with pytest.raises(QueueError, match="token 99 does not exist"):
        access_tokens.revoke_token_by_id(engine, 99)


def test_revoking_ends_all_that_was_opened(engine, ann):
    token = access_tokens.issue_token(engine, ann.id)
    other = sessions.open_session(engine, token)
    first = sessions.open_session(engine, token)
    second = sessions.rotate_session(engine, first, timedelta(0))
    assert second is not None
    access_tokens.revoke_token(engine, second)  # a log-out, in one of two browsers
    assert not works(engine, first, "session")
    assert not works(engine, second, "session")
    assert works(engine, other, "session")
    assert works(engine, token)
    third = sessions.rotate_session(engine, other, timedelta(0))
    assert third is not None
    access_tokens.revoke_token(engine, token)
    assert not works(engine, other, "session")
    assert not works(engine, third, "session")
    access_tokens.revoke_token(engine, "unknown")
    # A log-out by the old cookie ends the new session.
    first = sessions.open_session(engine, access_tokens.issue_token(engine, ann.id))
    second = sessions.rotate_session(engine, first, timedelta(0))
    assert second is not None
    access_tokens.revoke_token(engine, first)
    assert not works(engine, second, "session")
