"""The application: API, pages, static files and middleware."""

from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles
from sqlalchemy import Engine

from modwatch.review import queue
from modwatch.review.console import errors
from modwatch.review.console.api import decisions as api_decisions
from modwatch.review.console.api import deliveries as api_deliveries
from modwatch.review.console.api import dismissals as api_dismissals
from modwatch.review.console.api import lead as api_lead
from modwatch.review.console.api import me as api_me
from modwatch.review.console.api import people as api_people
from modwatch.review.console.api import probes
from modwatch.review.console.api import review as api_review
from modwatch.review.console.middleware import BodyLimit, SecurityHeaders
from modwatch.review.console.pages import (
    activity,
    adjudication,
    decision_log,
    deliveries,
    dismissals,
    error_rates,
    item,
    people,
    preferences,
    queues,
    review,
    search,
    second_factor,
    sign_in,
    team,
)
from modwatch.review.console.request_context import ConsoleOptions, Context
from modwatch.review.console.telemetry import RequestTimer, Telemetry, TimedCache
from modwatch.review.people import Provider
from modwatch.review.queue.lease_limit import LeaseLimit

#: In the order of the documentation.
_MODULES: tuple[Any, ...] = (
    probes, api_review, api_me, api_lead, api_dismissals, api_decisions, api_people, api_deliveries,
    sign_in, second_factor, review, activity, preferences, queues, team, error_rates,
    adjudication, dismissals, search, item, decision_log, deliveries, people,
)  # fmt: skip

#: Maximum age of the queue counts in the page header, in seconds.
_COUNTS_AGE = 10.0


def create_app(engine: Engine, options: ConsoleOptions | None = None) -> FastAPI:
    """Return the console on the migrated database of `engine`.

    Endpoints that use the database are plain functions, so that they run in threads. FastAPI's
    documentation pages load scripts from other sites and are off; the schema is at
    `/api/v1/openapi.json`.
    """
    app = FastAPI(
        title="Modwatch review",
        description="Lease comments, decide them, and follow the decisions.",
        version="1",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/v1/openapi.json",
    )
    options = options or ConsoleOptions()
    limit = LeaseLimit(engine, options.most_leases)
    context = Context(engine=engine, options=options, lease_limit=limit)
    app.state.context = context
    app.state.telemetry = Telemetry(context)
    app.state.queue_counts = TimedCache(lambda: queue.counts(engine), _COUNTS_AGE)
    app.state.provider = Provider(context.options.oidc) if context.options.oidc else None
    for module in _MODULES:
        # `include_router` would analyse the signature of every endpoint again.
        app.router.routes.extend(module.router.routes)
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static"), name="static")
    errors.install(app)
    app.add_middleware(BodyLimit)
    app.add_middleware(SecurityHeaders)
    app.add_middleware(RequestTimer, telemetry=app.state.telemetry)
    return app
