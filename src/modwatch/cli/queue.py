"""`modwatch queue …`: the decision log, deliveries, gold comments, Label Studio."""

import datetime
import signal
import sys
import threading
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

_period = options(
    first=(day, "First day; default: no limit."), last=(day, "Last day; default: no limit.")
)


@click.group(cls=Group)
def queue() -> None:
    """Verify, export and deliver decisions; manage gold comments."""


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
@click.option("--format", "form", default="csv", type=click.Choice(["csv", "jsonl", "parquet"]))
@click.option("--notes", is_flag=True, help="Include the moderators' notes.")
@_period
@with_resources
def export(
    resources: "Resources",
    *,
    form: Literal["csv", "jsonl", "parquet"],
    notes: bool,
    first: datetime.date | None,
    last: datetime.date | None,
) -> None:
    """Write the decision log to standard output."""
    from modwatch.review.log.export import export

    parts = export(resources.database, form, first=first, last=last, with_notes=notes)
    sys.stdout.buffer.writelines(parts)


@queue.command()
@_period
@with_resources
def export_label_studio(
    resources: "Resources", *, first: datetime.date | None, last: datetime.date | None
) -> None:
    """Write items and labels as tasks of Label Studio to standard output."""
    from modwatch.review.label_studio.transfer import export_tasks

    sys.stdout.buffer.writelines(export_tasks(resources.database, first=first, last=last))


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
@click.option("--once", is_flag=True, help="Deliver what is due, then exit.")
@with_resources
def deliver(resources: "Resources", *, once: bool) -> None:
    """Deliver decisions to the platform's webhook until stopped."""
    from modwatch.installation.console import deliverer

    if resources.settings.decision_webhook_url is None:
        raise QueueError("no webhook is configured; set MODWATCH_DECISION_WEBHOOK_URL")
    work = deliverer(resources)
    if once:
        while work.once():
            pass
        return
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    work.run(stop)


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
    help="CSV, TSV, JSON, Parquet or XLSX with comment_id, text, label (1 toxic, 0 not) and "
    "source; optional: parent_text, language, platform, policy_code, shown columns of your own.",
)
@click.option("--encoding", default="utf-8", help="Encoding of a text file.")
@vocabulary
@with_resources
def add(resources: "Resources", *, file: Path, encoding: str, **words: tuple[str, ...]) -> None:
    """Add the comments of a file, all or none."""
    from modwatch.data.sources.delimited import TextFormat
    from modwatch.data.sources.values import Vocabulary
    from modwatch.review.quality_control.gold import add_gold_file

    form, known = TextFormat(encoding=encoding), Vocabulary.of(**words)
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


@gold.command()
@click.argument("item_id", nargs=-1, required=True, type=int)
@with_resources
def from_decisions(resources: "Resources", *, item_id: tuple[int, ...]) -> None:
    """Add decided items as gold comments, all or none."""
    from modwatch.review.quality_control.gold import gold_from_decisions

    print(f"{len(gold_from_decisions(resources.database, item_id))} new gold comments")
