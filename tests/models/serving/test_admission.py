"""Draining: what was taken is answered, what comes later is refused."""

import asyncio
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from modwatch.models.serving.admission import Admission


class Held:
    """An application that answers when it may."""

    def __init__(self) -> None:
        self.go, self.asked = asyncio.Event(), asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.asked.set()
        if Request(scope).url.path == "/fails":
            raise ValueError("the application fails")
        await self.go.wait()
        await PlainTextResponse("done")(scope, receive, send)


def client(app: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")


def test_a_drain_ends_when_the_requests_that_were_taken_are_answered() -> None:
    async def work() -> None:
        inner = Held()
        admission = Admission(inner)
        async with client(admission) as asking:
            taken = asyncio.create_task(asking.get("/v2"))
            await inner.asked.wait()
            draining = asyncio.create_task(admission.drain())
            await asyncio.sleep(0)
            refused = await asking.get("/v2")
            assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
            assert [*refused.json()] == ["error"]
            assert not draining.done()
            inner.go.set()
            assert (await taken).status_code == 200
            await asyncio.wait_for(draining, 10)
            assert (await asking.get("/v2/health/live")).status_code == 200
            assert (await asking.get("/v2/health/ready")).status_code == 503

    asyncio.run(work())


def test_a_request_that_fails_is_not_waited_for() -> None:
    async def work() -> None:
        admission = Admission(Held())
        async with client(admission) as asking:
            with pytest.raises(ValueError, match="the application fails"):
                await asking.get("/fails")
            await asyncio.wait_for(admission.drain(), 10)

    asyncio.run(work())


def test_an_idle_application_is_drained_at_once() -> None:
    async def work() -> None:
        await asyncio.wait_for(Admission(Held()).drain(), 10)

    asyncio.run(work())
