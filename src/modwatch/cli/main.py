"""The program `modwatch`: parses arguments, and turns an error into one sentence and a status."""

import logging
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import click

from modwatch.cli import (
    alerts,
    annotations,
    audit,
    daily,
    models,
    people,
    personal_data,
    queue,
    stack,
)
from modwatch.cli.arguments import Group
from modwatch.common.errors import ModwatchError
from modwatch.common.installed import missing_extra, plugins
from modwatch.settings.file import apply_settings_file


@click.group(
    cls=Group, context_settings={"help_option_names": ["--help", "-h"], "show_default": True}
)
@click.version_option(package_name="modwatch", message="modwatch %(version)s")
def commands() -> None:
    """Watch a content-moderation system in which a model decides most comments.

    Settings come from MODWATCH_… variables and the file modwatch.env; `modwatch settings` prints
    them. `modwatch COMMAND --help` describes a command.
    """


commands.add_section("Start on this machine", stack.init, stack.up, stack.down)
commands.add_section(
    "Operate",
    stack.status, stack.logs, stack.settings, stack.migrate, stack.airflow, daily.run,
    daily.repair, daily.retention, daily.plan, alerts.alerts,
)  # fmt: skip
commands.add_section("Review", people.console, people.token, people.person, queue.queue)
commands.add_section("Audit", audit.audit)
commands.add_section(
    "Personal data", personal_data.export, personal_data.erase, personal_data.verify_erasure
)
commands.add_section("Models", models.train, models.model, models.serve, annotations.annotations)
commands.add_section("Plug-ins", *(each.load() for each in plugins("modwatch.commands").values()))


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
    """Run one command; return its exit status. SystemExit 2 for arguments that are not valid.

    `from_file` are the variables of the environment that a settings file has set.

    >>> main(["airflow", "dags-folder"])  # doctest: +ELLIPSIS
    /...
    0
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    name = next((word for word in arguments if not word.startswith("-")), "")
    try:
        with commands.make_context("modwatch", arguments, obj=from_file) as context:
            status = int(commands.invoke(context) or 0)
        sys.stdout.flush()
    except click.exceptions.Exit as done:  # after --help or --version
        return done.exit_code
    except click.UsageError as error:
        error.show()
        sys.exit(error.exit_code)
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except ModwatchError as error:
        print(f"modwatch: {error}", file=sys.stderr)
        return 1
    except ImportError as error:
        extra = missing_extra(error, name)
        if extra is None:
            raise
        print(
            f"modwatch: \"{name}\" needs extra dependencies; run pip install 'modwatch[{extra}]'",
            file=sys.stderr,
        )
        return 1
    return status
