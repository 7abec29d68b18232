"""`modwatch up`, `down`, `status` and `logs`: the whole installation on this machine."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modwatch.cli.arguments import add_command, whole_number
from modwatch.common.errors import StackError
from modwatch.settings import load_settings

if TYPE_CHECKING:
    from modwatch.installation.stack.record import StackFolder

_LINES = 20


def add_stack(commands: Any) -> None:
    """Add the commands."""
    text = "run PostgreSQL, MLflow, the console and Airflow on this machine, in MODWATCH_HOME"
    up = add_command(commands, "up", _up, text)
    up.add_argument("--detach", action="store_true", help="return once everything is ready")
    text = "stop what `modwatch up` runs, with all of its processes"
    add_command(commands, "down", _down, text)
    text = "show the parts of what `modwatch up` runs; exit status 1 unless all are ready"
    add_command(commands, "status", _status, text)
    logs = add_command(commands, "logs", _logs, "show the logs of what `modwatch up` runs")
    logs.add_argument("part", nargs="*", help="names of parts, such as console; default: all")
    logs.add_argument("--follow", "-f", action="store_true", help="wait for more, until Ctrl-C")
    logs.add_argument(
        "--lines",
        "-n",
        type=whole_number(0),
        default=_LINES,
        help=f"last lines of each log; default: {_LINES}",
    )


def _folder() -> "StackFolder":
    from modwatch.installation.stack.record import StackFolder

    return StackFolder(home=load_settings().home.resolve())


def _up(options: argparse.Namespace) -> None:
    if options.detach:
        from modwatch.installation.stack.commands import up_detached

        up_detached(_folder(), show=_show)
    else:
        from modwatch.installation.stack.foreground import up

        up(load_settings(), show=_show)


def _down(_: argparse.Namespace) -> None:
    from modwatch.installation.stack.commands import down

    print(down(_folder(), say=_show))


def _status(_: argparse.Namespace) -> int:
    from modwatch.installation.stack.commands import describe, is_ready

    folder = _folder()
    print(describe(folder))
    return 0 if is_ready(folder) else 1


def _logs(options: argparse.Namespace) -> None:
    from modwatch.installation.stack.logs import follow, last_lines

    folder = _folder()
    paths = [folder.logs / f"{part}.log" for part in options.part] or sorted(
        folder.logs.glob("*.log")
    )
    if missing := [path.stem for path in paths if not path.exists()]:
        there = ", ".join(sorted(path.stem for path in folder.logs.glob("*.log"))) or "no log"
        raise StackError(f"{missing[0]} has no log in {folder.logs}, which has {there}")
    ends = dict[Path, int]()
    for path in paths:
        text, ends[path] = last_lines(path, options.lines)
        _print_log(path, text, many=len(paths) > 1)
    if options.follow:
        follow(ends, show=lambda path, text: _print_log(path, text, many=len(paths) > 1))


def _print_log(path: Path, text: str, *, many: bool) -> None:
    if many and text:
        print(f"==> {path.stem} <==")
    sys.stdout.write(text)
    sys.stdout.flush()


def _show(line: str) -> None:
    print(line, flush=True)
