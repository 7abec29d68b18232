"""Someone who guesses passwords, or who guesses badly so that others cannot log in.

With every guess they may claim another address.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import httpx
import pytest
from databases import execute, scalar
from sqlalchemy import Engine, text

from modwatch.common.errors import AccessDeniedError, ThrottledError
from modwatch.review.console.request_context import SESSION_COOKIE, ConsoleOptions
from modwatch.review.console.sign_in import DEVICE_COOKIE, LOGIN_COOKIE
from modwatch.review.events import recent_events
from modwatch.review.people import access_tokens, accounts, passwords, sessions
from modwatch.review.people.throttle import FAILURES_PER_ADDRESS, new_device
from review.console.visiting import hidden, serving

GOOD = "a long pass phrase"
HOME, OFFICE, ELSEWHERE = "192.0.2.1", "192.0.2.2", "198.51.100.3"


@pytest.fixture(autouse=True)
def known_passwords(engine, ann, ben, fast_hashes):
    for person in (ann, ben):
        passwords.set_password(engine, person.id, GOOD)


def log_in(
    engine: Engine, name: str = "ann", password: str = GOOD, address: str = HOME, device: str = ""
) -> str:
    return passwords.log_in(engine, name, password, address=address, device=device)


def compared(
    engine: Engine, names: Iterable[str], addresses: Iterable[str], device: str = ""
) -> int:
    """Return how many guesses were compared with a password; one for each name and address."""
    done = 0
    for name, address in zip(names, addresses, strict=False):
        try:
            log_in(engine, name, "a wrong guess, invented", address, device)
        except ThrottledError:
            continue
        except AccessDeniedError:
            done += 1
    return done


def addresses(n: int) -> list[str]:
    return [f"203.0.113.{number}" for number in range(n)]


def seen(engine: Engine, action: str) -> list[tuple[str | None, object]]:
    found = [event for event in recent_events(engine, limit=500) if event.action == action]
    return [(match.subject, match.details["network"]) for match in reversed(found)]


class TestOneAccount:
    def test_its_owner_is_not_locked_out_of_a_known_browser_or_network(self, engine):
        device = new_device()
        log_in(engine, device=device)
        compared(engine, ["ann"] * 9, addresses(9))
        assert log_in(engine, device=device)
        assert log_in(engine, address=ELSEWHERE, device=device)  # a laptop on the train
        assert log_in(engine)
        with pytest.raises(ThrottledError):
            log_in(engine, address="203.0.113.99")

    def test_a_forged_or_another_persons_browser_is_a_stranger(self, engine):
        bens = new_device()
        log_in(engine, "ben", address=OFFICE, device=bens)
        many = [new_device() for _ in range(9)]
        done = sum(compared(engine, ["ann"], [ELSEWHERE], value) for value in (*many, bens))
        assert done == 5

    def test_whoever_stole_the_cookie_has_five_guesses_more(self, engine):
        device = new_device()
        log_in(engine, device=device)
        assert compared(engine, ["ann"] * 9, addresses(9), device) == 5
        assert compared(engine, ["ann"] * 9, addresses(9)) == 5

    def test_what_was_known_long_ago_is_not(self, engine):
        device = new_device()
        log_in(engine, device=device)
        execute(engine, "UPDATE known_origin SET seen_at = seen_at - interval '31 d'")
        compared(engine, ["ann"] * 9, addresses(9))
        with pytest.raises(ThrottledError):
            log_in(engine, device=device)
        log_in(engine, "ben")
        assert scalar(engine, "SELECT count(*) FROM known_origin") == 1


class TestOneNetwork:
    def test_does_not_lock_out_the_known_browsers_behind_it(self, engine):
        device = new_device()
        log_in(engine, address=OFFICE, device=device)
        assert compared(engine, [f"name {number}" for number in range(35)], [OFFICE] * 35) == 30
        assert log_in(engine, address=OFFICE, device=device)
        with pytest.raises(ThrottledError):
            log_in(engine, "ben", address=OFFICE)

    def test_known_accounts_are_no_way_around_its_limit(self, engine):
        names = [f"colleague {number}" for number in range(7)]
        for name in names:
            person = accounts.create_moderator(engine, name, "moderator")
            passwords.set_password(engine, person.id, GOOD)
            log_in(engine, name, address=OFFICE)
        assert compared(engine, names * 5, [OFFICE] * 35) == 30


def test_spraying_from_many_networks_has_five_guesses_of_each_account(engine):
    names = ["ann", "ben", "nobody"] * 7
    assert compared(engine, names, [f"2001:db8:{n:x}::1" for n in range(21)]) == 15


class TestEvents:
    def test_log_ins_and_failures_name_account_and_network(self, engine):
        log_in(engine, address="2001:db8::7")
        compared(engine, ["ann", "nobody", "ann"], [HOME, OFFICE, ELSEWHERE])
        sessions.open_session(engine, access_tokens.issue_token(engine, 2), address=OFFICE)
        assert seen(engine, "log_in") == [("ann", "2001:db8::/64"), ("ben", OFFICE)]
        assert seen(engine, "log_in_failed") == [("ann", HOME), ("ann", ELSEWHERE)]

    def test_a_flood_of_guesses_is_a_handful_of_events(self, engine):
        before = scalar(engine, "SELECT count(*) FROM event")
        compared(engine, ["ann"] * 20, [HOME] * 20)
        compared(engine, [f"secret typed as name {n % 20}" for n in range(40)], [OFFICE] * 40)
        with engine.connect() as connection:
            after = connection.scalar(text("SELECT count(*) FROM event"))
            stored = str(connection.scalars(text("SELECT details::text FROM event")).all())
        assert seen(engine, "log_in_throttled") == [("ann", HOME), (None, OFFICE)]
        assert after - before == 5 + 2
        assert "secret" not in stored


def test_a_session_thief_has_five_guesses_and_strangers_do_not_use_them_up(engine, ann):
    compared(engine, ["ann"] * 9, addresses(9))
    for _ in range(5):
        with pytest.raises(AccessDeniedError, match="old password"):
            passwords.change_password(engine, ann.id, "a wrong guess", "another long pass phrase")
    with pytest.raises(ThrottledError):
        passwords.change_password(engine, ann.id, GOOD, "another long pass phrase")


def test_the_page_makes_the_browser_known(engine, client):
    def send() -> int:
        client.cookies.delete(SESSION_COOKIE)
        form = hidden(client.get("/login"), "login") | {"pseudonym": "ann", "password": GOOD}
        return client.post("/login", data=form, follow_redirects=False).status_code

    chosen = {"Cookie": f"{DEVICE_COOKIE}=chosen by someone else"}
    form = hidden(client.get("/login"), "login") | {"pseudonym": "ann", "password": GOOD}
    cookie = f"{LOGIN_COOKIE}={client.cookies[LOGIN_COOKIE]}; {chosen['Cookie']}"
    answer = client.post("/login", data=form, headers={"Cookie": cookie}, follow_redirects=False)
    assert answer.status_code == 303
    device = client.cookies[DEVICE_COOKIE]
    assert len(device) == 43
    compared(engine, ["ann"] * 9, addresses(9))
    assert send() == 303
    assert client.cookies[DEVICE_COOKIE] == device


#: Logs in with a wrong password from an address that the client, and one that the proxy, claims.
Guess = Callable[[str], int]


@contextmanager
def guesses(engine: Engine, *trusted_proxies: str) -> Iterator[Guess]:
    """Yield a guess at a real server on loopback; every guess is for another name."""
    options = ConsoleOptions(trusted_proxies=trusted_proxies)
    transport = httpx.HTTPTransport(retries=5)
    with serving(engine, options) as url, httpx.Client(base_url=url, transport=transport) as client:
        names = iter(range(1_000))

        def guess(forwarded_for: str) -> int:
            form = {"pseudonym": f"name {next(names)}", "password": "wrong, invented"}
            form |= hidden(client.get("/login"), "login")
            headers = {"X-Forwarded-For": forwarded_for}
            return client.post("/login", data=form, headers=headers).status_code

        yield guess


def test_no_one_chooses_their_own_address(engine):
    with guesses(engine) as guess:
        answers = [guess(f"192.0.2.{number}") for number in range(FAILURES_PER_ADDRESS + 5)]
    assert answers == [401] * FAILURES_PER_ADDRESS + [429] * 5


def test_behind_a_proxy_its_word_counts_and_not_the_clients(engine):
    with guesses(engine, "127.0.0.0/8") as guess:
        answers = [
            guess(f"198.51.100.{number}, 192.0.2.7") for number in range(FAILURES_PER_ADDRESS + 5)
        ]
        assert answers == [401] * FAILURES_PER_ADDRESS + [429] * 5
        assert guess("192.0.2.8") == 401  # someone else, who is not locked out


def test_whatever_a_header_says_the_console_answers(engine):
    with guesses(engine, "127.0.0.1") as guess:
        for header in ("", "unknown", "192.0.2.1:99999", "\x01", "a" * 9_000):
            assert guess(header) in (400, 401, 431), header
