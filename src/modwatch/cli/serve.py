"""`modwatch serve`: the model server of this installation."""

import argparse
import ipaddress
import logging
import os
from typing import TYPE_CHECKING, Any

from modwatch.cli.arguments import add_command, open_resources
from modwatch.common.errors import SettingsError

if TYPE_CHECKING:
    from modwatch.installation.resources import Resources

_METRICS_PORT = 8096
#: Options of `serving.ray_app.RayOptions`: type and help.
_RAY: dict[str, tuple[type, str]] = {
    "max_replicas": (int, "replicas under load; default: as --replicas"),
    "target_ongoing_requests": (float, "requests per replica that --max-replicas aims at"),
    "cpus_per_replica": (float, "CPUs that each replica reserves; default: 1"),
    "gpus_per_replica": (float, "GPUs of each replica, or a share of one; default: 0"),
    "max_replicas_per_node": (int, "replicas on a node; default: no limit"),
    "max_ongoing_requests": (int, "requests at a time in each replica; default: 256"),
    "drain_seconds": (float, "time for running requests at the end; default: 60"),
}


def add_scorer(commands: Any) -> None:
    """Add the commands."""
    text = "serve the model to scoring tasks, over HTTP"
    serve = add_command(commands, "serve", _serve, text)
    serve.add_argument("--host", default="127.0.0.1", help="address; default: 127.0.0.1")
    serve.add_argument("--port", type=int, default=8095, help="default: 8095")
    ray = serve.add_argument_group("replicas", "with Ray Serve, on this machine or a cluster")
    ray.add_argument(
        "--replicas", type=int, help="number of replicas; default: one process, without Ray"
    )
    for name, (kind, text) in _RAY.items():
        ray.add_argument(f"--{name.replace('_', '-')}", type=kind, help=text)
    ray.add_argument(
        "--metrics-port", type=int, help="where Ray shows metrics, on loopback; default: 8096"
    )
    ray.add_argument("--address", help="a Ray cluster; default: RAY_ADDRESS, or start Ray here")


def _serve(options: argparse.Namespace) -> None:
    """Serve the champion, and the versions that days were planned with."""
    with open_resources() as at:
        if at.settings.scorer_token is None and not _is_loopback(options.host):
            raise SettingsError(
                f"{options.host} can be reached by other machines; set MODWATCH_SCORER_TOKEN, here "
                "and for the scoring tasks"
            )
        logging.getLogger("modwatch").setLevel(logging.INFO)
        if options.replicas is None:
            _serve_here(options, at)
        else:
            _serve_replicas(options, at)


def _serve_here(options: argparse.Namespace, at: "Resources") -> None:
    """Serve as this process."""
    from modwatch.installation.model_server import open_server, serve
    from modwatch.models.serving.telemetry import ProcessTelemetry

    given = [
        name for name in (*_RAY, "metrics_port", "address") if getattr(options, name) is not None
    ]
    if given:
        raise SettingsError(f"--{given[0].replace('_', '-')} is an option of --replicas; set both")
    serve(options.host, options.port, open_server(at, ProcessTelemetry()))


def _serve_replicas(options: argparse.Namespace, at: "Resources") -> None:
    """Serve as replicas on Ray."""
    from pydantic import ValidationError

    from modwatch.installation.model_server import prepare_ray

    address = options.address or os.environ.get("RAY_ADDRESS")
    prepare_ray(address)
    from modwatch.installation.ray_app import RayOptions
    from modwatch.installation.ray_server import serve_replicas

    given = {name: getattr(options, name) for name in ("replicas", *_RAY)}
    chosen = {name: value for name, value in given.items() if value is not None}
    try:
        replicas = RayOptions(**chosen, require_token=at.settings.scorer_token is not None)
    except ValidationError as exc:
        faults = [f"{'.'.join(map(str, each['loc']))} {each['msg']}" for each in exc.errors()]
        raise SettingsError(f"impossible replicas: {'; '.join(faults).strip()}") from exc
    at.champion_version()  # there is one, or its absence is told before Ray starts
    serve_replicas(
        replicas,
        host=options.host,
        port=options.port,
        metrics_port=options.metrics_port or _METRICS_PORT,
        address=address,
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
