"""The commands of an installation on this machine, from `init` to `settings`."""

import datetime
import os
import shlex
import subprocess
import sys
import time
import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from modwatch.cli.arguments import PATH, Group, day, options, vocabulary, with_resources
from modwatch.common.errors import NoChampionError, StackError
from modwatch.common.installed import dags_folder
from modwatch.installation import open_resources
from modwatch.pipeline import daily
from modwatch.settings import Settings, current_settings_table, load_settings
from modwatch.settings.file import DEFAULT, VARIABLE, apply_settings_file

if TYPE_CHECKING:
    from modwatch.installation.resources import Resources
    from modwatch.installation.stack.record import StackFolder

#: How old the last day of a source is where new ones come: an older export would be missed at once.
_FRESH = datetime.timedelta(days=1)


@click.command()
@click.argument(
    "source",
    required=False,
    help="File or folder of CSV, TSV, JSON lines or Parquet; SQLite file; or database URL.",
)
@click.option(
    "--column",
    multiple=True,
    metavar="NAME=COLUMN",
    help="The source's column of comment_id, text, created_at, language …, or none; may be "
    "repeated.",
)
@vocabulary
@click.option(
    "--deleted-text",
    multiple=True,
    metavar="TEXT",
    help="Text that stands for a deleted comment, or none; may be repeated; default: as it shows.",
)
@click.option("--output", type=PATH, default=Path(DEFAULT), help="The settings file.")
@click.option("--yes", "-y", is_flag=True, help="Take every default without asking.")
@options(
    table=(str, "Table of a database; default: its only one, or ask."),
    delimiter=(str, "Character between the fields of text files, or tab; default: as they show."),
    encoding=(str, "Encoding of text files; default: UTF-8, or UTF-16 where a file shows it."),
    quoting=(
        click.Choice(["minimal", "none"]),
        "Whether fields of text files may be in quotation marks; default: as they show.",
    ),
    escape=(str, "Character before a quotation mark in a field of text files."),
    time_format=(str, "Format of times, in the notation of strptime; default: as they show."),
    generate_ids=(bool, "The files have no ids: make them from the values of a row."),
    votes=(str, "Columns with one vote each, with commas: the label is that of most votes."),
    timezone=(str, "IANA time zone of times without one; default: UTC."),
    decided_by=(
        click.Choice(["model", "rule", "person"]),
        "Who took the decisions of your platform that do not say.",
    ),
    own_scores=(str, "Column with probabilities of a model of yours, or none; default: ask."),
    model=(
        str,
        "What scores without such a column: a classifier, as its folder or its name on the Hugging "
        "Face hub; a file of labels to train one; or demonstration, to look around; default: ask.",
    ),
    day=(
        day,
        "First day to run, default: the last complete one; of files without times, their day.",
    ),
    force=(bool, "Replace a settings file."),
    no_run=(bool, "Write the settings file only."),
)
def init(no_run: bool, **answers: Any) -> None:
    """Inspect your own comments, write the settings file, and run the first day."""
    from modwatch.installation.init import Dialogue, InitOptions, with_file, write_settings

    output = answers["output"]
    days, making = write_settings(InitOptions(**answers))
    named = with_file(output)
    if no_run:
        steps = filter(None, ["up --detach", making, f"run day {days[-1]}"])
        print(f"Next: {', '.join(f'{named}modwatch {step}' for step in steps)}")
        return
    several = f"{len(days)} days, {days[0]} to {days[-1]}" if len(days) > 1 else f"{days[0]}"
    question = f"Start everything and run {several}?"
    answer = Dialogue(yes=answers["yes"]).ask(question, "yes", "--yes or --no-run")
    if answer[0] in "yY":
        _run(output, days, making)
        print(f"\n`{named}modwatch down` stops everything, `{named}modwatch up` resumes.")


