"""Webhook deliveries: pending messages and dead letters."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from fastapi.responses import RedirectResponse
from pydantic import BaseModel, Field

from modwatch.review.console.render import Page, render
from modwatch.review.console.request_context import (
    ContextDep,
    Session,
    form_session,
    page_session,
    require,
)
from modwatch.review.console.schemas import (
    FormText,
    OptionalId,
    RequestSchema,
    error_responses,
)
from modwatch.review.outbox.delivery import (
    DeadLetter,
    DeliveryState,
    dead_letters,
    delivery_state,
    resend,
)
from modwatch.review.queue.items import storable

api = APIRouter(
    prefix="/api/v1/deliveries",
    tags=["admin"],
    responses=error_responses(401, 403, 503),
    dependencies=[Depends(require("deliveries"))],
)


class ResendRequest(RequestSchema):
    """Which dead letters of a channel to send again; null: all."""

    channel: Annotated[str, Field(min_length=1, max_length=200)]
    ids: (
        Annotated[tuple[Annotated[int, Field(ge=1, le=2**63 - 1)], ...], Field(max_length=1_000)]
        | None
    ) = None


class ResentSchema(BaseModel):
    """Number of messages queued again."""

    resent: int


@api.get("")
def read_deliveries(context: ContextDep) -> dict[str, DeliveryState]:
    """Return the number of undelivered messages by channel; one without any is absent."""
    return delivery_state(context.engine)


@api.get("/dead", responses=error_responses(422))
def read_dead_letters(
    context: ContextDep,
    channel: Annotated[str, Query(min_length=1, max_length=200)],
    after: Annotated[int, Query(ge=0, le=2**63 - 1)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> list[DeadLetter]:
    """Return dead letters without their payload, oldest first."""
    storable(channel, "name", "the channel")
    return dead_letters(context.engine, channel, after=after, limit=limit)


@api.post("/resend", responses=error_responses(413, 422))
def resend_dead(request: ResendRequest, context: ContextDep) -> ResentSchema:
    """Queue dead letters for delivery again."""
    storable(request.channel, "name", "the channel")
    return ResentSchema(resent=resend(context.engine, request.channel, request.ids))


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
