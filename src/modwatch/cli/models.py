"""The commands of models: `modwatch train` and `modwatch model …`."""

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from modwatch.cli.arguments import add_command, number_between, open_resources

#: Corpora that have a training part of their own.
_CORPORA = ("synthetic", "wikipedia_talk", "civil_comments")

#: Options of `train` that are fields of `models.recipe.Recipe`, with their types.
_RECIPE: dict[str, tuple[Callable[[str], Any], str]] = {
    "encoder": (str, "folder or hub name of a pre-trained encoder; default: the offline model"),
    "method": (str, "deterministic, mc_dropout, ensemble, sngp (default) or sngp_ensemble"),
    "members": (int, "networks of an ensemble"),
    "passes": (int, "passes of Monte Carlo dropout"),
    "loss": (str, "cross_entropy (default) or focal"),
    "focal_gamma": (float, "γ of the focal loss"),
    "positive_weight": (float, "weight of a toxic comment in the loss"),
    "negatives_per_positive": (float, "most other comments per toxic one in training"),
    "epochs": (int, "passes over the training comments"),
    "batch_size": (int, "most comments of a batch"),
    "batch_tokens": (int, "most subwords of a batch, with padding"),
    "accumulation": (int, "batches a step"),
    "learning_rate": (float, "highest learning rate"),
    "max_length": (int, "most subwords of a comment"),
    "max_examples": (int, "most comments, drawn at random"),
    "max_steps": (int, "most steps of a network"),
    "patience": (int, "evaluations without a gain before training stops"),
    "calibration": (str, "none, temperature, platt, beta or isotonic; default: the best of them"),
    "expected_prevalence": (number_between(0, 1), "share of toxic comments in the stream"),
    "threshold": (number_between(0, 1), "comments above are flagged; default: the best F1"),
}


def add_models(commands: Any) -> None:
    """Add `train` and `model`."""
    train = add_command(commands, "train", _train, "train a model and make it the champion")
    data = train.add_argument_group("data")
    data.add_argument(
        "--data",
        nargs="+",
        default=["synthetic"],
        metavar="SOURCE",
        help=f"{', '.join(_CORPORA)}; or CSV, TSV, JSON lines or Parquet files; or a database URL",
    )
    data.add_argument("--query", help="SELECT for a database URL")
    data.add_argument("--text-column", default="text", help="default: text")
    data.add_argument(
        "--label-column",
        default="label",
        help="0, 1, the share of annotators who said toxic, or a list of votes; default: label",
    )
    data.add_argument(
        "--id-column", help="rows with the same id are votes on one comment; default: none"
    )
    data.add_argument("--language-column", help="for the data report")
    data.add_argument(
        "--toxic-values", nargs="+", default=[], metavar="WORD", help="labels that mean toxic"
    )
    add_recipe_options(train.add_argument_group("recipe"), _RECIPE)
    train.add_argument("--seed", type=int, default=0)
    train.add_argument(
        "--checkpoints",
        type=Path,
        help="an interrupted run goes on from this folder; default: in HOME/training",
    )
    train.add_argument(
        "--alias",
        choices=("champion", "challenger", "none"),
        default="champion",
        help="of the new version; default: champion",
    )
    train.add_argument(
        "--report-only", action="store_true", help="print the data report, and do not train"
    )
    model = add_command(commands, "model", None, "which model scores").add_subparsers(
        required=True, metavar="COMMAND"
    )
    add_command(model, "rollback", _roll_back, "make the previous champion the champion again")
    promote = add_command(model, "promote", _promote, "give a version an alias")
    promote.add_argument("version")
    promote.add_argument("--alias", choices=("champion", "challenger"), default="champion")


def add_recipe_options(parser: Any, names: Iterable[str]) -> None:
    """Add options for some fields of the recipe; without the option, the value is None."""
    for name in names:
        kind, text = _RECIPE[name]
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, help=text)


def _train(options: argparse.Namespace) -> None:
    from modwatch.models.recipe import Recipe, offline_recipe
    from modwatch.pipeline import model

    given = {name: value for name in _RECIPE if (value := getattr(options, name)) is not None}
    corpus, known = _corpus(options)
    recipe = (Recipe if options.encoder else offline_recipe)(**(known | given))
    with open_resources() as resources:
        corpus = model.without_evaluation(resources, corpus)
        report = model.report(resources, corpus)
        print("\n".join(report.lines()), flush=True)
        if options.report_only:
            return
        version = model.train(
            resources,
            corpus,
            recipe=recipe,
            seed=options.seed,
            report=report,
            checkpoints=options.checkpoints,
            progress=lambda text: print(text, flush=True),
        )
        if options.alias != "none":
            model.set_alias(resources, version, options.alias)
        name = resources.settings.model_name
    print(f"version {version} of {name}" + f" is the {options.alias}" * (options.alias != "none"))


def _roll_back(_: argparse.Namespace) -> None:
    from modwatch.pipeline import model

    with open_resources() as resources:
        print(f"version {model.roll_back(resources)} is the champion again")


def _promote(options: argparse.Namespace) -> None:
    from modwatch.pipeline import model

    with open_resources() as resources:
        model.set_alias(resources, options.version, options.alias)
    print(f"version {options.version} is the {options.alias}")


def _corpus(options: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    """Return the labelled texts, and what is known about the stream beside them."""
    if options.data[0] in _CORPORA and len(options.data) == 1:
        from modwatch.demo.datasets import demo_data

        data = demo_data(options.data[0])
        return data.training(), {"expected_prevalence": data.expected_prevalence}
    from modwatch.data.sources.labelled import LabelColumns, read_labelled

    columns = LabelColumns(
        text=options.text_column,
        label=options.label_column,
        comment_id=options.id_column,
        language=options.language_column,
        toxic_values=frozenset(options.toxic_values),
    )
    return read_labelled(options.data, columns=columns, query=options.query), {}