def _run(path: Path, days: Sequence[datetime.date], making: str) -> None:
    """Start everything, make the model if nothing scores, and run whole days in order.

    `making` is the command for it, without `modwatch`.

    Where the last of them is yesterday, new ones run by themselves from then on.
    """
    from modwatch.installation.stack.commands import (
        daily_job,
        pages,
        start_daily_job,
        up_detached,
    )

    os.environ[VARIABLE] = str(path.absolute())
    apply_settings_file(os.environ)
    settings = load_settings()
    up_detached(_folder(), show=_show)
    if making and _needs_model(settings):
        _show(f"Making the model, which takes a few minutes: modwatch {making}")
        command = [sys.executable, "-m", "modwatch", *shlex.split(making)]
        if subprocess.run(command, check=False).returncode:
            raise StackError("there is no model, and no day was run; correct the command above")
    try:
        for number, day in enumerate(days, start=1):
            _show(f"\n{day}, day {number} of {len(days)}:")
            _run_day(day)
        if days[-1] >= datetime.datetime.now(datetime.UTC).date() - _FRESH:
            start_daily_job(settings)
    finally:  # everything runs, also if a step failed
        _show(f"\n{pages(settings)}\n{daily_job(settings)}")
    if sys.stdout.isatty() and {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys():
        for url in (settings.console_url, settings.mlflow_url):
            webbrowser.open_new_tab(url)


def _run_day(day: datetime.date) -> None:
    with open_resources() as resources:
        for number, step in enumerate(daily.STEPS, start=1):
            begun = time.monotonic()
            result = step(resources, day)
            took = time.monotonic() - begun
            _show(f"{number}/{len(daily.STEPS)} {step.__name__}: {result} ({took:.0f} s)")


def _needs_model(settings: Settings) -> bool:
    from modwatch.models.registry import Registry

    if settings.own_scores or settings.scorer != "local":
        return False
    try:
        Registry(tracking_uri=settings.mlflow_url).champion_version()
    except NoChampionError:
        return True
    return False


@click.command()
@click.option("--detach", is_flag=True, help="Return once everything is ready.")
def up(detach: bool) -> None:
    """Start PostgreSQL, MLflow, the console and Airflow in MODWATCH_HOME."""
    if detach:
        from modwatch.installation.stack.commands import daily_job, pages, up_detached

        up_detached(_folder(), show=_show)
        settings = load_settings()
        _show(f"{pages(settings)}\n{daily_job(settings)}")
    else:
        from modwatch.installation.stack.installation import up

        up(load_settings(), show=_show)


@click.command()
def down() -> None:
    """Stop what `modwatch up` runs, with all of its processes."""
    from modwatch.installation.stack.commands import down

    print(down(_folder(), say=_show))


@click.command()
def status() -> int:
    """Show the parts of what `modwatch up` runs, and when the next day runs.

    The exit status is 1 unless all parts are ready.
    """
    from modwatch.installation.stack.commands import daily_job, describe, is_ready, pages

    folder = _folder()
    print(describe(folder))
    if not is_ready(folder):
        return 1
    settings = load_settings()
    print(pages(settings), daily_job(settings), sep="\n")
    return 0


@click.command()
@click.argument("part", nargs=-1, help="Names of parts, such as console; default: all.")
@click.option("--follow", "-f", is_flag=True, help="Wait for more, until Ctrl-C.")
def logs(part: tuple[str, ...], follow: bool) -> None:
    """Show the last twenty lines of each log of what `modwatch up` runs."""
    folder = _folder()
    paths = [folder.logs / f"{name}.log" for name in part] or sorted(folder.logs.glob("*.log"))
    if missing := [path.stem for path in paths if not path.exists()]:
        there = ", ".join(sorted(path.stem for path in folder.logs.glob("*.log"))) or "no log"
        raise StackError(f"{missing[0]} has no log in {folder.logs}, which has {there}")
    if not paths:
        raise StackError(f"there is no log in {folder.logs}; `modwatch up` writes some")
    command = ["tail", "--lines=20", *(["--follow=name"] if follow else []), *map(str, paths)]
    with suppress(KeyboardInterrupt):
        subprocess.run(command, check=True)


@click.command()
@click.option("--claim-lake", is_flag=True, help="Take the lake over from another review database.")
@with_resources
def migrate(resources: "Resources", *, claim_lake: bool) -> None:
    """Upgrade the schema of the review database."""
    from modwatch.review import lake_owner
    from modwatch.review.migrate import may_alter_log

    resources.migrate()
    print("the review database is up to date")
    if claim_lake:
        lake_owner.claim_lake(resources.database, resources.settings.lake_root)
        print(f"the lake {resources.settings.lake_root} belongs to this review database")
    if may_alter_log(resources.database):
        print(
            "the user of MODWATCH_DATABASE_URL owns the tables and may alter the decision log; "
            "set MODWATCH_DATABASE_OWNER_URL to separate the two",
            file=sys.stderr,
        )


@click.command()
@click.pass_obj
def settings(from_file: dict[str, Path]) -> None:
    """Print the settings, their values, and where each comes from."""
    print(current_settings_table(load_settings(), from_file))


@click.group(cls=Group)
def airflow() -> None:
    """Connect an Airflow installation with Modwatch."""


@airflow.command("dags-folder")
def dags_folder_() -> None:
    """Print the folder of the DAGs, for AIRFLOW__CORE__DAGS_FOLDER."""
    print(dags_folder())


@airflow.command("run", context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, required=True, help="Such as `dags list`.")
def airflow_run(arguments: tuple[str, ...]) -> int:
    """Run a command of Airflow, configured as the Airflow of `modwatch up` is."""
    from modwatch.installation.stack.installation import inside_airflow

    with inside_airflow(load_settings()):
        program = Path(sys.executable).with_name("airflow")
        return subprocess.run([program, *arguments], check=False).returncode


def _folder() -> "StackFolder":
    from modwatch.installation.stack.record import StackFolder

    return StackFolder(home=load_settings().home.resolve())


def _show(line: str) -> None:
    print(line, flush=True)
