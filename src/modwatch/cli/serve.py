"""`modwatch serve`: the model server of this installation."""

import argparse
import ipaddress
from typing import Any

from modwatch.cli.arguments import add_command, open_resources
from modwatch.errors import SettingsError


def add_serve(commands: Any) -> None:
    """Add the command."""
    text = "serve the model to scoring tasks, over HTTP"
    serve = add_command(commands, "serve", _serve, text)
    serve.add_argument("--host", default="127.0.0.1", help="address; default: 127.0.0.1")
    serve.add_argument("--port", type=int, default=8095, help="default: 8095")


def _serve(options: argparse.Namespace) -> None:
    """Serve the champion, and the versions that days were planned with."""
    from modwatch.serving.models import ServedModel
    from modwatch.serving.server import serve
    from modwatch.serving.telemetry import Telemetry

    with open_resources() as at:
        token = at.settings.scorer_token
        if token is None and not _is_loopback(options.host):
            raise SettingsError(
                f"{options.host} can be reached by other machines; set MODWATCH_SCORER_TOKEN, here "
                "and for the scoring tasks"
            )
        telemetry = Telemetry()
        model = ServedModel(
            at.settings.model_name,
            current=at.champion_version,
            open_version=at.local_scorer,
            report=telemetry.batch_scored,
        )
        telemetry.watch(lambda: model.waiting)
        secret = None if token is None else token.get_secret_value()
        serve(options.host, options.port, model, telemetry, token=secret)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
