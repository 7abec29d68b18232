"""Metrics of a replica, in Ray's registry, which each node exports for all of its replicas."""

from collections.abc import Callable
from threading import Event, Thread

from ray.serve.metrics import Counter, Gauge, Histogram

from modwatch.models.serving.telemetry import COUNTERS, HISTOGRAMS, WAITING, Telemetry

#: Between two reports of the waiting texts; a gauge that is not reported is not exported.
_SECONDS = 1.0


class RayTelemetry(Telemetry):
    """The metrics of this replica; Ray adds the tags `application`, `deployment` and `replica`.

    Ray's exporters show them with the prefix `ray_`.
    """

    def __init__(self) -> None:
        self._histograms = {
            name: Histogram(name, meaning, boundaries=list(buckets))
            for name, (meaning, buckets) in HISTOGRAMS.items()
        }
        self._counters = {name: Counter(name, meaning) for name, meaning in COUNTERS.items()}
        self._waiting = Gauge(*WAITING)
        self._closed = Event()

    def watch(self, waiting: Callable[[], int]) -> None:
        """Ask `waiting` every second, until `close`."""

        def report() -> None:
            while not self._closed.is_set():
                self._waiting.set(waiting())
                self._closed.wait(_SECONDS)

        Thread(target=report, name="waiting-texts", daemon=True).start()

    def close(self) -> None:
        """Report the waiting texts no more."""
        self._closed.set()

    def page(self) -> None:
        """There is none: the proxy would show the metrics of any one replica."""

    def _observe(self, name: str, value: float) -> None:
        self._histograms[name].observe(value)

    def _count(self, name: str, value: float) -> None:
        if value > 0:  # Ray accepts no other
            self._counters[name].inc(value)
