import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from databases import execute, scalars
from sqlalchemy import Engine, event

from modwatch.common.errors import AccessDeniedError
from modwatch.review.people import access_tokens, accounts, changes, passwords, sessions
from review.labelling import open_queues

NOW = timedelta(0)


@pytest.fixture
def session(engine, ann):
    return sessions.open_session(engine, access_tokens.issue_token(engine, ann.id))


def works(engine: Engine, session: str) -> bool:
    try:
        sessions.authenticate(engine, session, "session")
    except AccessDeniedError:
        return False
    return True


def pass_time(engine: Engine, minutes: float) -> None:
    """Let what stands in the table be `minutes` older."""
    execute(
        engine,
        "UPDATE access_token SET created_at = created_at - :past, "
        "expires_at = expires_at - :past, revoked_at = revoked_at - :past",
        past=timedelta(minutes=minutes),
    )


def test_sessions_end_with_the_token_that_opened_them(engine, ann):
    token = access_tokens.issue_token(engine, ann.id, lifetime=timedelta(hours=1))
    session = sessions.open_session(engine, token)
    assert sessions.authenticate(engine, session, "session") == ann
    ends = scalars(engine, "SELECT DISTINCT expires_at FROM access_token")
    assert len(ends) == 1
    for purpose, given in (("api", session), ("session", token)):
        with pytest.raises(AccessDeniedError):
            sessions.authenticate(engine, given, purpose)  # type: ignore[arg-type]
    access_tokens.revoke_token(engine, token)
    with pytest.raises(AccessDeniedError):
        sessions.authenticate(engine, session, "session")


def test_authentication_is_one_query(engine, ann, session):
    open_queues(engine, "a", "b")
    changes.set_queues(engine, ann.id, {"a", "b"})
    changes.save_preferences(engine, ann.id, {"theme": "dark"})
    statements: list[str] = []

    def note(*given: Any) -> None:
        statements.append(str(given[2]))

    event.listen(Engine, "before_cursor_execute", note)
    try:
        person = sessions.authenticate(engine, session, "session")
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    assert len(statements) == 1
    assert person.queues == {"a", "b"}
    assert person.preferences == {"theme": "dark"}


@pytest.mark.parametrize(
    "end",
    [
        lambda engine, ann: changes.disable(engine, ann.id),
        lambda engine, ann: changes.change_role(engine, ann.id, "lead"),
        lambda engine, ann: passwords.set_password(engine, ann.id, "correct horse battery"),
    ],
    ids=["disabled", "another role", "another password"],
)
def test_sessions_end_when_the_account_changes(engine, ann, ben, end):
    token = access_tokens.issue_token(engine, ann.id)
    session = sessions.open_session(engine, token)
    rotated = sessions.rotate_session(engine, session, NOW)
    assert rotated is not None
    bens = sessions.open_session(engine, access_tokens.issue_token(engine, ben.id))
    end(engine, ann)
    assert not works(engine, session)
    assert not works(engine, rotated)
    assert works(engine, bens)
    if accounts.people(engine)[0].disabled_at is not None:
        for act in (sessions.authenticate, sessions.open_session):
            with pytest.raises(AccessDeniedError):
                act(engine, token)
    changes.enable(engine, ann.id)
    assert not works(engine, rotated)  # it does not come back
    assert sessions.open_session(engine, access_tokens.issue_token(engine, ann.id))


def test_an_old_session_is_replaced_and_holds_a_minute(engine, session):
    after = timedelta(minutes=15)
    assert sessions.rotate_session(engine, session, after) is None
    pass_time(engine, 16)
    new = sessions.rotate_session(engine, session, after)
    assert new is not None
    assert re.fullmatch(r"mw_[\w-]{43}\.[\w-]{43}", new)
    assert sessions.rotate_session(engine, session, after) is None  # once
    assert works(engine, session)
    assert works(engine, new)
    pass_time(engine, 1.1)
    assert not works(engine, session)
    assert works(engine, new)


def test_rotations_keep_the_seed_and_the_scopes(engine):
    lead = accounts.create_moderator(engine, "lee", "lead")
    token = access_tokens.issue_token(engine, lead.id, scopes=["decisions:read"])
    first, other = (sessions.open_session(engine, token) for _ in range(2))
    second = sessions.rotate_session(engine, first, NOW)
    assert second is not None
    assert sessions.session_seed(second) == sessions.session_seed(first)
    assert sessions.session_seed(other) != sessions.session_seed(first)
    assert len({first, second, other}) == 3
    assert not works(engine, sessions.session_seed(second))
    assert sessions.authenticate(engine, second, "session").scopes == {"decisions:read"}


def test_no_rotation_lengthens_a_session(engine, session):
    current = session
    for _ in range(5):
        pass_time(engine, 143)
        new = sessions.rotate_session(engine, current, timedelta(hours=2))
        assert new is not None
        current = new
    assert works(engine, current)
    pass_time(engine, 5.1)  # 12 hours and six seconds after it began
    assert not works(engine, current)
    assert sessions.rotate_session(engine, current, NOW) is None


def test_what_is_no_session_is_not_replaced(engine, ann):
    for given in ("", "unknown", "\ud800", "a\0", access_tokens.issue_token(engine, ann.id)):
        assert sessions.rotate_session(engine, given, NOW) is None


def test_requests_at_once_rotate_once(engine, session):
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: sessions.rotate_session(engine, session, NOW), range(16)))
    assert sum(record is not None for record in made) == 1


def test_no_session_outlives_a_log_out_at_the_same_moment(engine, ann):
    token = access_tokens.issue_token(engine, ann.id)
    for _ in range(15):
        session = sessions.open_session(engine, token)
        barrier = threading.Barrier(2)

        def at_once(act: Callable[..., Any], *given: Any, gate: threading.Barrier = barrier) -> Any:
            gate.wait()
            return act(*given)

        with ThreadPoolExecutor(2) as pool:
            rotated = pool.submit(at_once, sessions.rotate_session, engine, session, NOW)
            pool.submit(at_once, access_tokens.revoke_token, engine, session).result()
        new = rotated.result()
        assert new is None or not works(engine, new)
