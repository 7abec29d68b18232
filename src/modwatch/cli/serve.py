"""`modwatch serve` and `modwatch profile-scorer`: the scorer of this installation."""

import argparse
import ipaddress
from pathlib import Path
from typing import Any

from modwatch.cli.arguments import add_command, day, open_resources
from modwatch.errors import ModelError, SettingsError


def add_scorer(commands: Any) -> None:
    """Add the commands."""
    text = "serve the model to scoring tasks, over HTTP"
    serve = add_command(commands, "serve", _serve, text)
    serve.add_argument("--host", default="127.0.0.1", help="address; default: 127.0.0.1")
    serve.add_argument("--port", type=int, default=8095, help="default: 8095")

    text = "measure how fast the champion scores, and where its time goes"
    profile = add_command(commands, "profile-scorer", _profile, text)
    profile.add_argument(
        "--day", type=day, help="whose comments, YYYY-MM-DD, UTC; default: the last in the lake"
    )
    profile.add_argument("--comments", type=int, default=2_000, help="at most; default: 2000")
    profile.add_argument("--html", type=Path, help="write a page with a roofline picture here")


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


def _profile(options: argparse.Namespace) -> None:
    """Profile the champion on this machine, in process, with comments of the lake."""
    from modwatch.scoring.local import LocalScorer
    from modwatch.scoring.profiling import profile

    with open_resources() as at:
        wanted = options.day or max(at.lake.days("comments"), default=None)
        texts = list[str]()
        batches = at.lake.read("comments", wanted, columns=["text"]) if wanted else ()
        for batch in batches:
            texts += batch.column("text").to_pylist()[: options.comments - len(texts)]
        scorer = at.local_scorer(at.champion_version())
        if not isinstance(scorer, LocalScorer):
            raise ModelError("only models that Modwatch trained can be profiled")
        found = profile(scorer, texts)
    print("\n".join(found.lines()))
    if options.html is not None:
        from modwatch.scoring.profile_page import profile_page

        options.html.write_text(profile_page(found), "utf-8")
        print(f"page: {options.html}")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
