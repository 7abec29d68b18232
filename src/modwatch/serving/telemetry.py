"""Metrics of a model server, in Prometheus' format."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_TEXTS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000)
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Telemetry:
    """What a model server counts; no texts and no ids."""

    def __init__(self) -> None:
        to = self.registry = CollectorRegistry()
        self.latency = Histogram(
            "modwatch_infer_seconds",
            "Seconds from a request to its response",
            buckets=_SECONDS,
            registry=to,
        )
        self.batch = Histogram(
            "modwatch_batch_texts", "Texts that were scored together", buckets=_TEXTS, registry=to
        )
        self.busy = _counter("scoring_seconds", "Seconds in which the model computed", to)
        self.texts = _counter("texts", "Texts that were scored", to)
        self.subwords = _counter("subwords", "Subwords that were scored", to)
        self.refused = _counter("refused_requests", "Requests answered with 429", to)
        self.failed = _counter("failed_requests", "Requests answered with 500", to)
        self._waiting = Gauge(
            "modwatch_waiting_texts", "Texts that wait for their batch", registry=to
        )

    def batch_scored(self, texts: int, subwords: int, seconds: float) -> None:
        """Count a batch."""
        self.batch.observe(texts)
        self.texts.inc(texts)
        self.subwords.inc(subwords)
        self.busy.inc(seconds)

    def watch(self, waiting: Callable[[], int]) -> None:
        """Ask `waiting` for the texts that wait, whenever the metrics are read."""
        self._waiting.set_function(waiting)


def _counter(name: str, meaning: str, registry: CollectorRegistry) -> Counter:
    return Counter(f"modwatch_{name}", meaning, registry=registry)
