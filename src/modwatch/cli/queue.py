"""`modwatch queue …`: the decision log, gold comments, Label Studio."""

import datetime
import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal

import click

from modwatch.cli.arguments import FILE, PATH, Group, day, options, vocabulary, with_resources
from modwatch.common import files
from modwatch.common.errors import QueueError
from modwatch.installation import open_resources

if TYPE_CHECKING:
    from modwatch.installation.resources import Resources

#: Task numbers of a reason that are printed.
_SHOWN = 20


@click.group(cls=Group)
def queue() -> None:
    """Verify and export decisions, and send them again; manage gold comments."""


@queue.command()
@options(
    export=(FILE, "Verify an export in JSONL instead of the database."),
    partial=(bool, "Accept gaps: the export covers some days only."),
    witness=(
        PATH,
        "Compare with the chain heads of the last verification in this file, then update it. Keep "
        "it where no one with write access to the database can write. Default: the last witness in "
        "MODWATCH_WITNESS_FOLDER, which is not updated.",
    ),
)
def verify_log(export: BinaryIO | None, partial: bool, witness: Path | None) -> int:
    """Verify the hash chains of the decision log; exit status 1 if there is a problem."""
    from modwatch.review.log.verification import verify_export
    from modwatch.review.log.witnesses import Newest, newest

    if witness and not witness.parent.is_dir():
        raise QueueError(f"the folder of --witness, {witness.parent}, does not exist; create it")
    known = witness.read_text() if witness and witness.exists() else None
    if export is None:
        with open_resources() as resources:
            used = Newest(text=known)
            if witness is None:
                used = newest(resources.witness_folder, resources.authority)
                print(used.sentence)
            report = used.report(resources.database)
    else:
        report = verify_export(export, known, partial=partial)
    print(f"{report.decisions:,} decisions, head {report.head}", *report.problems, sep="\n")
    if report.erased:
        print(f"{report.erased:,} texts and notes were erased, as the events of the log say")
    if witness and known is None:
        print(f"{witness} did not exist: nothing was compared; it is created now", file=sys.stderr)
    if witness and report.intact:
        files.replace(witness, report.witness.encode(), mode=files.USUAL)
    return 0 if report.intact else 1


@queue.command()
@click.option(
    "--format",
    "form",
    default="csv",
    type=click.Choice(["csv", "jsonl", "parquet", "label-studio"]),
    help="label-studio: items and labels, as its tasks.",
)
@click.option("--notes", is_flag=True, help="Include the moderators' notes.")
@with_resources
def export(
    resources: "Resources",
    *,
    form: Literal["csv", "jsonl", "parquet", "label-studio"],
    notes: bool,
) -> None:
    """Write the decision log to standard output."""
    from modwatch.review.label_studio.transfer import export_tasks
    from modwatch.review.log.export import export

    if form == "label-studio":
        parts = export_tasks(resources.database)
    else:
        parts = export(resources.database, form, with_notes=notes)
    sys.stdout.buffer.writelines(parts)


@queue.command()
@click.argument("file", type=FILE, help="JSON, as Label Studio exports it.")
@click.option("--day", "of_day", type=day, help="Day of tasks without `dt`.")
@with_resources
def import_label_studio(
    resources: "Resources", *, file: BinaryIO, of_day: datetime.date | None
) -> int:
    """Queue tasks of Label Studio and log their labels; exit status 1 if any is refused."""
    from modwatch.review.label_studio.transfer import import_tasks
    from modwatch.review.queue.comments import REASONS

    first_day, lanes = resources.settings.first_day, resources.lanes
    done = import_tasks(resources.database, file, first_day=first_day, day=of_day, lanes=lanes)
    tasks = done.account.places
    refused = sum(map(len, done.refused.values()))
    print(
        f"{done.account.read} tasks: {tasks['used']} used, {tasks['merged']} merged, {refused} "
        f"refused\n{done.items} new items, {done.labels} new labels, {done.gold} new gold "
        f"comments, {done.repeated} repeated annotations, {done.cancelled} cancelled annotations, "
        f"{done.left} labels left out"
    )
    for reason, numbers in done.refused.items():
        shown = ", ".join(map(str, numbers[:_SHOWN])) + ", …" * (len(numbers) > _SHOWN)
        print(f"{len(numbers)} refused: {reason}, {REASONS[reason]}: task {shown}", file=sys.stderr)
    return 1 if refused else 0


@queue.command()
@with_resources
def resend(resources: "Resources") -> None:
    """Deliver the dead letters of the webhook again."""
    from modwatch.review.outbox.delivery import PLATFORM, resend

    print(f"{resend(resources.database, PLATFORM)} dead letters are due again")


@queue.group(cls=Group)
def gold() -> None:
    """Manage gold comments, which have a known label and are shown unmarked to moderators."""


@gold.command()
@click.argument(
    "file",
    type=PATH,
    required=False,
    help="CSV, TSV, JSON, Parquet or XLSX with comment_id, text, label (1 toxic, 0 not) and "
    "source; optional: parent_text, language, platform, policy_code, shown columns of your own.",
)
@click.option(
    "--item", multiple=True, type=int, help="Number of a decided item, not a file; may be repeated."
)
@click.option("--encoding", default="utf-8", help="Encoding of a text file.")
@vocabulary
@with_resources
def add(
    resources: "Resources",
    *,
    file: Path | None,
    item: tuple[int, ...],
    encoding: str,
    value: tuple[str, ...],
) -> None:
    """Add the comments of a file, or of decided items, all or none."""
    from modwatch.data.sources.delimited import TextFormat
    from modwatch.data.sources.values import Vocabulary
    from modwatch.review.quality_control.gold import add_gold_file, gold_from_decisions

    if bool(item) == (file is not None):
        raise click.UsageError("name a file, or decided items with --item")
    if file is None:
        print(f"{len(gold_from_decisions(resources.database, item))} new gold comments")
        return
    form, known = TextFormat(encoding=encoding), Vocabulary.of(value)
    own = resources.settings.columns
    new, account = add_gold_file(resources.database, file, form, known, own)
    counted = ", ".join(f"{name} {number}" for name, number, _ in account.rows())
    print(f"{new} new gold comments; {file}: {counted}")


@gold.command()
@click.argument("comment_id", nargs=-1, required=True)
@with_resources
def retire(resources: "Resources", *, comment_id: tuple[str, ...]) -> None:
    """Stop showing gold comments."""
    from modwatch.review.quality_control.gold import retire_gold

    print(f"{retire_gold(resources.database, comment_id)} gold comments retired")
