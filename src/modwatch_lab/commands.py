"""`modwatch demo` and `modwatch benchmark cotomod`."""

from pathlib import Path
from typing import Any

import click

from modwatch.cli.arguments import (
    PATH,
    RECIPE,
    Group,
    Several,
    Variadic,
    number_between,
    options,
)


@click.command()
@click.option("--data", default="synthetic", help="synthetic, wikipedia_talk or civil_comments.")
@RECIPE
@click.option(
    "--scorer",
    type=click.Choice(["local", "serve"]),
    default="local",
    help="Score in the tasks (local) or with a model server (serve).",
)
@click.option(
    "--error-rates",
    type=number_between(0, 1),
    nargs=2,
    metavar="FALSE_POSITIVE FALSE_NEGATIVE",
    help="Error rates of the simulated moderators; default: 0.2 to 1.5 % and 2 to 8 %.",
)
@click.option("--drift", is_flag=True, help="Change the synthetic community in the second week.")
@click.option("--once", is_flag=True, help="Stop everything at the end.")
def demo(data: str, **changes: Any) -> int:
    """Run the whole system with simulated moderators on this machine."""
    from modwatch_lab.demo.run import run_demo

    return run_demo(data, **changes)


@click.group(cls=Group)
def benchmark() -> None:
    """Run the benchmarks of published papers."""


@benchmark.command(cls=Variadic)
@click.option(
    "--data",
    type=click.Choice(["published", "synthetic"]),
    default="published",
    help="Published research data, or the synthetic community, which needs none.",
)
@options(
    wikipedia=(PATH, "Folder of the Jigsaw challenge of 2018: train, test and test_labels.csv."),
    civil_comments=(PATH, "The complete CivilComments: train.csv or all_data.csv."),
    train_examples=(int, "Comments to draw; default: all."),
    test_examples=(int, "Comments to draw per test; default: all."),
)
@click.option(
    "--methods",
    cls=Several,
    metavar="METHOD…",
    help="Of deterministic, mc_dropout, ensemble, sngp, sngp_ensemble; default: all.",
)
@click.option(
    "--losses", cls=Several, metavar="LOSS…", help="Of cross_entropy, focal; default: both."
)
@click.option("--seeds", cls=Several, type=int, default=[0, 1, 2], metavar="SEED…")
@RECIPE
@click.option("--device", default="auto", help="auto, cpu, cuda or cuda:n.")
@click.option(
    "--output", type=PATH, default=Path("cotomod"), help="Folder of scores, results and report."
)
def cotomod(
    methods: tuple[Any, ...],
    losses: tuple[Any, ...],
    seeds: tuple[int, ...],
    recipe: Path | None,
    device: str,
    output: Path,
    **options: Any,
) -> None:
    """Train and compare the uncertainty methods of Kivlichan et al. (2021).

    They are compared in domain and out of domain. An interrupted run continues when it is started
    again.
    """
    from modwatch.models.devices import devices_of
    from modwatch.models.recipe import LOSSES, METHODS, read_recipe
    from modwatch_lab.benchmark import run_cotomod
    from modwatch_lab.benchmark.corpora import benchmark_data

    def say(text: str) -> None:
        print(text, flush=True)

    made = read_recipe(recipe)
    devices = devices_of(device)
    say("reading the comments, and comparing those for training with those for tests")
    data = benchmark_data(options.pop("data"), **options)
    found = run_cotomod(
        data,
        made,
        output,
        methods=methods or METHODS,
        losses=losses or LOSSES,
        seeds=seeds,
        devices=devices,
        say=say,
    )
    say("\n".join(found["sentences"]))
