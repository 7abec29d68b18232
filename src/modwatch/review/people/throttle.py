"""Throttling of log-in attempts, against guessed passwords and against locking others out.

An attempt counts as failed until the password turns out to be right, so that of a hundred
concurrent guesses only five are compared. Which failures it is counted with depends on where the
account had a successful log-in within the last 30 days:

- from this browser, known by a cookie that holds a secret: with those of this browser and account;
- from this network: with those of this network and account, and with those of the network;
- elsewhere: with those of the account, and with those of the network.

Five failures of a browser, of a network and account, or of an account, and 30 of a network, within
15 minutes throttle further attempts that are counted with them. So:

- Guessing the password of one account from many networks: five guesses in 15 minutes, together,
  however many networks. They lock out no one who logs in from a known browser or network.
- One network against many accounts: 30 guesses. They lock out those in the same network who have
  no known browser: new colleagues, or those whose browser deletes cookies.
- A few common passwords against every account, from many networks: five guesses of each account.
  Only the strength of passwords helps here, see `passwords`.
- A thief of a browser's cookie gets five guesses in 15 minutes for its accounts, and may
  lock out this browser; it opens nothing.
- A person in the same network as another may lock out those browsers of theirs that are not known.

Unknown names are counted like any other, so that throttling does not reveal which names exist. The
counts are in the database, shared by all processes. API tokens and OIDC are not throttled: neither
can be guessed.
"""

import ipaddress
import math
import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Engine,
    delete,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert as upsert

from modwatch.common.errors import ThrottledError
from modwatch.review.database import digest_of, take_turn
from modwatch.review.events import record_event
from modwatch.review.people.pseudonyms import name_key
from modwatch.review.tables import known_origin, login_attempt

WINDOW = timedelta(minutes=15)
FAILURES_PER_NAME = 5
FAILURES_PER_ADDRESS = 30

#: How long a browser or network is known after the last successful log-in from it.
KNOWN = timedelta(days=30)

#: Old rows deleted with each attempt; more than an attempt adds.
_PRUNED = 100

_a = login_attempt.c
_k = known_origin.c


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """An admitted attempt; it counts as failed until `forgive`."""

    #: What it is counted with, in addition to the network.
    origin: bytes
    #: The row that counts against the network; None: it does not.
    address_row: int | None


def new_device() -> str:
    """Return a new secret for the cookie that makes a browser known."""
    return secrets.token_urlsafe(32)


def admit(
    engine: Engine, name: str, address: str, *, device: str = "", account_id: int | None = None
) -> Attempt:
    """Return an attempt to log in as `name` from `address`, counted as failed for now.

    `device` is the secret of the browser, if it has one. Raises `ThrottledError` after too many
    failures; such an attempt is not counted, and the first of a window is an account event that
    names the account of `account_id` and the network.
    """
    with engine.begin() as connection:
        counted = _budgets(connection, name_key(name), network(address), device)
        wait = _wait(connection, counted)
        if wait is None:
            return _admitted(connection, counted)
        _report(connection, counted, account_id, address)
    raise _throttled(wait)


def admit_again(engine: Engine, check: Literal["password", "code"], account_id: int) -> Attempt:
    """Return an attempt of a person whom the account's session or password identifies already.

    Counted by account alone: strangers who guess at the log-in cannot use it up. Raises
    `ThrottledError`.
    """
    counted = [(_digest(check, str(account_id)), FAILURES_PER_NAME)]
    with engine.begin() as connection:
        wait = _wait(connection, counted)
        if wait is None:
            return _admitted(connection, counted)
    raise _throttled(wait)


def forgive(engine: Engine, attempt: Attempt) -> None:
    """Delete the failures that the attempt was counted with, after a success.

    Of those of the network, only the attempt itself: a person who guesses has an account, too.
    """
    with engine.begin() as connection:
        _take_turn(connection, attempt.origin)
        mine = (_a.origin == attempt.origin) | (_a.id == attempt.address_row)
        connection.execute(delete(login_attempt).where(mine))


def remember(engine: Engine, name: str, address: str, device: str) -> None:
    """Make the browser and the network known for `name`, after a successful log-in."""
    origins = sorted(_known(name_key(name), network(address), device))
    with engine.begin() as connection:
        added = upsert(known_origin).values([{"origin": origin} for origin in origins])
        connection.execute(
            added.on_conflict_do_update(index_elements=["origin"], set_={"seen_at": func.now()})
        )
        _prune_some(connection, _k.origin, _k.seen_at < func.now() - KNOWN)


def fail(engine: Engine, attempt: Attempt, account_id: int | None, address: str) -> None:
    """Record a failed log-in of an existing account; write as much for one that does not exist."""
    with engine.begin() as connection:
        connection.execute(
            update(login_attempt).where(_a.origin == attempt.origin).values(failed_at=_a.failed_at)
        )
        if account_id is not None:
            record_event(
                connection,
                "log_in_failed",
                actor_id=None,
                subject_id=account_id,
                network=network(address),
            )


