"""`modwatch train`, `model …` and `serve`."""

import logging
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from modwatch.cli.arguments import (
    RECIPE,
    Group,
    Several,
    Variadic,
    columns,
    number_between,
    options,
    vocabulary,
    with_resources,
)
from modwatch.common.addresses import is_loopback
from modwatch.common.errors import SettingsError
from modwatch.common.installed import plugins

if TYPE_CHECKING:
    from modwatch.installation.resources import Resources

#: Options of --replicas: the fields of `installation.ray_app.RayOptions`, and two more.
_RAY: dict[str, tuple[type, str]] = {
    "max_replicas": (int, "Replicas under load; default: as --replicas."),
    "cpus_per_replica": (float, "CPUs that a replica reserves; default: 1."),
    "gpus_per_replica": (float, "GPUs of a replica, or a share of one; default: 0."),
    "max_replicas_per_node": (int, "Replicas on a node; default: no limit."),
    "metrics_port": (int, "Port of Ray's metrics, on loopback; default: 8096."),
    "address": (str, "A Ray cluster; default: RAY_ADDRESS, or start Ray here."),
}


@click.command(cls=Variadic)
@click.option(
    "--data",
    cls=Several,
    metavar="SOURCE…",
    help="CSV, TSV, JSON lines or Parquet files; or a database URL; or reviewed: what your "
    f"moderators labelled; or one of {', '.join(plugins('modwatch.training_data'))}; "
    "default: MODWATCH_TRAINING_DATA.",
)
@columns("text", "label", "id", "language")
@click.option(
    "--votes",
    cls=Several,
    metavar="COLUMN…",
    help="Columns of single votes instead; twice counts twice.",
)
@vocabulary
@options(
    query=(str, "SELECT for a database URL."),
    encoding=(str, "Encoding of text files, such as cp1252; default: UTF-8."),
    report_only=(bool, "Print the data report and do not train."),
)
@RECIPE
@click.option("--seed", type=int, default=0)
@click.option(
    "--alias",
    type=click.Choice(["champion", "challenger", "none"]),
    default="champion",
    help="Alias of the new version.",
)
@with_resources
def train(
    resources: "Resources",
    *,
    data: tuple[str, ...],
    column: dict[str, str],
    seed: int,
    alias: str,
    report_only: bool,
    recipe: Path | None,
    **form: Any,
) -> None:
    """Train a model and make it the champion.

    The columns are text and label by default. A label is 0, 1, a share of toxic labels, or a list
    of votes. Rows with the same id are votes on one comment. Languages are for the data report.
    """
    from modwatch.models.progress import TrainingProgress
    from modwatch.models.recipe import read_recipe
    from modwatch.pipeline import model

    made = read_recipe(recipe)
    with TrainingProgress(partial(print, flush=True)) as progress:
        with progress.phase("reading"):
            names = {"text": "text", "label": "label", "id": None, "language": None} | column
            form |= {f"{name}_column": of for name, of in names.items()}
            corpus = model.corpus(resources, {"data": data, **form})
        with progress.phase("data report"):
            report = model.report(resources, corpus)
        progress.say("\n".join(report.lines()))
        if report_only:
            return
        version = model.train(
            resources,
            corpus,
            recipe=made,
            seed=seed,
            report=report,
            progress=progress,
        )
    _announce(resources, version, alias)


def _announce(resources: "Resources", version: str, alias: str) -> None:
    """Set the alias of a new version, unless it is none, and print it."""
    from modwatch.pipeline import model

    if alias != "none":
        model.set_alias(resources, version, alias)
    name = resources.registry.name
    print(f"version {version} of {name}" + f" is the {alias}" * (alias != "none"))


@click.group(cls=Group)
def model() -> None:
    """Choose which model scores."""


@model.command()
@click.argument("model", metavar="NAME|FOLDER")
@options(
    threshold=(number_between(0, 1), "Flag comments above it; default: 0.5."),
    positive_class=(str, "Class of toxic comments; default: as the names of the classes tell."),
)
@click.option("--alias", type=click.Choice(["champion", "challenger", "none"]), default="champion")
@with_resources
def register(resources: "Resources", *, model: str, alias: str, **stated: Any) -> None:
    """Register a classifier of the Hugging Face hub, or in a folder, as it is."""
    from modwatch.pipeline import model as path

    version = path.register(resources, model, **stated)
    _announce(resources, version, alias)


@model.command()
@click.argument("version")
@click.option("--alias", type=click.Choice(["champion", "challenger"]), default="champion")
@with_resources
def promote(resources: "Resources", *, version: str, alias: str) -> None:
    """Set the alias of a version, or of `previous`: the champion before this one."""
    from modwatch.pipeline import model

    print(f"version {model.set_alias(resources, version, alias)} is the {alias}")


@click.command()
@click.option("--host", default="127.0.0.1")
@click.option("--port", type=int, default=8095)
@click.option(
    "--replicas",
    type=int,
    help="Number of replicas with Ray Serve, on this machine or a cluster; default: one process, "
    "without Ray. The options below need it.",
)
@options(**_RAY)
@with_resources
def serve(
    resources: "Resources",
    *,
    host: str,
    port: int,
    replicas: int | None,
    **ray: Any,
) -> None:
    """Serve the champion, and the versions that days were planned with, to scoring tasks."""
    if resources.settings.scorer_token is None and not is_loopback(host):
        raise SettingsError(
            f"{host} can be reached by other machines; set MODWATCH_SCORER_TOKEN, here and for the "
            "scoring tasks"
        )
    logging.getLogger("modwatch").setLevel(logging.INFO)
    given = {name: value for name, value in ray.items() if value is not None}
    if replicas is not None:
        _serve_replicas(resources, host, port, {"replicas": replicas, **given})
        return
    if given:
        raise SettingsError(
            f"--{next(iter(given)).replace('_', '-')} is an option of --replicas; set both"
        )
    from modwatch.installation.model_server import open_server, serve
    from modwatch.models.serving.telemetry import ProcessTelemetry

    serve(host, port, *open_server(resources, ProcessTelemetry()))


def _serve_replicas(resources: "Resources", host: str, port: int, options: dict[str, Any]) -> None:
    """Serve as replicas on Ray."""
    from pydantic import ValidationError

    from modwatch.installation.model_server import prepare_ray

    address = options.pop("address", os.environ.get("RAY_ADDRESS"))
    prepare_ray(address)
    from modwatch.installation.ray_app import RayOptions
    from modwatch.installation.ray_server import serve_replicas

    metrics_port = options.pop("metrics_port", 8096)
    needs_token = resources.settings.scorer_token is not None
    try:
        replicas = RayOptions(**options, require_token=needs_token)
    except ValidationError as exc:
        faults = [f"{'.'.join(map(str, fault['loc']))} {fault['msg']}" for fault in exc.errors()]
        raise SettingsError(f"impossible replicas: {'; '.join(faults).strip()}") from exc
    resources.registry.champion_version()  # raises before Ray starts if there is none
    serve_replicas(replicas, host=host, port=port, metrics_port=metrics_port, address=address)
