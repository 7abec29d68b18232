from datetime import timedelta

import pytest
from sqlalchemy import Engine, select, text

from modwatch.errors import AccessDeniedError, QueueError
from modwatch.review import people
from modwatch.review.people import Moderator
from modwatch.review.tables import ROLES, access_token, moderator_group


def test_accounts_are_created_once(engine: Engine) -> None:
    first = people.create_moderator(engine, "ann", "moderator", group="aged 30 to 45")
    assert people.create_moderator(engine, "ann", "moderator") == first
    with engine.connect() as connection:
        assert connection.execute(select(moderator_group)).all() == [(first.id, "aged 30 to 45")]


@pytest.mark.parametrize("role", ROLES)
def test_only_moderators_and_leads_review(engine: Engine, role: str) -> None:
    person = people.create_moderator(engine, role, role)
    assert person.reviews == (role in {"moderator", "lead"})


@pytest.mark.parametrize(
    ("pseudonym", "role"),
    [("ann", "owner"), ("", "moderator"), ("a\nb", "lead"), ("a\0", "lead"), ("x" * 101, "lead")],
)
def test_impossible_accounts_are_refused(engine: Engine, pseudonym: str, role: str) -> None:
    with pytest.raises(QueueError, match="choose"):
        people.create_moderator(engine, pseudonym, role)


def test_a_pseudonym_keeps_its_role(engine: Engine, ann: Moderator) -> None:
    with pytest.raises(QueueError, match="is taken"):
        people.create_moderator(engine, "ann", "admin")


def test_tokens_are_known_by_their_digest_alone(engine: Engine, ann: Moderator) -> None:
    token = people.issue_token(engine, ann.id)
    assert people.authenticate(engine, token) == ann
    with engine.connect() as connection:
        stored = connection.execute(select(access_token)).one()
    assert token not in str(stored)
    for wrong in ("", token[:-1], token + "x", "\ud800", "x\0"):
        with pytest.raises(AccessDeniedError):
            people.authenticate(engine, wrong)


def test_tokens_end(engine: Engine, ann: Moderator) -> None:
    over = people.issue_token(engine, ann.id, lifetime=timedelta(0))
    with pytest.raises(AccessDeniedError, match="expired"):
        people.authenticate(engine, over)
    with pytest.raises(QueueError, match="no moderator 99"):
        people.issue_token(engine, 99)


def test_sessions_end_with_the_token_that_opened_them(engine: Engine, ann: Moderator) -> None:
    token = people.issue_token(engine, ann.id, lifetime=timedelta(hours=1))
    session = people.open_session(engine, token, timedelta(hours=12))
    assert people.authenticate(engine, session, "session") == ann
    with engine.connect() as connection:
        ends = connection.scalars(text("SELECT DISTINCT expires_at FROM access_token")).all()
    assert len(ends) == 1
    for purpose, given in (("api", session), ("session", token)):
        with pytest.raises(AccessDeniedError):
            people.authenticate(engine, given, purpose)  # type: ignore[arg-type]
    people.revoke_token(engine, token)
    with pytest.raises(AccessDeniedError):
        people.authenticate(engine, session, "session")
