"""The application: the API, the page, and what shields them."""

from pathlib import Path

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles
from sqlalchemy import Engine

from modwatch.review.console import api, pages, refusals
from modwatch.review.console.desk import ConsoleOptions, Desk
from modwatch.review.console.shield import BodyLimit, SecurityHeaders


def create_app(engine: Engine, options: ConsoleOptions | None = None) -> FastAPI:
    """Return the console on the migrated database of `engine`.

    Endpoints that talk to the database are plain functions, so that they run in threads. The
    documentation pages of FastAPI load scripts from elsewhere and are off; the schema itself is at
    `/api/v1/openapi.json`.
    """
    app = FastAPI(
        title="Modwatch review",
        version="1",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/v1/openapi.json",
    )
    app.state.desk = Desk(engine=engine, options=options or ConsoleOptions())
    app.include_router(api.probes)
    app.include_router(api.router)
    app.include_router(pages.router)
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static"), name="static")
    refusals.install(app)
    app.add_middleware(BodyLimit)
    app.add_middleware(SecurityHeaders)
    return app
