"""Leases that a browser remembers: one in a cookie, or several in a tab.

A tab that closes releases its items, so that others can lease them. A reload or the back button
looks the same to the server, so a tab remembers the token of each lease: with it, the same person
can lease the item again unless someone else has had it since.
"""

from typing import Annotated

from pydantic import ConfigDict, Field

from modwatch.common.errors import TooManyLeasesError
from modwatch.review import queue
from modwatch.review.console.request_context import Session
from modwatch.review.console.schemas import RequestSchema, Token
from modwatch.review.queue.items import Lease


class RememberedLease(RequestSchema):
    """A lease that a tab remembers; tabs of an earlier version send more, which is ignored."""

    model_config = ConfigDict(extra="ignore")

    item_id: Annotated[int, Field(ge=1, le=2**63 - 1)]
    lease_token: Token


def cookie_of(lease: Lease) -> str:
    """Return the cookie that remembers a lease."""
    return f"{lease.item.id}.{lease.token}"


def parse_cookie(cookie: str) -> tuple[int, str]:
    """Return item and token of a cookie; item 0, which does not exist, for an invalid one.

    >>> parse_cookie("7.secret"), parse_cookie("forged")
    ((7, 'secret'), (0, ''))
    """
    item_id, _, token = cookie.partition(".")
    valid = item_id.isascii() and item_id.isdigit() and len(item_id) < 19
    return (int(item_id), token) if valid else (0, "")


def resume(session: Session, cookie: str) -> Lease | None:
    """Return the lease of a cookie if it is still valid."""
    return queue.resume(session.engine, session.person.id, *parse_cookie(cookie))


def lease_again(session: Session, remembered: RememberedLease) -> Lease | None:
    """Return a new lease of an item that the tab had; None if someone else had it since.

    None, too, for a person who holds as many items as they may.

    The lease is new because the tab's request to release the old one may still be in flight.
    """
    person = session.person
    try:
        with session.context.lease_limit.place(person.id) as place:
            lease = queue.renew(
                session.engine,
                person.id,
                remembered.item_id,
                remembered.lease_token,
                session.context.options.lease_length,
                queues=person.queues,
                escalated=person.may("lead"),
            )
            place.taken = lease is not None
    except TooManyLeasesError:
        return None
    return lease
