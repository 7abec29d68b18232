"""`modwatch …`: parses arguments, opens the resources, and makes the same calls as the DAGs."""

import argparse
import json
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from modwatch.cli import alerts, annotations, audit, benchmark, people, queue
from modwatch.cli.arguments import add_command, day, number_between, open_resources
from modwatch.cli.init import add_init
from modwatch.cli.models import add_models
from modwatch.cli.serve import add_scorer
from modwatch.cli.stack import add_stack
from modwatch.common import days
from modwatch.common.errors import ModwatchError
from modwatch.common.installed import dags_folder, missing_extra, version
from modwatch.common.signals import signals_held
from modwatch.pipeline import daily
from modwatch.settings import current_settings_table, load_settings, settings_table
from modwatch.settings.file import apply_settings_file

if TYPE_CHECKING:
    import pandas as pd

_STEPS = {step.__name__: step for step in daily.STEPS}
#: The steps of `modwatch run day`.
_DAY = tuple(_STEPS)[: list(_STEPS).index("collect_labels")]


def program() -> None:
    """Run the program `modwatch`: logging, settings file, one command; exit with its status."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")  # by default it logs every step
    try:
        from_file = apply_settings_file(os.environ)
    except ModwatchError as error:
        print(f"modwatch: {error}", file=sys.stderr)
        sys.exit(1)
    sys.exit(main(from_file=from_file))


def main(
    argv: Sequence[str] | None = None, *, from_file: Mapping[str, Path] = MappingProxyType({})
) -> int:
    """Run one command; return its exit status.

    `from_file` are the variables of the environment that a settings file has set.

    >>> main(["settings", "--defaults"]) == 0  # doctest: +ELLIPSIS
    | variable | default | meaning |
    ...
    True
    """
    options = _parser().parse_args(argv)
    options.from_file = from_file
    try:
        status = int(options.command(options) or 0)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except ModwatchError as error:
        print(f"modwatch: {error}", file=sys.stderr)
        return 1
    except ImportError as error:
        extra = missing_extra(error, options.program)
        if extra is None:
            raise
        print(
            f'modwatch: "{options.program}" needs extra dependencies; '
            f"run pip install 'modwatch[{extra}]'",
            file=sys.stderr,
        )
        return 1
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="modwatch", description=__doc__)
    parser.add_argument("--version", action="version", version=f"modwatch {version()}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="program")
    demo = add_command(commands, "demo", _demo, "run the whole system on this machine")
    demo.add_argument(
        "--data", default="synthetic", help="synthetic, wikipedia_talk or civil_comments"
    )
    demo.add_argument("--encoder", help="a pre-trained encoder; default: the offline model")
    demo.add_argument(
        "--scorer",
        choices=["local", "serve"],
        default="local",
        help="local: the tasks themselves score (default); serve: a model server does",
    )
    demo.add_argument(
        "--error-rates",
        type=number_between(0, 1),
        nargs=2,
        metavar=("FALSE_POSITIVE", "FALSE_NEGATIVE"),
        help="of the simulated moderators; default: 0.2 to 1.5 %% and 2 to 8 %%",
    )
    demo.add_argument(
        "--drift", action="store_true", help="the synthetic community changes in the second week"
    )
    demo.add_argument("--once", action="store_true", help="stop everything at the end")
    add_init(commands)
    add_stack(commands)
    _add_daily(commands)
    add_models(commands)
    add_scorer(commands)
    text = "run the benchmarks of published papers"
    group = add_command(commands, "benchmark", None, text)
    benchmark.add_commands(group.add_subparsers(required=True, metavar="COMMAND"))
    text = "report who agrees with whom, from anybody's annotations"
    group = add_command(commands, "annotations", None, text)
    annotations.add_commands(group.add_subparsers(required=True, metavar="COMMAND"))
    _add_review(commands)
    add_command(commands, "migrate", _migrate, "upgrade the schema of the review database")
    settings = add_command(commands, "settings", _settings, "print the settings and their values")
    settings.add_argument(
        "--defaults", action="store_true", help="print every variable as a Markdown table"
    )
    airflow = add_command(commands, "airflow", None, "connect Airflow with Modwatch")
    add_command(
        airflow.add_subparsers(required=True, metavar="COMMAND"),
        "dags-folder",
        lambda _: print(dags_folder()),
        "print the folder of the DAGs, for AIRFLOW__CORE__DAGS_FOLDER",
    )
    return parser


def _add_daily(commands: Any) -> None:
    """Add what the DAGs do, and what they need before."""
    run = add_command(commands, "run", _run, "run one step of the daily job, or all, for one day")
    run.add_argument(
        "step", choices=(*_STEPS, "day"), help="`day` runs all steps up to `score_challenger`"
    )
    run.add_argument("day", type=day, help="YYYY-MM-DD, UTC")

    shard = add_command(commands, "score-shard", _score_shard, "score one shard of a day")
    shard.add_argument("day", type=day, help="YYYY-MM-DD, UTC")
    shard.add_argument("part", type=json.loads, help="a shard, as JSON, from plan_shards")

    plan = add_command(
        commands, "plan", _plan, "print how to split labels between random slice and confirmations"
    )
    plan.add_argument("day", type=day, help="last day of the window, YYYY-MM-DD, UTC")
    plan.add_argument(
        "--width",
        type=number_between(0, 1),
        action="append",
        help="width of the interval; may be repeated",
    )
    plan.add_argument(
        "--budget",
        type=float,
        metavar="LABELS",
        help="instead of widths: labels of slice and confirmations together, in the whole window",
    )
    plan.add_argument(
        "--error-rates",
        type=float,
        nargs=2,
        metavar=("FALSE_POSITIVE", "FALSE_NEGATIVE"),
        help="of one label; default: as estimated from the window",
    )


def _add_review(commands: Any) -> None:
    """Add the review console, its accounts, the queue, and audits."""
    console = add_command(commands, "console", _console, "serve the review console")
    console.add_argument("--host", help="default: that of MODWATCH_CONSOLE_URL")
    console.add_argument("--port", type=int, help="default: that of MODWATCH_CONSOLE_URL")

    text = "print an access token for the console, creating the account if necessary"
    people.add_token_options(add_command(commands, "token", None, text))
    for name, part, text in (
        ("person", people, "manage the accounts of the console"),
        ("queue", queue, "verify, export and deliver decisions; manage gold comments"),
        ("alerts", alerts, "list incidents and act on them; check that days are measured"),
        ("audit", audit, "run recall audits; validate DSA transparency reports"),
    ):
        group = add_command(commands, name, None, text)
        part.add_commands(group.add_subparsers(required=True, metavar="COMMAND"))


def _demo(options: argparse.Namespace) -> int:
    from modwatch.demo.run import run_demo

    rates = tuple(options.error_rates) if options.error_rates else None
    return run_demo(
        options.data,
        once=options.once,
        encoder=options.encoder,
        error_rates=rates,
        scorer=options.scorer,
        drift=options.drift,
    )


def _run(options: argparse.Namespace) -> None:
    with open_resources() as resources:
        days.require_possible(options.day, resources.settings.first_day)
        for name in _DAY if options.step == "day" else (options.step,):
            print(f"{name}: {_STEPS[name](resources, options.day)}")


def _score_shard(options: argparse.Namespace) -> None:
    with open_resources() as resources:
        print(f"score_shard: {daily.score_shard(resources, options.day, **options.part)}")


def _console(options: argparse.Namespace) -> None:
    from modwatch.installation.console import serve

    with signals_held() as came, open_resources() as resources:
        serve(resources, host=options.host, port=options.port, came=came)


def _plan(options: argparse.Namespace) -> None:
    with open_resources() as resources:
        plan = daily.plan_labels(
            resources,
            options.day,
            widths=options.width or (),
            budget=options.budget,
            error_rates=options.error_rates,
        )
    if plan.empty:
        print("no metric of the window has an interval yet; wait for labels")
    else:
        print(_plan_table(plan, lacking="too many" if options.budget is None else "too few"))


def _plan_table(plan: "pd.DataFrame", *, lacking: str) -> str:
    """Return the splits as text, `lacking` for the labels where there is none."""
    counts = {
        name: plan[name].astype("string").fillna(lacking)
        for name in ("labels", "confirmations", "total")
    }
    # Nullable ones would be <NA>.
    shares = {
        name: plan[name].astype("float64")
        for name in ("width", "slice_share", "confirmation_share")
    }
    text = plan.assign(**counts, **shares)
    return text.to_string(index=False, float_format="{:.3f}".format, na_rep="")


def _migrate(_: argparse.Namespace) -> None:
    from modwatch.review.migrate import may_alter_log

    with open_resources() as resources:
        resources.migrate()
        print("the review database is up to date")
        if may_alter_log(resources.database):
            print(
                "the user of MODWATCH_DATABASE_URL owns the tables and may alter the decision log; "
                "set MODWATCH_DATABASE_OWNER_URL to separate the two",
                file=sys.stderr,
            )


def _settings(options: argparse.Namespace) -> None:
    if options.defaults:
        print(settings_table())
    else:
        print(current_settings_table(load_settings(), options.from_file))
