"""What all parts of the command line share: commands, argument types, the resources.

Commands import what they run inside their functions: `modwatch --help` answers in a quarter of a
second, with everything imported in eight.
"""

import argparse
import datetime
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modwatch.installation.resources import Resources


def add_command(
    commands: Any, name: str, call: Callable[[argparse.Namespace], object] | None, text: str
) -> argparse.ArgumentParser:
    """Add a command that runs `call` (None: set by its own parser) to `commands`; return it."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    parser.set_defaults(command=call)
    return parser


@contextmanager
def open_resources() -> Iterator["Resources"]:
    """Open the resources of this installation, as `resources.open_resources` does."""
    from modwatch.installation import resources

    with resources.open_resources() as opened:
        yield opened


def day(text: str) -> datetime.date:
    """Return the day of `text`, YYYY-MM-DD; ArgumentTypeError for anything else."""
    try:
        return datetime.datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=datetime.UTC).date()
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a date; use YYYY-MM-DD, such as 2026-01-31"
        ) from None


def whole_number(least: int, most: int | None = None) -> Callable[[str], int]:
    """Return a type for whole numbers of at least `least`, and at most `most`.

    >>> whole_number(1)("5")
    5
    """

    def number(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least or (most is not None and value > most):
            ends = f"of {least} or more" if most is None else f"between {least} and {most}"
            raise argparse.ArgumentTypeError(f"must be a whole number {ends}, got {text!r}")
        return value

    return number


def number_between(low: float, high: float) -> Callable[[str], float]:
    """Return a type for numbers strictly between `low` and `high`.

    >>> number_between(0, 1)("0.05")
    0.05
    """

    def number(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not low < value < high:
            raise argparse.ArgumentTypeError(
                f"must be a number between {low:g} and {high:g} (exclusive), got {text!r}"
            )
        return value

    return number
