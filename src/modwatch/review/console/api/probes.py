"""Liveness, readiness and Prometheus metrics."""

from fastapi import APIRouter, Depends, Request, Response
from sqlalchemy import text

from modwatch.review.console.request_context import ContextDep, require
from modwatch.review.console.schemas import HealthSchema, error_responses

router = APIRouter(tags=["probes"])


@router.get("/livez")
def live() -> HealthSchema:
    """Return 200 while the process responds."""
    return HealthSchema()


@router.get("/readyz", responses=error_responses(503))
def ready(context: ContextDep) -> HealthSchema:
    """Return 200 while the database responds and has the tables."""
    with context.engine.connect() as connection:
        connection.execute(text("SELECT FROM decision LIMIT 1"))
    return HealthSchema()


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}, **error_responses(401, 403, 503)},
    dependencies=[Depends(require("metrics:read"))],
)
def metrics(request: Request) -> Response:
    """Return metrics for Prometheus; requires the scope `metrics:read`."""
    content, content_type = request.app.state.telemetry.exposition()
    return Response(content, headers={"Content-Type": content_type})
