"""How tests come to the console, and find something there."""

import io
import re
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from typing import Any

import httpx
import pyarrow.parquet as pq
from databases import execute, scalar
from fastapi import FastAPI
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from posting import post
from sqlalchemy import Engine

from modwatch.common.connections import listen
from modwatch.review.console.app import server
from modwatch.review.console.request_context import (
    CSRF_HEADER,
    SESSION_COOKIE,
    ConsoleOptions,
    csrf_of,
)
from modwatch.review.outbox.messages import OutboxMessage
from modwatch.review.people import access_tokens, accounts, sessions
from modwatch.review.people.accounts import Moderator
from modwatch.review.queue import deciding, dismissal, intake, leases
from modwatch.review.queue.dismissal import Criteria
from modwatch.review.queue.items import NewItem
from modwatch.review.tables import metadata

Headers = dict[str, str]


@contextmanager
def serving(engine: Engine, options: ConsoleOptions | None = None) -> Iterator[str]:
    """Run the console in a thread; yield its address."""
    console = server(engine, options) if options else server(engine)
    with listen("127.0.0.1", 0) as listener:
        thread = threading.Thread(target=console.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            console.should_exit = True
            thread.join(timeout=30)


def session_of(engine: Engine, person: Moderator) -> str:
    return sessions.open_session(engine, access_tokens.issue_token(engine, person.id))


def bearer_of(engine: Engine, person: Moderator) -> Headers:
    return {"Authorization": f"Bearer {access_tokens.issue_token(engine, person.id)}"}


def by_cookie(session: str, **more: str) -> Headers:
    cookies = {SESSION_COOKIE: session, **more}
    return {"Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())}


def plain(page: httpx.Response) -> str:
    """Return the words of a page."""
    return " ".join(re.sub(r"<[^>]+>", " ", page.text).split())


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


def everything(
    engine: Engine, app: FastAPI, stranger: TestClient, person: Moderator
) -> dict[str, str]:
    """Return whatever the console answers to this person, by method and address.

    What is forbidden is left out, and so are tokens and hashes: random digits can be anything.
    """
    session = session_of(engine, person)
    headers = {**by_cookie(session), CSRF_HEADER: csrf_of(session)}
    days = {"first_day": "2026-01-01", "last_day": "2026-01-01"}
    form: dict[str, Any] = {"csrf": csrf_of(session), "format": "csv", **days}
    message: dict[str, str] = {}
    for method, path in routes_of(app):
        sent: dict[str, Any] = {"json": {}} if "/api/" in path else {"data": form}
        if path in ("/logout", "/preferences/revoke"):
            continue
        body = {} if method == "GET" else sent
        answer = stranger.request(method, path, headers=headers, **body)
        message[f"{method} {path}"] = answer.text
    for kind in ("csv", "jsonl", "parquet"):
        asked = {"csrf": csrf_of(session), "format": kind}
        answer = stranger.post("/records/export", data=asked, headers=headers)
        if answer.status_code == 403:
            continue
        assert answer.status_code == 200
        message[kind] = _rows_of(answer.content) if kind == "parquet" else answer.text
    return {
        where: re.sub("[0-9a-f]{32,}", "hex", answer)
        for where, answer in message.items()
        if '"forbidden"' not in answer
    }


def _rows_of(parquet: bytes) -> str:
    """Return the rows of a Parquet file, one a line, with bytes in hex."""
    table = pq.read_table(io.BytesIO(parquet)).to_pylist()
    return "\n".join(
        str([item.hex() if isinstance(item, bytes) else item for item in row.values()])
        for row in table
    )


def rows(engine: Engine) -> dict[str, int]:
    """Return how many rows every table has."""
    return {name: scalar(engine, f"SELECT count(*) FROM {name}") or 0 for name in metadata.tables}


def used(engine: Engine, new_item: Callable[..., NewItem], day: date) -> dict[str, Moderator]:
    """Fill the queue, let something of everything happen, and return who is who, by role."""
    names = ("moderator", "lead", "auditor", "ops", "admin")
    who = {role: accounts.create_moderator(engine, f"the {role}", role) for role in names}
    items = [
        new_item(f"c{i}", i + 1, parent_text="p", platform="f", language="de") for i in range(20)
    ]
    intake.enqueue(engine, items, day)
    for does, more in (
        (deciding.decide, {"label": 1, "policy_code": "threat"}),
        (deciding.escalate, {"reason": "legal"}),
        (deciding.skip, {"reason": "language"}),
    ):
        lease = leases.lease(engine, who["moderator"].id)
        assert lease is not None
        does(
            engine, moderator_id=who["moderator"].id, item_id=lease.item.id, note="note",
            lease_token=lease.token, idempotency_key=secrets.token_hex(8), **more,
        )  # fmt: skip
    begun = dismissal.start(engine, who["lead"].id, Criteria(comment_ids=("c19",)), "spam_wave", 1)
    dismissal.resume(engine, begun.id)
    access_tokens.issue_token(engine, who["moderator"].id, name="name")
    message = OutboxMessage(
        key="k", topic="t", series="s", sequence=1, dt=day, payload={"text": "x"}
    )
    post(engine, message, ["channel"])
    execute(engine, "UPDATE outbox_delivery SET dead_at = now(), attempts = 1")
    return who
