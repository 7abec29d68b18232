"""Probes, and Prometheus metrics: request durations, and cached metrics of the queue."""

import time
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from fastapi import APIRouter, Depends, Request, Response
from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from pydantic import BaseModel
from sqlalchemy import Connection, func, select, text
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from modwatch.common.cache import TimedCache
from modwatch.review.console.request_context import Context, ContextDep, require
from modwatch.review.console.schemas import error_responses
from modwatch.review.tables import decision, outbox_delivery, review_item, waiting


class HealthSchema(BaseModel):
    """Response of a probe."""

    status: Literal["ok"] = "ok"


#: Seconds.
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"})
_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Telemetry:
    """The metrics of one application."""

    def __init__(self, context: Context) -> None:
        self._registry = CollectorRegistry()
        #: Of requests, under the template of their route.
        self.seconds = Histogram(
            "modwatch_http_request_seconds",
            "Time from the request to the end of the response",
            ["method", "route", "status"],
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._registry.register(_Queue(context))

    def exposition(self) -> bytes:
        """Return all metrics in the text format."""
        return generate_latest(self._registry)


class RequestTimer:
    """Middleware that measures every request."""

    def __init__(self, app: ASGIApp, telemetry: Telemetry) -> None:
        self._app = app
        self._telemetry = telemetry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), 500

        async def send_and_note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_and_note_status)
        finally:
            # Only known routes and methods are labels; arbitrary paths would create endless series.
            route = getattr(scope.get("route"), "path", None) or "other"
            method = scope["method"] if scope["method"] in _METHODS else "other"
            requests = self._telemetry.seconds.labels(method, route, str(status))
            requests.observe(time.perf_counter() - started)


class _Queue(Collector):
    """The queue's metrics, cached."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._metrics = TimedCache(self._load, context.options.metrics_age.total_seconds())

    def describe(self) -> list[Metric]:
        """Return nothing, so that registration needs no database."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics."""
        yield from self._metrics()

    def _load(self) -> list[Metric]:
        with self._context.engine.connect() as connection:
            return [
                *_by_reason(connection),
                _severe(connection),
                _by_action(connection),
                _dead_letters(connection),
            ]


def _by_reason(connection: Connection) -> list[Metric]:
    item = review_item.c
    leased = item.leased_until > func.now()
    age = func.extract("epoch", func.now() - item.queued_at)
    measures = {
        "waiting": ("Unleased items", func.count().filter(leased.isnot(True))),
        "leased": ("Leased items", func.count().filter(leased)),
        "overdue": (
            "Undecided items past their due time",
            func.count().filter(item.due_at < func.now()),
        ),
        "oldest_seconds": ("Age of the oldest undecided item", func.max(age)),
    }
    columns = (column.label(name) for name, (_, column) in measures.items())
    query = select(item.reason, *columns).where(waiting).group_by(item.reason)
    rows = connection.execute(query).mappings().all()
    return [
        _gauge(f"modwatch_queue_{name}", meaning, "reason", ((r["reason"], r[name]) for r in rows))
        for name, (meaning, _) in measures.items()
    ]


def _severe(connection: Connection) -> Metric:
    severe = (review_item.c.status == "escalated", review_item.c.severe_due_at.is_not(None))
    overdue = func.count().filter(review_item.c.severe_due_at < func.now())
    counted = connection.execute(select(func.count(), overdue).where(*severe)).one()
    rows = zip(("open", "overdue"), counted, strict=True)
    return _gauge("modwatch_severe_escalations", "Severe escalations", "state", rows)


def _by_action(connection: Connection) -> Metric:
    recent = decision.c.decided_at > func.now() - func.make_interval(0, 0, 0, 0, 1)
    # Ids grow with time, and no hour has more decisions than this: the table's end suffices.
    near_end = select(func.max(decision.c.id) - 200_000).scalar_subquery()
    query = select(decision.c.action, func.count()).where(decision.c.id > near_end, recent)
    rows = connection.execute(query.group_by(decision.c.action))
    return _gauge("modwatch_decisions_last_hour", "Decisions in the last hour", "action", rows)


def _dead_letters(connection: Connection) -> Metric:
    delivery = outbox_delivery.c
    dead = (delivery.delivered_at.is_(None), delivery.dead_at.isnot(None))
    query = select(delivery.channel, func.count()).where(*dead)
    rows = connection.execute(query.group_by(delivery.channel))
    return _gauge("modwatch_outbox_dead", "Dead letters by channel", "channel", rows)


def _gauge(name: str, text: str, label: str, rows: Iterable[Any]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=[label])
    for value, n in rows:
        family.add_metric([value], float(n))
    return family


api = APIRouter(tags=["probes"])


@api.get("/livez")
def live() -> HealthSchema:
    """Return 200 while the process responds."""
    return HealthSchema()


@api.get("/readyz", responses=error_responses(503))
def ready(context: ContextDep) -> HealthSchema:
    """Return 200 while the database responds and has the tables."""
    with context.engine.connect() as connection:
        connection.execute(text("SELECT FROM decision LIMIT 1"))
    return HealthSchema()


@api.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}, **error_responses(401, 403, 503)},
    dependencies=[Depends(require("metrics:read"))],
)
def metrics(request: Request) -> Response:
    """Return metrics for Prometheus; requires the scope `metrics:read`."""
    content = request.app.state.telemetry.exposition()
    return Response(content, headers={"Content-Type": _CONTENT_TYPE})
