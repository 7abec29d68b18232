from datetime import timedelta

import pytest
from sqlalchemy import Engine, select

from modwatch.common.errors import AccessDeniedError, QueueError
from modwatch.review import people
from modwatch.review.people import Moderator
from modwatch.review.people.access_tokens import Purpose
from modwatch.review.tables import access_token

HOUR = timedelta(hours=1)


def works(engine: Engine, token: str, purpose: Purpose = "api") -> bool:
    try:
        people.authenticate(engine, token, purpose)
    except AccessDeniedError:
        return False
    return True


def test_tokens_are_known_by_their_digest_alone(engine: Engine, ann: Moderator) -> None:
    token = people.issue_token(engine, ann.id)
    assert people.authenticate(engine, token) == ann
    with engine.connect() as connection:
        stored = connection.execute(select(access_token)).one()
    assert token not in str(stored)
    for wrong in ("", token[:-1], token + "x", "\ud800", "x\0"):
        assert not works(engine, wrong)


def test_tokens_end(engine: Engine, ann: Moderator) -> None:
    over = people.issue_token(engine, ann.id, lifetime=timedelta(microseconds=1))
    with pytest.raises(AccessDeniedError, match="expired"):
        people.authenticate(engine, over)
    with pytest.raises(QueueError, match="moderator 99 does not exist"):
        people.issue_token(engine, 99)


def test_scopes_are_cut_to_the_role_now_and_later(engine: Engine) -> None:
    lead = people.create_moderator(engine, "lee", "lead")
    token = people.issue_token(engine, lead.id, scopes=["lead", "decisions:read", "admin"])
    assert people.authenticate(engine, token).scopes == {"lead", "decisions:read"}
    session = people.open_session(engine, token)
    assert people.authenticate(engine, session, "session").scopes == {"lead", "decisions:read"}
    people.change_role(engine, lead.id, "auditor")
    person = people.authenticate(engine, token)
    assert person.scopes == {"decisions:read"}
    assert not person.reviews
    people.change_role(engine, lead.id, "admin")  # what was asked for is not kept for later
    assert not people.authenticate(engine, token).may("admin")


def test_tokens_are_listed_without_their_secret(engine: Engine, ann: Moderator) -> None:
    first = people.issue_token(engine, ann.id, name="script", scopes=["review"], lifetime=HOUR)
    second = people.issue_token(engine, ann.id)
    people.open_session(engine, first)
    session, plain, script = people.tokens(engine, ann.id)
    assert (session.purpose, plain.name, script.name) == ("session", None, "script")
    assert script.scopes == {"review"}
    assert plain.scopes is None
    assert first not in str(people.tokens(engine, ann.id))
    people.revoke_token_by_id(engine, script.id)
    assert not works(engine, first)
    assert works(engine, second)
    assert [token.name for token in people.tokens(engine, ann.id)] == [None, "script"]
    assert people.tokens(engine, ann.id)[1].revoked_at is not None
    with pytest.raises(QueueError, match="token 99 does not exist"):
        people.revoke_token_by_id(engine, 99)


@pytest.mark.parametrize("name", ["", "a\nb", "a\0", "x" * 101])
def test_unusable_names_are_refused(engine: Engine, ann: Moderator, name: str) -> None:
    with pytest.raises(QueueError, match="token's name"):
        people.issue_token(engine, ann.id, name=name)


def test_revoking_ends_all_that_was_opened(engine: Engine, ann: Moderator) -> None:
    token = people.issue_token(engine, ann.id)
    other = people.open_session(engine, token)
    first = people.open_session(engine, token)
    second = people.rotate_session(engine, first, timedelta(0))
    assert second is not None
    people.revoke_token(engine, second)  # a log-out, in one of two browsers
    assert not works(engine, first, "session")
    assert not works(engine, second, "session")
    assert works(engine, other, "session")
    assert works(engine, token)
    third = people.rotate_session(engine, other, timedelta(0))
    assert third is not None
    people.revoke_token(engine, token)
    assert not works(engine, other, "session")
    assert not works(engine, third, "session")
    people.revoke_token(engine, "unknown")


def test_a_log_out_by_the_old_cookie_ends_the_new_session(engine: Engine, ann: Moderator) -> None:
    first = people.open_session(engine, people.issue_token(engine, ann.id))
    second = people.rotate_session(engine, first, timedelta(0))
    assert second is not None
    people.revoke_token(engine, first)
    assert not works(engine, second, "session")


@pytest.mark.parametrize("days", [0, -1, -0.5])
def test_a_lifetime_must_be_positive(engine: Engine, ann: Moderator, days: float) -> None:
    with pytest.raises(QueueError, match=f"must be more than 0 days, got {days:g}"):
        people.issue_token(engine, ann.id, lifetime=timedelta(days=days))
    assert people.tokens(engine, ann.id) == []
