"""`modwatch …`: parses, opens the wiring, calls; the same calls that the DAGs make."""

import argparse
import datetime
import json
import logging
import os
import sys
from collections.abc import Callable, Sequence

from modwatch.cli import audit, people, queue
from modwatch.errors import ModwatchError
from modwatch.settings import load_settings, settings_table

#: The stops that take a day and nothing else, as `modwatch run STOP DAY` calls them.
STOPS = (
    "ingest",
    "check_comments",
    "score",
    "check_scores",
    "route",
    "collect_labels",
    "measure",
    "detect_drift",
    "raise_alerts",
    "publish",
    "deliver_alerts",
)

#: Adds a command: its name, what is called (None: its own parser says it), and its help.
Command = Callable[[str, Callable[..., object] | None, str], argparse.ArgumentParser]


def program() -> None:
    """Be the program `modwatch`: set up logging, run one command, exit with its status."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")  # it tells every step it takes
    sys.exit(main())


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit status.

    >>> main(["settings"]) == 0  # doctest: +ELLIPSIS
    | variable | default | meaning |
    ...
    True
    """
    options = _parser().parse_args(argv)
    try:
        status = int(options.command(options) or 0)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except ModwatchError as error:
        print(f"modwatch: {error}", file=sys.stderr)
        return 1
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="modwatch", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(
        name: str, call: Callable[..., object] | None, words: str
    ) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=words, description=words)
        sub.set_defaults(command=call)
        return sub

    demo = command("demo", _demo, "run the whole system on this machine")
    demo.add_argument("--data", default="synthetic", help="synthetic or wikipedia_talk")
    demo.add_argument("--once", action="store_true", help="stop everything at the end")
    _add_path(command)
    _add_review(command)
    for name, call, words in _WITHOUT_OPTIONS:
        command(name, call, words)
    return parser


def _add_path(command: Command) -> None:
    """Add what the DAGs do, and what they need before."""
    run = command("run", _run, "run one stop of the path, or all of them, for one day")
    run.add_argument("stop", choices=(*STOPS, "day"), help="`day` runs all up to the queue")
    run.add_argument("day", type=datetime.date.fromisoformat, help="YYYY-MM-DD, UTC")

    shard = command("score-shard", _score_shard, "score one shard of a day")
    shard.add_argument("day", type=datetime.date.fromisoformat, help="YYYY-MM-DD, UTC")
    shard.add_argument("part", type=json.loads, help="a shard, as JSON, from plan_shards")

    train = command("train", _train, "train the offline model and make it the champion")
    train.add_argument("--data", default="synthetic", help="synthetic or wikipedia_talk")
    train.add_argument("--seed", type=int, default=0)

    plan = command("plan", _plan, "say how large a random slice gives how narrow intervals")
    plan.add_argument("day", type=datetime.date.fromisoformat, help="last day of the window, UTC")
    plan.add_argument("--width", type=float, action="append", help="wanted; may be repeated")


def _add_review(command: Command) -> None:
    """Add the review console, and who and what is in it."""
    console = command("console", _console, "serve the review console")
    console.add_argument("--host", help="default: that of MODWATCH_CONSOLE_URL")
    console.add_argument("--port", type=int, help="default: that of MODWATCH_CONSOLE_URL")

    words = "print a token for the console, of a new person or a known one"
    people.add_token_options(command("token", None, words))
    for name, part, words in (
        ("person", people, "the accounts of the console"),
        ("queue", queue, "the decision log, and what goes out of and into the queue"),
        ("audit", audit, "recall audits, and reports in the format of the DSA"),
    ):
        group = command(name, None, words)
        part.add_commands(group.add_subparsers(required=True, metavar="COMMAND"))


def _demo(options: argparse.Namespace) -> int:
    from modwatch.demo.run import run_demo

    return run_demo(options.data, once=options.once)


def _run(options: argparse.Namespace) -> None:
    from modwatch.pipeline import daily
    from modwatch.resources import open_resources

    stops = STOPS[: STOPS.index("route") + 1] if options.stop == "day" else (options.stop,)
    with open_resources() as at:
        for name in stops:
            print(f"{name}: {getattr(daily, name)(at, options.day)}")


def _score_shard(options: argparse.Namespace) -> None:
    from modwatch.pipeline import daily
    from modwatch.resources import open_resources

    with open_resources() as at:
        print(f"score_shard: {daily.score_shard(at, options.day, **options.part)}")


def _train(options: argparse.Namespace) -> None:
    from modwatch.demo.datasets import demo_data
    from modwatch.pipeline import daily
    from modwatch.resources import open_resources

    data = demo_data(options.data)
    with open_resources() as at:
        version = daily.train(
            at,
            data.training(),
            expected_prevalence=data.expected_prevalence,
            seed=options.seed,
            progress=lambda words: print(words, flush=True),
        )
    print(f"version {version} of {load_settings().model_name} is the champion")


def _console(options: argparse.Namespace) -> None:
    from modwatch.console import serve
    from modwatch.resources import open_resources

    with open_resources() as at:
        serve(at, host=options.host, port=options.port)


def _plan(options: argparse.Namespace) -> None:
    from modwatch.monitoring.measurement import slice_plan
    from modwatch.resources import open_resources

    with open_resources() as at:
        plan = slice_plan(at, options.day, widths=options.width)
    if plan.empty:
        print("no metric of the window has an interval yet; wait for labels")
    else:
        plan["labels"] = plan["labels"].astype("string").fillna("too many")
        print(plan.to_string(index=False, float_format="{:.3f}".format))


def _migrate(_: argparse.Namespace) -> None:
    from modwatch.resources import open_resources

    with open_resources() as at:
        at.migrate()
    print("the review database is up to date")


def _settings(_: argparse.Namespace) -> None:
    print(settings_table())


_WITHOUT_OPTIONS = (
    ("migrate", _migrate, "bring the review database up to date"),
    ("settings", _settings, "print every setting as a Markdown table"),
)


if __name__ == "__main__":
    program()
