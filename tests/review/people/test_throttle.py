import math
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from databases import execute
from sqlalchemy import Engine, text

from modwatch.common.errors import AccessDeniedError, ThrottledError
from modwatch.review.people import throttle


def pass_time(engine: Engine, minutes: float) -> None:
    execute(
        engine,
        "UPDATE login_attempt SET failed_at = failed_at - :past",
        past=timedelta(minutes=minutes),
    )


def rows(engine: Engine) -> int:
    with engine.connect() as connection:
        return int(connection.execute(text("SELECT count(*) FROM login_attempt")).scalar_one())


def test_a_name_is_braked_and_let_go(engine):
    for minute in range(5):
        throttle.admit(engine, "ann", f"192.0.2.{minute}")
        pass_time(engine, 1)
    with pytest.raises(ThrottledError, match="wait") as refusal:
        throttle.admit(engine, " ann", "192.0.2.99")
    assert isinstance(refusal.value, AccessDeniedError)
    assert refusal.value.retry_after == pytest.approx(600, abs=5)
    before = rows(engine)
    with pytest.raises(ThrottledError):  # refusals do not prolong the brake
        throttle.admit(engine, "ann", "192.0.2.99")
    assert rows(engine) == before
    throttle.admit(engine, "ben", "192.0.2.99")
    pass_time(engine, 10.01)
    throttle.admit(engine, "ann", "192.0.2.99")  # one failure is forgotten, one is let through
    with pytest.raises(ThrottledError):
        throttle.admit(engine, "ann", "192.0.2.99")


def test_an_address_is_braked_whatever_the_names(engine):
    for number in range(30):
        throttle.admit(engine, f"name {number}", f"2001:db8::{number}")
    with pytest.raises(ThrottledError) as refusal:
        throttle.admit(engine, "another", "2001:db8::ffff")
    assert 890 < refusal.value.retry_after <= 900
    throttle.admit(engine, "another", "2001:db8:0:1::1")


def test_a_success_clears_the_name_only(engine):
    attempts = [throttle.admit(engine, "ann", "192.0.2.1") for _ in range(5)]
    throttle.forgive(engine, attempts[-1])
    assert rows(engine) == 4  # those of the address that failed
    for _ in range(5):
        throttle.admit(engine, "ann", "192.0.2.2")
    throttle.clear(engine, "ann")
    throttle.admit(engine, "ann", "192.0.2.2")


def test_a_crowd_of_guesses_is_five(engine):
    def guess(number: int) -> bool:
        try:
            throttle.admit(engine, "ann", f"192.0.2.{number}")
        except ThrottledError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(guess, range(40))) == 5


def test_nothing_that_was_typed_is_kept_and_any_address_is_counted(engine):
    for n, address in enumerate(("", "testclient", "unix:", "fe80::1%eth0", "::ffff:10.0.0.1"), 1):
        throttle.admit(engine, f"name {n}", address)
        assert rows(engine) == 2 * n
    execute(engine, "DELETE FROM login_attempt")
    for name in ("my password by mistake", "nul \0", "\ud800", "x" * 100_000):
        throttle.admit(engine, name, "192.0.2.1")
    with engine.connect() as connection:
        stored = connection.execute(text("SELECT origin FROM login_attempt")).scalars().all()
    assert {len(origin) for origin in stored} == {32}
    assert len(set(stored)) == 5


def test_old_rows_go_and_retention_prunes_the_rest(engine):
    for number in range(10):
        throttle.admit(engine, f"name {number}", "192.0.2.1")
    pass_time(engine, 29)
    throttle.admit(engine, "ben", "192.0.2.1")
    assert rows(engine) == 20 + 2  # two windows are not over
    pass_time(engine, 2)
    throttle.admit(engine, "ann", "192.0.2.1")
    assert rows(engine) == 2 + 2
    throttle.remember(engine, "ann", "192.0.2.1", "a browser")
    pass_time(engine, 31)
    with engine.begin() as connection:
        connection.execute(text("UPDATE known_origin SET seen_at = now() - interval '31 days'"))
        assert throttle.prune(connection) == 2 + 2 + 2
    assert rows(engine) == 0


def test_a_clock_set_back_brakes_no_longer_than_a_window(engine):
    for _ in range(5):
        throttle.admit(engine, "ann", "192.0.2.1")
    pass_time(engine, -10)
    with pytest.raises(ThrottledError) as refusal:
        throttle.admit(engine, "ann", "192.0.2.1")
    assert refusal.value.retry_after == math.ceil(throttle.WINDOW.total_seconds())
    pass_time(engine, -60 * 24)
    throttle.admit(engine, "ann", "192.0.2.1")
