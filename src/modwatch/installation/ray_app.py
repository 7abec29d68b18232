"""The model server as an application of Ray Serve: replicas on the nodes of a cluster.

`build` is the import path of `serve run`, of a cluster's configuration file and of KubeRay:

    serve run modwatch.installation.ray_app:build replicas=2 gpus_per_replica=1

Each replica is a whole model server: it follows the alias, keeps versions, makes batches and
refuses what is too much. It reads the settings of its own node.
"""

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from threading import Event, Thread
from typing import Any, Self

import ray
from pydantic import BaseModel, ConfigDict, Field, model_validator
from ray import serve
from ray.serve import Application
from ray.serve._private import replica
from ray.serve.config import RequestRouterConfig
from ray.serve.metrics import Counter, Gauge, Histogram
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from modwatch.common.errors import ModelError, SettingsError
from modwatch.installation.model_server import open_server
from modwatch.installation.resources import open_resources
from modwatch.models.serving.batching import OverloadedError
from modwatch.models.serving.models import ServedModel
from modwatch.models.serving.telemetry import COUNTERS, HISTOGRAMS, WAITING, Telemetry

#: Is answered while the application drains: the process lives.
_LIVE = "/v2/health/live"
_RETRY_SECONDS = "1"
#: A text for the health check; it is no comment.
_PROBE = "Is the model in working order?"
_ROUTER = "modwatch.installation.ray_routing.AnyNodeRouter"
#: A comment in the same batch may be what fails; the next batch has others.
_PROBES = 2
_PROBE_SECONDS = 0.5
#: For a health check, in which a batch is scored: some seconds on a slow CPU.
_CHECK_SECONDS = 60.0

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


class Admission:
    """An ASGI application that hands requests to another until it drains.

    While it drains, new requests are answered with 503 and `Retry-After`, and those that it had
    taken before are answered.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._taken = 0
        self._draining = False
        self._idle = asyncio.Event()
        self._idle.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif self._draining and scope["path"] != _LIVE:
            error = {"error": "the server shuts down; send the request again"}
            headers = {"Retry-After": _RETRY_SECONDS}
            await JSONResponse(error, 503, headers=headers)(scope, receive, send)
        else:
            self._taken += 1
            self._idle.clear()
            try:
                await self._app(scope, receive, send)
            finally:
                self._taken -= 1
                if not self._taken:
                    self._idle.set()

    async def drain(self) -> None:
        """Take no more requests; return when all that were taken are answered."""
        self._draining = True
        await self._idle.wait()


class RayOptions(BaseModel):
    """How many replicas there are, and what each may use.

    >>> RayOptions(replicas=4, max_replicas=2)
    Traceback (most recent call last):
        ...
    pydantic_core._pydantic_core.ValidationError: 1 validation error for RayOptions
      Value error, max_replicas (2) must be at least replicas (4) ...
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    replicas: int = Field(default=1, ge=1, description="replicas, or the fewest with max_replicas")
    max_replicas: int | None = Field(
        default=None, ge=1, description="the most replicas that autoscaling starts; default: none"
    )
    target_ongoing_requests: float = Field(
        default=4.0, gt=0, description="requests per replica that autoscaling aims at"
    )
    cpus_per_replica: float = Field(
        default=1.0, ge=0, description="CPUs that a replica reserves; see MODWATCH_TORCH_THREADS"
    )
    gpus_per_replica: float = Field(
        default=0.0, ge=0, description="GPUs of a replica: a share below 1, or a whole number"
    )
    max_replicas_per_node: int | None = Field(
        default=None, ge=1, le=100, description="the most replicas on a node; default: no limit"
    )
    max_ongoing_requests: int = Field(
        default=256, ge=1, description="requests at a time in a replica; others wait at the proxy"
    )
    drain_seconds: float = Field(
        default=60.0, gt=0, description="time for running requests when a replica is stopped"
    )
    health_check_seconds: float = Field(
        default=10.0, gt=0, description="time between two health checks of a replica"
    )
    require_token: bool = Field(
        default=True, description="refuse to start without MODWATCH_SCORER_TOKEN"
    )

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.max_replicas is not None and self.max_replicas < self.replicas:
            raise ValueError(
                f"max_replicas ({self.max_replicas}) must be at least replicas ({self.replicas})"
            )
        if self.gpus_per_replica > 1 and not self.gpus_per_replica.is_integer():
            raise ValueError(
                f"gpus_per_replica ({self.gpus_per_replica:g}) must be a whole number above 1"
            )
        if self.target_ongoing_requests > self.max_ongoing_requests:
            raise ValueError(
                f"target_ongoing_requests ({self.target_ongoing_requests:g}) must be at most "
                f"max_ongoing_requests ({self.max_ongoing_requests})"
            )
        return self


