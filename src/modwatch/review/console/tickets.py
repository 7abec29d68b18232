"""How a tab comes back to the items that it held.

A tab that is left gives its items back, so that nobody waits for them. A reload and the back button
look the same, so a tab keeps a ticket for each item: with it, its session may have the very item
again, if nobody else took it meanwhile.
"""

import hashlib
import hmac
from typing import Annotated

from pydantic import Field
from sqlalchemy import update

from modwatch.review import queue
from modwatch.review.console.desk import Desk, Visit
from modwatch.review.console.shapes import Asked, Token
from modwatch.review.people import Moderator, session_seed
from modwatch.review.queue.items import Lease
from modwatch.review.tables import NO_LEASE, review_item


class Held(Asked):
    """A lease that a tab remembers, and its ticket to the same item after the tab was left."""

    item_id: Annotated[int, Field(ge=1, le=2**63 - 1)]
    lease_token: Token
    ticket: Token


def again(desk: Desk, visit: Visit, held: Held) -> Lease | None:
    """Return a new lease of an item that the tab held.

    New, for the request by which the tab gave the old one back may still be under way; and
    whichever of this person's leases holds is replaced, for the answer to an earlier request may
    never have reached the tab.
    """
    if not hmac.compare_digest(
        ticket_of(visit, held.item_id).encode(), held.ticket.encode(errors="surrogatepass")
    ):
        return queue.resume(desk.engine, visit.person.id, held.item_id, held.lease_token)
    _give_up(desk, visit.person, held.item_id)
    length, queues = desk.options.lease_length, visit.person.queues
    asked = (desk.engine, visit.person.id, held.item_id, length)
    waiting = queue.claim(*asked, queues=queues)
    if waiting is None and visit.person.may("lead"):
        return queue.claim(*asked, queues=queues, escalated_only=True)
    return waiting


def _give_up(desk: Desk, person: Moderator, item_id: int) -> None:
    mine = (review_item.c.id == item_id, review_item.c.leased_by == person.id)
    with desk.engine.begin() as connection:
        connection.execute(update(review_item).where(*mine).values(**NO_LEASE))


def ticket_of(visit: Visit, item_id: int) -> str:
    """Return the ticket of this session for an item, whatever token replaces the first."""
    seed = session_seed(visit.session).encode()
    return hmac.new(seed, f"item {item_id}".encode(), hashlib.sha256).hexdigest()
