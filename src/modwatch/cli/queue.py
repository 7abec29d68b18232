"""`modwatch queue …`: the decision log, deliveries, gold comments, Label Studio."""

import argparse
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modwatch.cli.arguments import add_command, day, open_resources
from modwatch.common.errors import QueueError

if TYPE_CHECKING:
    from modwatch.review.quality_control.gold import GoldComment


def add_commands(commands: Any) -> None:
    """Add every command of `modwatch queue` to its parser's `commands`."""
    verify = add_command(
        commands, "verify-log", _verify_log, "verify the hash chains of the decision log"
    )
    verify.add_argument("--export", type=Path, help="an export in JSONL, instead of the database")
    verify.add_argument(
        "--partial", action="store_true", help="the export covers some days only: accept gaps"
    )
    verify.add_argument(
        "--witness",
        type=Path,
        help="file with the chain heads of the last verification: compared, then updated. Keep it "
        "where nobody with write access to the database can write; default: the last witness in "
        "MODWATCH_WITNESS_FOLDER, which is not updated",
    )

    export = add_command(
        commands, "export", _export, "write the whole decision log to standard output"
    )
    export.add_argument("--format", default="csv", choices=("csv", "jsonl", "parquet"))
    export.add_argument("--notes", action="store_true", help="include the moderators' notes")
    _add_period(export)

    text = "write items and labels as tasks"
    _add_period(add_command(commands, "export-label-studio", _export_tasks, text))

    imported = add_command(
        commands, "import-label-studio", _import_tasks, "queue tasks and log their labels"
    )
    imported.add_argument("file", type=Path, help="JSON, as Label Studio exports it")
    imported.add_argument("--day", type=day, help="of tasks without `dt`, YYYY-MM-DD")

    deliver = add_command(
        commands, "deliver", _deliver, "deliver decisions to the platform's webhook until stopped"
    )
    deliver.add_argument("--once", action="store_true", help="deliver what is due, then exit")
    add_command(commands, "resend", _resend, "deliver the dead letters of the webhook again")

    text = "gold comments: comments with a known label, shown unmarked to moderators"
    gold = add_command(commands, "gold", None, text)
    _add_gold_commands(gold.add_subparsers(required=True, metavar="COMMAND"))


def _add_gold_commands(commands: Any) -> None:
    add = add_command(commands, "add", _add_gold, "add the comments of a file, all or none")
    add.add_argument(
        "file",
        type=Path,
        help="CSV, JSONL or Parquet with comment_id, text, label (1 toxic, 0 not) and source; "
        "optional: parent_text, language, platform, policy_code",
    )
    retire = add_command(commands, "retire", _retire_gold, "stop showing these gold comments")
    retire.add_argument("comment_id", nargs="+")
    decided = add_command(
        commands, "from-decisions", _gold_from_decisions, "add decided items, all or none"
    )
    decided.add_argument("item_id", nargs="+", type=int)


def _add_period(parser: argparse.ArgumentParser) -> None:
    for name in ("--first", "--last"):
        parser.add_argument(name, type=day, help="day, YYYY-MM-DD; default: no limit")


def _verify_log(options: argparse.Namespace) -> int:
    from modwatch.review.log.verification import verify_export, verify_log
    from modwatch.review.log.witnesses import latest

    kept: Path | None = options.witness
    if kept and not kept.parent.is_dir():
        raise QueueError(f"the folder of --witness, {kept.parent}, does not exist; create it")
    witness = kept.read_text() if kept and kept.exists() else None
    if options.export is None:
        with open_resources() as resources:
            if kept is None and (place := resources.witness_folder):
                moment, witness = latest(place, resources.authority)
                print(f"compared with the witness of {moment or 'no day: there is none'}")
            report = verify_log(resources.database, witness)
    else:
        with _opened(options.export) as lines:
            report = verify_export(lines, witness, partial=options.partial)
    print(f"{report.decisions:,} decisions, head {report.head}", *report.problems, sep="\n")
    if kept and witness is None:
        print(f"{kept} did not exist: nothing was compared; it is created now", file=sys.stderr)
    if kept and report.intact:
        new = kept.with_name(f"{kept.name}.new")
        new.write_text(report.witness)
        new.replace(kept)
    return 0 if report.intact else 1


def _export(options: argparse.Namespace) -> None:
    from modwatch.review.log.export import export

    with open_resources() as resources:
        _write(
            export(
                resources.database,
                options.format,
                first=options.first,
                last=options.last,
                with_notes=options.notes,
            )
        )


def _export_tasks(options: argparse.Namespace) -> None:
    from modwatch.review.label_studio.transfer import export_tasks

    with open_resources() as resources:
        _write(export_tasks(resources.database, first=options.first, last=options.last))


def _import_tasks(options: argparse.Namespace) -> None:
    from modwatch.review.label_studio.transfer import import_tasks

    with open_resources() as resources, _opened(options.file) as file:
        done = import_tasks(resources.database, file, day=options.day, lanes=resources.lanes)
    print(
        f"{done.tasks} tasks: {done.items} new items, {done.labels} new labels, {done.gold} new "
        f"gold comments, {done.cancelled} cancelled annotations, {done.left} labels left out"
    )


def _deliver(options: argparse.Namespace) -> None:
    from modwatch.installation.console import deliverer

    with open_resources() as resources:
        if resources.settings.decision_webhook_url is None:
            raise QueueError("no webhook is configured; set MODWATCH_DECISION_WEBHOOK_URL")
        work = deliverer(resources)
        if options.once:
            while work.once():
                pass
            return
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        work.run(stop)


def _resend(_: argparse.Namespace) -> None:
    from modwatch.review.outbox.delivery import PLATFORM
    from modwatch.review.outbox.delivery_status import resend

    with open_resources() as resources:
        print(f"{resend(resources.database, PLATFORM)} dead letters are due again")


def _add_gold(options: argparse.Namespace) -> None:
    from modwatch.review.quality_control.gold import add_gold

    with open_resources() as resources:
        print(f"{add_gold(resources.database, _gold_in(options.file))} new gold comments")


def _gold_in(file: Path) -> Iterator["GoldComment"]:
    from modwatch.data.sources.readers import read_records
    from modwatch.review.quality_control.gold import gold_of

    for record in read_records(file):
        where = f"line {record.line} of {file}"
        if record.problem is not None:
            raise QueueError(f"{where} is not a valid record; nothing of the file was added")
        yield gold_of(record.values, where)


def _retire_gold(options: argparse.Namespace) -> None:
    from modwatch.review.quality_control.gold import retire_gold

    with open_resources() as resources:
        print(f"{retire_gold(resources.database, options.comment_id)} gold comments retired")


def _gold_from_decisions(options: argparse.Namespace) -> None:
    from modwatch.review.quality_control.gold import gold_from_decisions

    with open_resources() as resources:
        print(f"{len(gold_from_decisions(resources.database, options.item_id))} new gold comments")


def _write(parts: Iterable[bytes]) -> None:
    for part in parts:
        sys.stdout.buffer.write(part)


def _opened(path: Path) -> Any:
    try:
        return path.open("rb")
    except OSError as exc:
        raise QueueError(f"{path} cannot be read ({type(exc).__name__})") from None
