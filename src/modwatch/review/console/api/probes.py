"""For the machines that look after this one: does it live, is it ready, how does it do."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from sqlalchemy import text

from modwatch.review.console.desk import DeskDep, require
from modwatch.review.console.shapes import HealthShape, refusals
from modwatch.review.people import Moderator

router = APIRouter(tags=["probes"])

ScraperDep = Annotated[Moderator, Depends(require("metrics:read"))]


@router.get("/livez")
def live() -> HealthShape:
    """Return that the process answers."""
    return HealthShape()


@router.get("/readyz", responses=refusals(503))
def ready(desk: DeskDep) -> HealthShape:
    """Return that the database answers and holds the tables."""
    with desk.engine.connect() as connection:
        connection.execute(text("SELECT FROM decision LIMIT 1"))
    return HealthShape()


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}, **refusals(401, 403, 503)},
)
def metrics(request: Request, scraper: ScraperDep) -> Response:  # noqa: ARG001 - it is who may
    """Return the figures of this console for Prometheus; it takes the scope `metrics:read`."""
    content, kind = request.app.state.telemetry.exposition()
    return Response(content, headers={"Content-Type": kind})
