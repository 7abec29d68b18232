"""What Prometheus reads of the console: requests as they come, the queue at most so old."""

import time
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import Connection, and_, func, select
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from modwatch.review.console.desk import Desk
from modwatch.review.console.recent import Recent
from modwatch.review.tables import decision, outbox_delivery, review_item, waiting

#: Seconds.
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

_KIND = "text/plain; version=0.0.4; charset=utf-8"


class Telemetry:
    """The figures of one application."""

    def __init__(self, desk: Desk) -> None:
        self._registry = CollectorRegistry()
        self._seconds = Histogram(
            "modwatch_http_request_seconds",
            "Time from request to the end of the answer",
            ["method", "route", "status"],
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._registry.register(_Queue(desk))

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request, by the template of its route."""
        self._seconds.labels(method, route, str(status)).observe(seconds)

    def exposition(self) -> tuple[bytes, str]:
        """Return all figures as text, and its content type."""
        return generate_latest(self._registry), _KIND


class Stopwatch:
    """Measures every request."""

    def __init__(self, app: ASGIApp, telemetry: Telemetry) -> None:
        self._app = app
        self._telemetry = telemetry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), 500

        async def send_noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_noted)
        finally:
            # An address that nobody made up is a label; any other would make endless ones.
            route = getattr(scope.get("route"), "path", None) or "other"
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._telemetry.observe(method, route, status, time.perf_counter() - started)


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"})


class _Queue(Collector):
    """The queue's figures, asked for at most every so often."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._figures = Recent(self._ask, desk.options.metrics_age.total_seconds())

    def describe(self) -> list[Metric]:
        """Return nothing: to name the figures takes no database."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield the figures."""
        yield from self._figures()

    def _ask(self) -> list[Metric]:
        with self._desk.engine.connect() as connection:
            return [*_by_reason(connection), _by_action(connection), _dead_letters(connection)]


def _by_reason(connection: Connection) -> list[Metric]:
    leased = review_item.c.leased_until > func.now()
    age = func.extract("epoch", func.now() - review_item.c.queued_at)
    rows = connection.execute(
        select(
            review_item.c.reason,
            func.count().filter(leased.isnot(True)).label("waiting"),
            func.count().filter(leased).label("leased"),
            func.count().filter(review_item.c.due_at < func.now()).label("overdue"),
            func.max(age).label("oldest"),
        )
        .where(waiting)
        .group_by(review_item.c.reason)
    ).all()
    families = {
        "waiting": GaugeMetricFamily("modwatch_queue_waiting", "Free items", labels=["reason"]),
        "leased": GaugeMetricFamily("modwatch_queue_leased", "Items in work", labels=["reason"]),
        "overdue": GaugeMetricFamily(
            "modwatch_queue_overdue", "Undecided items later than promised", labels=["reason"]
        ),
        "oldest": GaugeMetricFamily(
            "modwatch_queue_oldest_seconds", "Age of the oldest undecided item", labels=["reason"]
        ),
    }
    for row in rows:
        for name, family in families.items():
            family.add_metric([row.reason], float(getattr(row, name)))
    return list(families.values())


def _by_action(connection: Connection) -> Metric:
    family = GaugeMetricFamily(
        "modwatch_decisions_last_hour", "Decisions of the last hour", labels=["action"]
    )
    recent = decision.c.decided_at > func.now() - func.make_interval(0, 0, 0, 0, 1)
    # Ids grow with time, so the end of the table is enough: an hour holds no more than that.
    near_end = select(func.max(decision.c.id) - 200_000).scalar_subquery()
    rows = connection.execute(
        select(decision.c.action, func.count())
        .where(and_(decision.c.id > near_end, recent))
        .group_by(decision.c.action)
    )
    for action, n in rows:
        family.add_metric([action], n)
    return family


def _dead_letters(connection: Connection) -> Metric:
    family = GaugeMetricFamily(
        "modwatch_outbox_dead", "Messages given up, by channel", labels=["channel"]
    )
    rows = connection.execute(
        select(outbox_delivery.c.channel, func.count())
        .where(outbox_delivery.c.delivered_at.is_(None), outbox_delivery.c.dead_at.isnot(None))
        .group_by(outbox_delivery.c.channel)
    )
    for channel, n in rows:
        family.add_metric([channel], n)
    return family
