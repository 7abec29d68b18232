"""Webhook deliveries: pending messages and dead letters."""

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from fastapi.responses import RedirectResponse

from modwatch.review.console.render import render
from modwatch.review.console.request_context import Session, form_session, page_session
from modwatch.review.console.schemas import FormText, OptionalId
from modwatch.review.outbox.delivery import (
    dead_letters,
    delivery_state,
    resend,
)
from modwatch.review.queue.items import storable

pages = APIRouter(include_in_schema=False)

#: Dead letters of a channel on the page.
_MOST_LETTERS = 100


@pages.get("/deliveries")
def show(
    session: Annotated[Session, Depends(page_session("deliveries"))],
) -> Response:
    """Return the number of pending messages and the dead letters of each channel."""
    states = delivery_state(session.engine)
    return render(
        session,
        "deliveries.html",
        states=states,
        dead={
            name: dead_letters(session.engine, name, limit=_MOST_LETTERS)
            for name, state in states.items()
            if state.dead
        },
    )


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
