"""Metrics of a model server; no texts and no ids."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_TEXTS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000)
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

#: Meaning and upper bounds of the buckets, by name.
HISTOGRAMS: Final = {
    "modwatch_infer_seconds": ("Seconds from a request to its response", _SECONDS),
    "modwatch_batch_texts": ("Texts that were scored together", _TEXTS),
}
#: Meaning by name, to which exporters append `_total`.
COUNTERS: Final = {
    "modwatch_scoring_seconds": "Seconds in which the model computed",
    "modwatch_texts": "Texts that were scored",
    "modwatch_subwords": "Subwords that were scored",
    "modwatch_refused_requests": "Requests answered with 429",
    "modwatch_failed_requests": "Requests answered with 500",
}
WAITING: Final = ("modwatch_waiting_texts", "Texts that wait for their batch")


class Telemetry(ABC):
    """What a model server counts; a subclass says where."""

    #: Batches that were scored.
    batches = 0
    #: By name; of prometheus_client, or of Ray.
    _histograms: Mapping[str, Any]
    _counters: Mapping[str, Any]

    def answered(self, seconds: float) -> None:
        """Count a request that was answered, `seconds` after it came."""
        self._observe("modwatch_infer_seconds", seconds)

    def refused(self) -> None:
        """Count a request that was answered with 429."""
        self._count("modwatch_refused_requests", 1)

    def failed(self) -> None:
        """Count a request that was answered with 500."""
        self._count("modwatch_failed_requests", 1)

    def batch_scored(self, texts: int, subwords: int, seconds: float) -> None:
        """Count a batch."""
        self.batches += 1
        self._observe("modwatch_batch_texts", texts)
        self._count("modwatch_texts", texts)
        self._count("modwatch_subwords", subwords)
        self._count("modwatch_scoring_seconds", seconds)

    @abstractmethod
    def watch(self, waiting: Callable[[], int]) -> None:
        """Report the texts that wait, which `waiting` returns."""

    @abstractmethod
    def page(self) -> bytes | None:
        """Return all metrics in Prometheus' format; None: they are read elsewhere."""

    def _observe(self, name: str, value: float) -> None:
        self._histograms[name].observe(value)

    def _count(self, name: str, value: float) -> None:
        if value > 0:  # Ray accepts no other
            self._counters[name].inc(value)


class ProcessTelemetry(Telemetry):
    """The metrics of one process, on its page `/metrics`."""

    def __init__(self) -> None:
        to = self._registry = CollectorRegistry()
        self._histograms = {
            name: Histogram(name, meaning, buckets=buckets, registry=to)
            for name, (meaning, buckets) in HISTOGRAMS.items()
        }
        self._counters = {
            name: Counter(name, meaning, registry=to) for name, meaning in COUNTERS.items()
        }
        self._waiting = Gauge(*WAITING, registry=to)

    def watch(self, waiting: Callable[[], int]) -> None:
        """Ask `waiting` whenever the metrics are read."""
        self._waiting.set_function(waiting)

    def page(self) -> bytes:
        """Return all metrics in Prometheus' format."""
        return generate_latest(self._registry)
