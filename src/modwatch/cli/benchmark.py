"""The command of benchmarks: `modwatch benchmark cotomod`."""

import argparse
from pathlib import Path
from typing import Any

from modwatch.cli.arguments import add_command
from modwatch.cli.models import add_recipe_options

#: Hyperparameters that may be changed for all runs; the defaults are those of the recipe.
_RECIPE = (
    "encoder", "members", "passes", "focal_gamma", "epochs", "batch_size", "batch_tokens",
    "accumulation", "learning_rate", "max_length", "max_steps", "patience",
)  # fmt: skip


def add_commands(commands: Any) -> None:
    """Add `benchmark cotomod`."""
    parser = add_command(
        commands,
        "cotomod",
        _cotomod,
        "train the uncertainty methods of Kivlichan et al. (2021), and compare them, in domain and "
        "out of domain; run again, it goes on where it was",
    )
    data = parser.add_argument_group("data")
    data.add_argument(
        "--data",
        choices=("published", "synthetic"),
        default="published",
        help="published research data (default), or the synthetic community, which needs no data",
    )
    data.add_argument(
        "--data-folder", type=Path, help="of the published data; default: that of MODWATCH_DATA"
    )
    data.add_argument(
        "--wikipedia",
        type=Path,
        metavar="FOLDER",
        help="the complete Jigsaw challenge of 2018: train.csv, test.csv and test_labels.csv",
    )
    data.add_argument(
        "--civil-comments",
        type=Path,
        metavar="FILE",
        help="the complete CivilComments: train.csv or all_data.csv",
    )
    data.add_argument("--train-examples", type=int, help="comments to draw; default: all")
    data.add_argument("--test-examples", type=int, help="comments to draw a test; default: all")
    runs = parser.add_argument_group("runs")
    runs.add_argument(
        "--methods",
        nargs="+",
        metavar="METHOD",
        help="of deterministic, mc_dropout, ensemble, sngp, sngp_ensemble; default: all",
    )
    runs.add_argument(
        "--losses", nargs="+", metavar="LOSS", help="of cross_entropy, focal; default: both"
    )
    runs.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2], help="default: 0 1 2")
    add_recipe_options(parser.add_argument_group("recipe"), _RECIPE)
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:n; default: auto")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("cotomod"),
        help="folder of scores, results and report; default: cotomod",
    )


def _cotomod(options: argparse.Namespace) -> None:
    from modwatch.demo.benchmark import run_cotomod
    from modwatch.demo.benchmark.corpora import benchmark_data
    from modwatch.models.devices import devices_of
    from modwatch.models.recipe import LOSSES, METHODS, Recipe, offline_recipe

    def say(text: str) -> None:
        print(text, flush=True)

    given = {name: value for name in _RECIPE if (value := getattr(options, name)) is not None}
    recipe = (Recipe if options.encoder else offline_recipe)(**given)
    devices = devices_of(options.device)
    say("reading the comments, and comparing those for training with those for tests")
    data = benchmark_data(
        options.data,
        folder=options.data_folder,
        wikipedia=options.wikipedia,
        civil_comments=options.civil_comments,
        train_examples=options.train_examples,
        test_examples=options.test_examples,
    )
    found = run_cotomod(
        data,
        recipe,
        options.output,
        methods=options.methods or METHODS,
        losses=options.losses or LOSSES,
        seeds=options.seeds,
        devices=devices,
        say=say,
    )
    say("\n".join(found["sentences"]))
