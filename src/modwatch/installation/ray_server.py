"""Replicas of the model server on Ray: on this machine alone, or on a cluster that runs.

Call `model_server.prepare_ray` before this module is imported.
"""

import logging
import os
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import ray
from ray import serve
from ray.exceptions import RayError
from ray.serve.exceptions import RayServeException
from ray.serve.schema import ApplicationStatus, ApplicationStatusOverview

from modwatch.common.connections import listen
from modwatch.common.errors import ModelError, SettingsError, StackError
from modwatch.common.signals import signals_held
from modwatch.installation.ray_app import RayOptions, build

logger = logging.getLogger(__name__)

#: Of the application on the cluster.
APPLICATION = "modwatch"
#: Time in which a response that is complete leaves the proxy.
_FLUSH_SECONDS = 1.0
#: Between two looks at the signals, and at the application.
_POLL_SECONDS, _WATCH_SECONDS = 0.2, 5.0
_ENDS = (signal.SIGTERM, signal.SIGINT)


def serve_replicas(
    options: RayOptions, *, host: str, port: int, metrics_port: int, address: str | None
) -> None:
    """Serve replicas behind a proxy at `host` and `port` until SIGTERM or SIGINT.

    `address` is that of a cluster that runs, or `auto`; None: start Ray on this machine alone, with
    its metrics at `metrics_port` on the loopback interface.
    The proxy runs on the head node. A replica gets requests when it has loaded the current version.
    At the signal, running requests finish and new ones are answered with 503;
    then what was started here is stopped, and the process ends with that signal.

    Raises:
        SettingsError: this machine is too small for the replicas, or the cluster serves other
            applications.
        ModelError: a replica cannot be started.
        StackError: there is no cluster at `address`, or it has stopped; or a port is taken.
    """
    handlers = {end: signal.getsignal(end) for end in _ENDS}
    if address is None:
        for place in ((host, port), ("127.0.0.1", metrics_port)):
            listen(*place, program="the model server").close()
    with _connected(address, metrics_port) as connection:
        if address is None:
            _check_room(options)
        _check_alone()
        for end, handler in handlers.items():  # Ray has set its own
            signal.signal(end, handler)
        with signals_held() as came:
            try:
                _start(options, host, port)
                if _started(came):
                    _watch(came)
                    _drain(options.drain_seconds)
            finally:
                _stop(connection)


@contextmanager
def _connected(address: str | None, metrics_port: int) -> Iterator[ExitStack]:
    """Connect to a cluster, or start Ray on this machine; what is yielded ends that."""
    with ExitStack() as exits:
        where: dict[str, Any] = {"address": address}
        if address is None:
            # Ray writes sockets, logs and, when its memory is full, comments below its folder, and
            # opens it to all users: so there is one of mode 0700 around it, removed at the end.
            top = os.environ.get("RAY_TMPDIR")
            folder = tempfile.TemporaryDirectory(prefix="ray-", dir=top, ignore_cleanup_errors=True)
            where = {
                "address": "local",
                "include_dashboard": False,
                "_node_ip_address": "127.0.0.1",
                "_metrics_export_port": metrics_port,
                "_temp_dir": f"{exits.enter_context(folder)}/ray",
            }
        try:
            ray.init(**where, namespace=APPLICATION, logging_level=logging.WARNING)
        except (ConnectionError, RuntimeError, ValueError) as exc:
            place = "start on this machine" if address is None else f"be reached at {address}"
            raise StackError(f"Ray cannot {place}: {str(exc).splitlines()[0]}") from exc
        exits.callback(ray.shutdown)
        yield exits


def _check_room(options: RayOptions) -> None:
    """Raise SettingsError unless this machine has room for the replicas: they would wait for ever.

    A cluster may add nodes.
    """
    for kind, wanted in (("CPU", options.cpus_per_replica), ("GPU", options.gpus_per_replica)):
        there = ray.cluster_resources().get(kind, 0.0)
        if options.replicas * wanted > there:
            raise SettingsError(
                f"{options.replicas} replicas with {wanted:g} {kind} each are too many for this "
                f"machine, which has {there:g}; set a lower --replicas or "
                f"--{kind.lower()}s-per-replica, or --address to a cluster"
            )


def _check_alone() -> None:
    """Raise SettingsError if the cluster serves other applications: they would be stopped, too."""
    if set(serve.status().applications) - {APPLICATION}:
        raise SettingsError(
            "the cluster serves other applications; add modwatch.installation.ray_app:build to "
            "their configuration and use `serve deploy`"
        )


def _start(options: RayOptions, host: str, port: int) -> None:
    """Start the proxy, and begin to start the replicas."""
    target = serve.RunTarget(build(options), name=APPLICATION)
    try:
        serve.start(
            proxy_location="HeadOnly",
            http_options={"host": host, "port": port},
            logging_config={"enable_access_log": False},
        )
        serve.run_many([target], wait_for_applications_running=False)
    except (RayError, RayServeException, RuntimeError) as exc:
        raise StackError(f"Ray Serve cannot start: {exc}") from exc


def _started(came: Sequence[int]) -> bool:
    """Return True when all replicas are ready, or False when a signal has come.

    Raises:
        ModelError: a replica fails to start.
    """
    while not came:
        application = _application()
        if application.status is ApplicationStatus.RUNNING:
            logger.info("The replicas are ready.", extra={"event": "replicas_ready"})
            return True
        if application.status in (ApplicationStatus.DEPLOY_FAILED, ApplicationStatus.UNHEALTHY):
            reasons = [deployment.message for deployment in application.deployments.values()]
            lines = "\n".join([*reasons, application.message]).strip().splitlines()
            error = next((line for line in lines if line.startswith("modwatch.")), lines[-1])
            raise ModelError(f"the replicas cannot start: {error.strip()}")
        time.sleep(_POLL_SECONDS)
    return False


def _watch(came: Sequence[int]) -> None:
    """Return when a signal has come.

    Raises:
        StackError: Ray has stopped.
    """
    looked, status = time.monotonic(), ApplicationStatus.RUNNING
    while not came:
        time.sleep(_POLL_SECONDS)
        if time.monotonic() - looked < _WATCH_SECONDS:
            continue
        before, looked = status, time.monotonic()
        status = _application().status
        if status is not before:
            logger.warning(
                "The replicas are %s.", status.value, extra={"event": "replicas_changed"}
            )


def _application() -> ApplicationStatusOverview:
    """Return what the cluster knows of the application; raises StackError when it has stopped."""
    try:
        return serve.status().applications[APPLICATION]
    except (RayError, RayServeException, KeyError) as exc:
        raise StackError("Ray has stopped; start the model server again") from exc


def _drain(seconds: float) -> None:
    """Let every replica answer what it has taken, and take no more."""
    answers = serve.get_app_handle(APPLICATION).broadcast("drain")
    try:
        answers.results(timeout_s=seconds)
    except (TimeoutError, RayError) as exc:
        logger.warning(
            "Not all running requests have finished: %s.",
            type(exc).__name__,
            extra={"event": "drain_incomplete"},
        )
    time.sleep(_FLUSH_SECONDS)


def _stop(connection: ExitStack) -> None:
    """Stop the proxy and the replicas, and Ray if it was started here."""
    with suppress(RayError, RayServeException):  # it may have stopped by itself
        serve.shutdown()
    connection.close()  # now: a signal that has come may end the process before `with` does