class ModelReplica:
    """A replica: the application of the one-process server, in a process of Ray's.

    It is ready when the champion is loaded.
    """

    def __init__(self, options: RayOptions) -> None:
        self._options = options
        self._exit = ExitStack()
        self._admission: Admission
        self._model: ServedModel
        self._telemetry: Telemetry
        #: At the last health check.
        self._batches = 0

    async def __serve_build_asgi_app__(self) -> Admission:
        """Load the champion; return the application.

        Raises:
            ModwatchError: there is no champion, or it cannot be loaded.
            SettingsError: a setting is invalid, or there is no token.
        """
        _listen_on_node()
        resources = self._exit.enter_context(open_resources())
        if self._options.require_token and resources.settings.scorer_token is None:
            raise SettingsError(
                "MODWATCH_SCORER_TOKEN is not set on this node; set it on all nodes, or "
                "require_token to false where only this machine can reach the proxies"
            )
        telemetry = RayTelemetry()
        self._exit.callback(telemetry.close)
        self._model, app = open_server(resources, telemetry)
        await self._model.refresh()
        self._telemetry, self._admission = telemetry, Admission(app)
        return self._admission

    async def check_health(self) -> None:
        """Return if the model has scored since the last call, or scores now.

        Ray replaces a replica in which this fails, or takes too long, three times in a row.

        Raises:
            ModelError: the model does not score.
        """
        before, self._batches = self._batches, self._telemetry.batches
        if self._batches > before:
            return
        probing = asyncio.create_task(self._probe())
        try:
            # Behind many requests the probe waits, while they are scored.
            while not probing.done() and self._telemetry.batches == self._batches:
                await asyncio.wait([probing], timeout=_PROBE_SECONDS)
            if probing.done():
                probing.result()
        finally:
            probing.cancel()

    async def _probe(self) -> None:
        _, batcher = await self._model.get(None)
        failures = list[str]()
        for _ in range(_PROBES):
            try:
                await batcher.score([_PROBE])
            except OverloadedError:  # behind many requests, likewise
                await asyncio.Future()
            except Exception as exc:  # noqa: BLE001 - its words may quote a comment of the batch
                failures.append(type(exc).__name__)
            else:
                return
        raise ModelError(f"the model fails to score: {', '.join(failures)}")

    async def drain(self) -> None:
        """Take no more requests; return when all that were taken are answered."""
        await self._admission.drain()

    def __del__(self) -> None:
        """Close what was opened; Ray has ended the application before."""
        self._exit.close()


def _listen_on_node() -> None:
    """Let the replica's gRPC server listen on the address of its node alone.

    Ray 2.60 opens it on all interfaces, and there is no option for it.
    """
    address, add_port = ray.util.get_node_ip_address(), replica.add_port_to_grpc_server
    host = f"[{address}]" if ":" in address else address

    def on_node(server: Any, wanted: str) -> int:
        return int(add_port(server, wanted.replace("[::]", host)))

    replica.add_port_to_grpc_server = on_node


def build(options: RayOptions) -> Application:
    """Return the application; the fields of `options` are its arguments in a configuration."""
    placement = {"num_cpus": options.cpus_per_replica, "num_gpus": options.gpus_per_replica}
    deployment = serve.deployment(
        serve.ingress()(ModelReplica),
        name="model",
        ray_actor_options=placement,
        max_replicas_per_node=options.max_replicas_per_node,
        max_ongoing_requests=options.max_ongoing_requests,
        graceful_shutdown_timeout_s=options.drain_seconds,
        health_check_period_s=options.health_check_seconds,
        health_check_timeout_s=_CHECK_SECONDS,
        logging_config={"enable_access_log": False},
        request_router_config=RequestRouterConfig(request_router_class=_ROUTER),
        **_number_of_replicas(options),
    )
    return deployment.bind(options)


def _number_of_replicas(options: RayOptions) -> dict[str, Any]:
    if options.max_replicas is None:
        return {"num_replicas": options.replicas}
    scaling = {
        "min_replicas": options.replicas,
        "initial_replicas": options.replicas,
        "max_replicas": options.max_replicas,
        "target_ongoing_requests": options.target_ongoing_requests,
    }
    return {"autoscaling_config": scaling}
