"""Leases that a browser remembers: one in a cookie, or several in a tab.

A tab that closes releases its items, so that others can lease them. A reload or the back button
looks the same to the server, so a tab keeps a ticket for each item: with it, the same session can
lease the item again unless someone else has it.
"""

import hashlib
import hmac
from typing import Annotated

from pydantic import Field
from sqlalchemy import update

from modwatch.review import queue
from modwatch.review.console.request_context import Session
from modwatch.review.console.schemas import RequestSchema, Token
from modwatch.review.people import session_seed
from modwatch.review.queue.items import Lease
from modwatch.review.tables import NO_LEASE, review_item


class RememberedLease(RequestSchema):
    """A lease that a tab remembers, and the ticket for the same item."""

    item_id: Annotated[int, Field(ge=1, le=2**63 - 1)]
    lease_token: Token
    ticket: Token


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
    """Return a new lease of an item that the tab had; None if someone else has it.

    The lease is new because the tab's request to release the old one may still be in flight. It
    replaces any lease of this person, since an earlier response may never have reached the tab.
    """
    engine, person, item_id = session.engine, session.person, remembered.item_id
    if not hmac.compare_digest(
        ticket_of(session, item_id).encode(), remembered.ticket.encode(errors="surrogatepass")
    ):
        return queue.resume(engine, person.id, item_id, remembered.lease_token)
    mine = (review_item.c.id == item_id, review_item.c.leased_by == person.id)
    with engine.begin() as connection:
        connection.execute(update(review_item).where(*mine).values(**NO_LEASE))
    claim = (engine, person.id, item_id, session.context.options.lease_length)
    waiting = queue.claim(*claim, queues=person.queues)
    if waiting is None and person.may("lead"):
        return queue.claim(*claim, queues=person.queues, escalated_only=True)
    return waiting


def ticket_of(session: Session, item_id: int) -> str:
    """Return this session's ticket for an item; rotating the session token does not change it."""
    seed = session_seed(session.token).encode()
    return hmac.new(seed, f"item {item_id}".encode(), hashlib.sha256).hexdigest()
