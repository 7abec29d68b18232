"""Webhook deliveries: pending messages and dead letters."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Response
from fastapi.responses import RedirectResponse

from modwatch.review.console.render import Page, render
from modwatch.review.console.request_context import Session, form_session, page_session
from modwatch.review.console.schemas import FormText, OptionalId
from modwatch.review.outbox.delivery import (
    DeadLetter,
    DeliveryState,
    dead_letters,
    delivery_state,
    resend,
)
from modwatch.review.queue.items import storable

pages = APIRouter(include_in_schema=False)

#: Dead letters of a channel on the page.
_MOST_LETTERS = 100


@dataclass(frozen=True, kw_only=True)
class DeliveriesPage(Page, template="deliveries.html"):
    """State of each channel, and its dead letters."""

    states: dict[str, DeliveryState]
    #: The first dead letters of each channel.
    dead: dict[str, list[DeadLetter]]


@pages.get("/deliveries")
def show(
    session: Annotated[Session, Depends(page_session("deliveries"))],
) -> Response:
    """Return the number of pending messages and the dead letters of each channel."""
    states = delivery_state(session.engine)
    page = DeliveriesPage(
        states=states,
        dead={
            name: dead_letters(session.engine, name, limit=_MOST_LETTERS)
            for name, state in states.items()
            if state.dead
        },
    )
    return render(page, session)


@pages.post("/deliveries/resend")
def send_again(
    session: Annotated[Session, Depends(form_session("deliveries"))],
    channel: FormText,
    message_id: OptionalId = None,
) -> Response:
    """Queue dead letters of a channel for delivery again: one, or all."""
    storable(channel, "name", "the channel")
    resend(session.engine, channel, None if message_id is None else [message_id])
    return RedirectResponse("../deliveries?notice=resent", 303)
