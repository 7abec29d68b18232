"""Someone who guesses passwords, and claims another address with every guess."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx
import pytest
from sqlalchemy import Engine

from modwatch.review.console.request_context import ConsoleOptions
from modwatch.review.people.throttle import FAILURES_PER_ADDRESS
from review.console.visiting import hidden, serving

pytestmark = pytest.mark.usefixtures("fast_hashes")

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


def test_no_one_chooses_their_own_address(engine: Engine) -> None:
    with guesses(engine) as guess:
        answers = [guess(f"192.0.2.{number}") for number in range(FAILURES_PER_ADDRESS + 5)]
    assert answers == [401] * FAILURES_PER_ADDRESS + [429] * 5


def test_behind_a_proxy_its_word_counts_and_not_the_clients(engine: Engine) -> None:
    with guesses(engine, "127.0.0.0/8") as guess:
        answers = [
            guess(f"198.51.100.{number}, 192.0.2.7") for number in range(FAILURES_PER_ADDRESS + 5)
        ]
        assert answers == [401] * FAILURES_PER_ADDRESS + [429] * 5
        assert guess("192.0.2.8") == 401  # someone else, who is not locked out


def test_whatever_a_header_says_the_console_answers(engine: Engine) -> None:
    with guesses(engine, "127.0.0.1") as guess:
        for header in ("", "unknown", "192.0.2.1:99999", "\x01", "a" * 9_000):
            assert guess(header) in (400, 401, 431), header
