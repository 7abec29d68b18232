"""Throttling of log-in attempts, against guessed passwords.

An attempt counts as failed until the password turns out to be right, so that of a hundred
concurrent guesses only five are compared. Unknown names are counted like any other, so that
throttling does not reveal which names exist. The counts are in the database, shared by all
processes. A limitation: anybody who knows a pseudonym can keep its owner from logging in by
password; API tokens and OIDC are not throttled.
"""

import ipaddress
import math
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Connection, Engine, delete, func, insert, select

from modwatch.errors import ThrottledError
from modwatch.review.database import take_turn
from modwatch.review.digests import digest_of
from modwatch.review.people.pseudonyms import name_key
from modwatch.review.tables import login_attempt

WINDOW = timedelta(minutes=15)
FAILURES_PER_NAME = 5
FAILURES_PER_ADDRESS = 30

#: Old rows deleted with each attempt; more than an attempt adds.
_PRUNED = 100

_a = login_attempt.c


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """An admitted attempt; it counts as failed until `forgive`."""

    name: bytes
    #: The row that counts against the address.
    address_row: int


def admit(engine: Engine, name: str, address: str) -> Attempt:
    """Return an attempt to log in as `name` from `address`, counted as failed for now.

    Raises `ThrottledError` after 5 failures of the name, or 30 of the address, within 15 minutes;
    such an attempt is not counted.
    """
    by_name = _digest("name", name_key(name))
    by_address = _digest("address", network(address))
    with engine.begin() as connection:
        for origin, limit in ((by_name, FAILURES_PER_NAME), (by_address, FAILURES_PER_ADDRESS)):
            _take_turn(connection, origin)
            _check(connection, origin, limit)
        _prune(connection)
        rows = [
            connection.execute(insert(login_attempt).values(origin=origin).returning(_a.id))
            for origin in (by_name, by_address)
        ]
        return Attempt(name=by_name, address_row=rows[1].scalar_one())


def forgive(engine: Engine, attempt: Attempt) -> None:
    """Delete the failures of the attempt's name, after a successful log-in."""
    with engine.begin() as connection:
        _take_turn(connection, attempt.name)
        connection.execute(
            delete(login_attempt).where(
                (_a.origin == attempt.name) | (_a.id == attempt.address_row)
            )
        )


def clear(engine: Engine, name: str) -> None:
    """Delete the failures of `name`, as when an admin sets a new password."""
    with engine.begin() as connection:
        origin = _digest("name", name_key(name))
        _take_turn(connection, origin)
        connection.execute(delete(login_attempt).where(_a.origin == origin))


def network(address: str) -> str:
    """Return the network that is counted for `address`: for IPv6 its /64, which one user may own.

    >>> network("2001:db8::1") == network("2001:db8::2")
    True
    >>> network("::ffff:192.0.2.7")
    '192.0.2.7'
    """
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, 64), strict=False))


def _check(connection: Connection, origin: bytes, limit: int) -> None:
    # After the clock was set back, failures in the future count for one window at most, too.
    recent = (_a.origin == origin, _a.failed_at.between(func.now() - WINDOW, func.now() + WINDOW))
    since = func.extract("epoch", func.now() - _a.failed_at)
    ages = select(since).where(*recent).order_by(_a.failed_at.desc()).limit(limit)
    failures = [float(age) for age in connection.scalars(ages)]
    if len(failures) == limit:
        wait = WINDOW.total_seconds() - max(0.0, failures[-1])
        raise ThrottledError(
            "too many failed log-in attempts; wait before the next one",
            retry_after=max(1, math.ceil(wait)),
        )


def _take_turn(connection: Connection, origin: bytes) -> None:
    """Wait for others that count the same origin; names are locked before addresses."""
    take_turn(connection, int.from_bytes(origin[:8], signed=True))


def _prune(connection: Connection) -> None:
    old = (
        select(_a.id)
        .where(_a.failed_at < func.now() - 2 * WINDOW)
        .limit(_PRUNED)
        .with_for_update(skip_locked=True)
    )
    connection.execute(delete(login_attempt).where(_a.id.in_(old)))


def _digest(kind: str, value: str) -> bytes:
    return digest_of(f"{kind}\0{value}")