def clear(engine: Engine, name: str) -> None:
    """Delete the failures of `name`, as when an admin sets a new password."""
    with engine.begin() as connection:
        origin = _digest("name", name_key(name))
        _take_turn(connection, origin)
        connection.execute(delete(login_attempt).where(_a.origin == origin))


def prune(connection: Connection) -> int:
    """Delete all rows that count no more; return how many."""
    attempts = delete(login_attempt).where(_a.failed_at < func.now() - 2 * WINDOW)
    origins = delete(known_origin).where(_k.seen_at < func.now() - KNOWN)
    return sum(connection.execute(old).rowcount for old in (attempts, origins))


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


def _budgets(connection: Connection, name: str, net: str, device: str) -> list[tuple[bytes, int]]:
    """Return what an attempt is counted with, and the limit of each."""
    origins = _known(name, net, device)
    seen = select(_k.origin).where(_k.origin.in_(origins), _k.seen_at > func.now() - KNOWN)
    known = set(connection.scalars(seen))
    by_network = (_digest("address", net), FAILURES_PER_ADDRESS)
    if device and origins[0] in known:
        return [(origins[0], FAILURES_PER_NAME)]
    if origins[-1] in known:
        return [(origins[-1], FAILURES_PER_NAME), by_network]
    return [(_digest("name", name), FAILURES_PER_NAME), by_network]


def _known(name: str, net: str, device: str) -> list[bytes]:
    """Return the origins of the browser, if it has a secret, and of the network."""
    by_device = [_digest("device", f"{name}\0{device}")] if device else []
    return [*by_device, _digest("network", f"{name}\0{net}")]


def _wait(connection: Connection, counted: list[tuple[bytes, int]]) -> int | None:
    """Return the seconds to wait; None: none of the limits is reached. Names before networks."""
    for origin, limit in counted:
        _take_turn(connection, origin)
        failures = _failures(connection, origin, limit)
        if len(failures) == limit:
            wait = WINDOW.total_seconds() - max(0.0, failures[-1])
            return max(1, math.ceil(wait))
    return None


def _failures(connection: Connection, origin: bytes, limit: int) -> list[float]:
    """Return the ages of the latest failures in seconds, newest first."""
    # After the clock was set back, failures in the future count for one window at most, too.
    recent = (_a.origin == origin, _a.failed_at.between(func.now() - WINDOW, func.now() + WINDOW))
    since = func.extract("epoch", func.now() - _a.failed_at)
    ages = select(since).where(*recent).order_by(_a.failed_at.desc()).limit(limit)
    return [float(age) for age in connection.scalars(ages)]


def _count(connection: Connection, origin: bytes) -> int:
    row = connection.execute(insert(login_attempt).values(origin=origin).returning(_a.id))
    return int(row.scalar_one())


def _report(
    connection: Connection,
    counted: list[tuple[bytes, int]],
    account_id: int | None,
    address: str,
) -> None:
    """Record once in a window that attempts are throttled.

    Neither for a name without an account, which may be a password, nor more often, or a sender of
    attempts would fill the table of events.
    """
    full = next(name for name, limit in counted if len(_failures(connection, name, limit)) == limit)
    if account_id is None and full != _digest("address", network(address)):
        return
    reported = _digest("reported", full.hex())
    if _failures(connection, reported, 1):
        return
    _count(connection, reported)
    record_event(
        connection,
        "log_in_throttled",
        actor_id=None,
        subject_id=account_id,
        network=network(address),
    )


def _throttled(wait: int) -> ThrottledError:
    return ThrottledError(
        "too many failed log-in attempts; wait before the next one", retry_after=wait
    )


def _take_turn(connection: Connection, origin: bytes) -> None:
    """Wait for others that count the same origin; names are locked before addresses."""
    take_turn(connection, int.from_bytes(origin[:8], signed=True))


def _admitted(connection: Connection, counted: list[tuple[bytes, int]]) -> Attempt:
    _prune_some(connection, _a.id, _a.failed_at < func.now() - 2 * WINDOW)
    rows = [_count(connection, origin) for origin, _ in counted]
    return Attempt(origin=counted[0][0], address_row=rows[1] if len(rows) > 1 else None)


def _prune_some(connection: Connection, key: Column[Any], is_old: ColumnElement[bool]) -> None:
    old = select(key).where(is_old).limit(_PRUNED).with_for_update(skip_locked=True)
    connection.execute(delete(key.table).where(key.in_(old)))


def _digest(kind: str, value: str) -> bytes:
    return digest_of(f"{kind}\0{value}")
