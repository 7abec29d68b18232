"""The application: the API, the pages, and what shields them."""

from pathlib import Path

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles
from sqlalchemy import Engine

from modwatch.review import queue
from modwatch.review.console import offices, refusals
from modwatch.review.console.api import desk as api_desk
from modwatch.review.console.api import me, probes
from modwatch.review.console.api import queue as api_queue
from modwatch.review.console.desk import ConsoleOptions, Desk
from modwatch.review.console.pages import day, preferences, review, session
from modwatch.review.console.recent import Recent
from modwatch.review.console.shield import BodyLimit, SecurityHeaders
from modwatch.review.console.telemetry import Stopwatch, Telemetry
from modwatch.review.people import Provider

#: In the order in which they are documented.
_ROUTERS = (
    probes.router,
    api_queue.router,
    api_desk.router,
    me.router,
    session.router,
    review.router,
    day.router,
    preferences.router,
    *offices.ROUTERS,
)

#: The page's head shows figures of the queue that are at most this old, in seconds.
_GLANCE = 10.0


def create_app(engine: Engine, options: ConsoleOptions | None = None) -> FastAPI:
    """Return the console on the migrated database of `engine`.

    Endpoints that talk to the database are plain functions, so that they run in threads. The
    documentation pages of FastAPI load scripts from elsewhere and are off; the schema itself is at
    `/api/v1/openapi.json`.
    """
    app = FastAPI(
        title="Modwatch review",
        description="Lease comments, decide them, follow what was decided.",
        version="1",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/v1/openapi.json",
    )
    desk = Desk(engine=engine, options=options or ConsoleOptions())
    app.state.desk = desk
    app.state.telemetry = Telemetry(desk)
    app.state.glance = Recent(lambda: queue.counts(engine), _GLANCE)
    app.state.provider = Provider(desk.options.oidc) if desk.options.oidc else None
    for router in _ROUTERS:
        app.include_router(router)
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static"), name="static")
    refusals.install(app)
    app.add_middleware(BodyLimit)
    app.add_middleware(SecurityHeaders)
    app.add_middleware(Stopwatch, telemetry=app.state.telemetry)
    return app
