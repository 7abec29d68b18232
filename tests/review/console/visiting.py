"""How tests come to the console, and find something there."""

import re
import secrets
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from typing import Any

import httpx
from fastapi import FastAPI
from fastapi.routing import APIRoute
from sqlalchemy import Engine, text

from modwatch.review import people, queue
from modwatch.review.console.request_context import SESSION_COOKIE
from modwatch.review.outbox.messages import OutboxMessage, post
from modwatch.review.people import Moderator
from modwatch.review.queue import dismissal
from modwatch.review.queue.dismissal import Criteria
from modwatch.review.queue.items import NewItem
from modwatch.review.tables import metadata

Headers = dict[str, str]


def session_of(engine: Engine, person: Moderator) -> str:
    return people.open_session(engine, people.issue_token(engine, person.id), timedelta(hours=1))


def bearer_of(engine: Engine, person: Moderator) -> Headers:
    return {"Authorization": f"Bearer {people.issue_token(engine, person.id)}"}


def by_cookie(session: str, **more: str) -> Headers:
    cookies = {SESSION_COOKIE: session, **more}
    return {"Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())}


def hidden(page: httpx.Response, action: str = "") -> dict[str, str]:
    """Return the hidden fields of the form that leads to `action`."""
    form = re.search(rf'<form[^>]*action="[^"]*{action}"[^>]*>(.*?)</form>', page.text, re.S)
    assert form is not None, action
    found = re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form[1])
    return {name: value.replace("&#34;", '"') for name, value in found}


def endpoints(routes: Any) -> Iterator[tuple[str, str]]:
    """Yield method and path of every endpoint of an application's or a router's `routes`."""
    for route in routes:
        if isinstance(route, APIRoute):
            yield from ((method, route.path) for method in route.methods)
        elif inner := getattr(getattr(route, "original_router", None), "routes", None):
            yield from endpoints(inner)


def routes_of(app: FastAPI) -> Iterator[tuple[str, str]]:
    """Yield method and address of every endpoint, each number in an address 1."""
    for method, path in endpoints(app.routes):
        yield method, re.sub(r"\{\w+\}", "1", path)


def rows(engine: Engine) -> dict[str, int]:
    """Return how many rows every table has."""
    with engine.connect() as connection:
        return {
            name: connection.scalar(text(f"SELECT count(*) FROM {name}")) or 0
            for name in metadata.tables
        }


def used(engine: Engine, new_item: Callable[..., NewItem], day: date) -> dict[str, Moderator]:
    """Fill the queue, let something of everything happen, and return who is who, by role."""
    names = ("moderator", "lead", "auditor", "ops", "admin")
    who = {role: people.create_moderator(engine, f"the {role}", role) for role in names}
    items = [
        new_item(f"c{i}", i + 1, parent_text="p", platform="f", language="de") for i in range(20)
    ]
    queue.enqueue(engine, items, day)
    for does, more in (
        (queue.decide, {"label": 1, "policy_code": "threat"}),
        (queue.escalate, {"reason": "legal"}),
        (queue.skip, {"reason": "language"}),
    ):
        lease = queue.lease(engine, who["moderator"].id)
        assert lease is not None
        does(
            engine, moderator_id=who["moderator"].id, item_id=lease.item.id, note="note",
            lease_token=lease.token, idempotency_key=secrets.token_hex(8), **more,
        )  # fmt: skip
    begun = dismissal.start(engine, who["lead"].id, Criteria(comment_ids=("c19",)), "spam_wave", 1)
    dismissal.resume(engine, begun.id)
    people.issue_token(engine, who["moderator"].id, name="name")
    message = OutboxMessage(
        key="k", topic="t", series="s", sequence=1, dt=day, payload={"text": "x"}
    )
    post(engine, message, ["channel"])
    with engine.begin() as connection:
        connection.execute(text("UPDATE outbox_delivery SET dead_at = now(), attempts = 1"))
    return who
