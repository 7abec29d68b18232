"""What all commands share: groups with their help, types of arguments, the resources.

Commands import what they run inside their functions: `modwatch --help` answers in a quarter of a
second, with everything imported in eight.
"""

import datetime
import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from modwatch.installation import open_resources

_R = TypeVar("_R")
_Command = TypeVar("_Command", bound=Callable[..., Any])

#: The path of a file or folder, whether or not it exists.
PATH = click.Path(path_type=Path)
#: A file to read, which must exist: its content, in bytes.
FILE = click.File("rb")


class Group(click.Group):
    """A group whose help describes each command by a whole sentence, in sections."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.sections: dict[str, tuple[click.Command, ...]] = {}

    def add_section(self, title: str, *commands: click.Command) -> None:
        """Add commands under a heading of the help."""
        self.sections[title] = commands
        for command in commands:
            self.add_command(command)

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections."""
        sections = self.sections or {"Commands": (*self.commands.values(),)}
        for title, commands in sections.items():
            with formatter.section(title):
                formatter.write_dl(
                    [
                        (f"{c.name}", " ".join(c.get_short_help_str(10_000).split()))
                        for c in commands
                    ]
                )


class Several(click.Option):
    """An option with one or more values, `--data a.csv b.csv`; its command is `Variadic`."""

    def __init__(self, *names: Any, **options: Any) -> None:
        super().__init__(*names, **{**options, "multiple": True})


class Variadic(click.Command):
    """A command with options that take `Several` values."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse `--data a b` as `--data a --data b`."""
        several = [param for param in self.params if isinstance(param, Several)]
        names = {name for param in several for name in param.opts}
        written, current = list[str](), ""
        for arg in args:
            if arg.startswith("-") and not arg[1:2].isdecimal():
                current = arg if arg in names else ""
            elif current and written[-1] != current:
                written.append(current)
            written.append(arg)
        return super().parse_args(ctx, written)


def options(**table: tuple[Any, str]) -> Callable[[_Command], _Command]:
    """Return a decorator that adds options, each with a type and a help text.

    A bool is a flag. Without the option, a value is None and a flag False.
    """

    def decorate(command: _Command) -> _Command:
        for name, (kind, text) in reversed(table.items()):
            flag = {"is_flag": True} if kind is bool else {"type": kind}
            command = click.option(f"--{name.replace('_', '-')}", help=text, **flag)(command)
        return command

    return decorate


#: The option for what decides a training besides its data and seed: the recipe.
RECIPE = click.option(
    "--recipe",
    type=PATH,
    help="TOML file of hyperparameters, such as encoder and method; default: the offline model.",
)


def vocabulary(command: _Command) -> _Command:
    """Add the option for the words of labels, as `data.sources.values.Vocabulary` takes them."""
    return click.option(
        "--value",
        cls=Several,
        metavar="WORD=MEANING",
        help="Meaning of a label that is a word: toxic, other, abstain of people who did not "
        "judge, or missing; may be repeated.",
    )(command)


def columns(*names: str) -> Callable[[_Command], _Command]:
    """Return a decorator that adds `--column NAME=COLUMN`, whose value has the columns by name."""

    def by_name(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
        pairs = dict(each.partition("=")[::2] for each in given)
        for name, column in pairs.items():
            if name not in names or not column:
                raise click.BadParameter(
                    f"{name!r} is none of {', '.join(names)}, or has no column; use NAME=COLUMN"
                )
        return pairs

    return click.option(
        "--column",
        multiple=True,
        metavar="NAME=COLUMN",
        callback=by_name,
        help=f"The column of {', '.join(names)}; may be repeated.",
    )


def day(text: str) -> datetime.date:
    """Return the day of `text`, YYYY-MM-DD."""
    try:
        return datetime.datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=datetime.UTC).date()
    except ValueError:
        raise ValueError(f"{text!r} is not a date; use YYYY-MM-DD, such as 2026-01-31") from None


def number_between(low: float, high: float) -> Callable[[str], float]:
    """Return a type for numbers strictly between `low` and `high`.

    >>> number_between(0, 1)("0.05")
    0.05
    """

    def number(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not low < value < high:
            raise ValueError(
                f"must be a number between {low:g} and {high:g} (exclusive), got {text!r}"
            )
        return value

    return number


def with_resources(command: Callable[..., _R]) -> Callable[..., _R]:
    """Return a command that opens the resources and passes them on as the first argument."""

    @functools.wraps(command)
    def run(**options: Any) -> _R:
        with open_resources() as resources:
            return command(resources, **options)

    return run
