import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from argon2 import PasswordHasher
from sqlalchemy import Engine, select, text, update

from modwatch.common.errors import AccessDeniedError, QueueError, ThrottledError
from modwatch.review.events import recent_events
from modwatch.review.people import access_tokens, accounts, changes, passwords, sessions
from modwatch.review.tables import moderator

GOOD, WRONG = "correct horse battery", "wrong horse battery"


@pytest.fixture
def zoe(engine, fast_hashes):
    person = accounts.create_moderator(engine, "zoe", "lead")
    passwords.set_password(engine, person.id, GOOD)
    return person


def log_in(engine: Engine, name: str = "zoe", password: str = GOOD, address: str = "::1") -> str:
    return passwords.log_in(engine, name, password, address=address)


def refusal(engine: Engine, name: str, password: str) -> str:
    with pytest.raises(AccessDeniedError) as caught:
        log_in(engine, name, password)
    assert type(caught.value) is AccessDeniedError
    return str(caught.value)


def test_a_password_opens_a_session(engine, zoe):
    assert sessions.authenticate(engine, log_in(engine), "session") == zoe
    assert sessions.authenticate(engine, log_in(engine, " zoe "), "session") == zoe
    (account,) = accounts.people(engine)
    assert account.has_password
    assert "argon2" not in str(account)
    assert len(access_tokens.tokens(engine, zoe.id)) == 2


def test_refusals_do_not_tell_who_exists(engine, zoe, ann):
    kit = accounts.create_moderator(engine, "kit", "moderator")
    passwords.set_password(engine, kit.id, GOOD)
    changes.disable(engine, kit.id)
    cases = [
        ("zoe", WRONG), ("zoe", "zoe\0" * 4), ("zoe", "x" * 10_000), ("nobody", GOOD),
        ("ann", GOOD), ("kit", GOOD), ("a\0", GOOD), ("\ud800", GOOD), ("", ""),
    ]  # fmt: skip
    messages = {refusal(engine, *case) for case in cases}
    (message,) = messages
    assert not any(word in message for word in ("zoe", "horse"))


def test_guessing_is_braked_whoever_it_is(engine, zoe):
    for name in ("zoe", "nobody"):
        for _ in range(5):
            refusal(engine, name, WRONG)
        with pytest.raises(ThrottledError, match="too many failed log-in attempts") as braked:
            log_in(engine, name)
        assert 890 < braked.value.retry_after <= 900
        assert name not in str(braked.value)
    # A new password releases the brake, and a success forgets the failures.
    passwords.set_password(engine, zoe.id, "another horse battery")
    for _ in range(2):
        assert log_in(engine, password="another horse battery")
        for _ in range(4):
            refusal(engine, "zoe", GOOD)


def test_outdated_hashes_are_renewed(engine, ann):
    weak = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(GOOD)
    with engine.begin() as connection:
        connection.execute(update(moderator).values(password_hash=weak))
    log_in(engine, "ann")
    with engine.connect() as connection:
        stored = connection.execute(select(moderator.c.password_hash)).scalar_one()
    assert stored.startswith("$argon2id$v=19$m=65536")
    assert log_in(engine, "ann")


def test_people_change_their_own_password(engine, zoe):
    session = log_in(engine)
    with pytest.raises(AccessDeniedError, match="old password"):
        passwords.change_password(engine, zoe.id, WRONG, "another horse battery")
    with pytest.raises(QueueError, match="12 to 256"):
        passwords.change_password(engine, zoe.id, GOOD, "short")
    passwords.change_password(engine, zoe.id, GOOD, "another horse battery")
    with pytest.raises(AccessDeniedError):
        sessions.authenticate(engine, session, "session")
    assert log_in(engine, password="another horse battery")
    assert recent_events(engine)[0].actor == "zoe"
    with pytest.raises(AccessDeniedError):
        passwords.change_password(engine, 99, GOOD, GOOD)
    with pytest.raises(QueueError, match="moderator 99 does not exist"):
        passwords.set_password(engine, 99, GOOD)


def test_a_password_changed_while_it_is_compared_opens_nothing(engine, zoe):
    waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
    with ThreadPoolExecutor(1) as pool:
        with engine.begin() as connection:
            connection.execute(update(moderator).values(password_hash="another"))
            late = pool.submit(log_in, engine)
            began = time.monotonic()
            while not connection.scalar(waiting):
                assert time.monotonic() - began < 30
                time.sleep(0.01)
        with pytest.raises(AccessDeniedError):
            late.result()
    assert access_tokens.tokens(engine, zoe.id) == []
