"""`modwatch queue …`: the decision log, and what goes out of and into the queue."""

import argparse
import datetime
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modwatch.errors import QueueError

if TYPE_CHECKING:
    from modwatch.review.checks.gold import GoldComment


def add_commands(commands: Any) -> None:
    """Add every command of `modwatch queue` to its parser's `commands`."""

    def command(name: str, call: Callable[..., object], words: str) -> argparse.ArgumentParser:
        sub: argparse.ArgumentParser = commands.add_parser(name, help=words, description=words)
        sub.set_defaults(command=call)
        return sub

    verify = command("verify-log", _verify_log, "verify the hash chains of the decision log")
    verify.add_argument("--export", type=Path, help="an export in JSONL, instead of the database")
    verify.add_argument(
        "--partial", action="store_true", help="the export is of some days: gaps are no problem"
    )
    verify.add_argument(
        "--witness",
        type=Path,
        help="file with the ends of the chains at the last check: compared, then renewed. Keep it "
        "where nobody who can write to the database can write",
    )

    export = command("export", _export, "write the decision log, whole, to standard output")
    export.add_argument("--format", default="csv", choices=("csv", "jsonl", "parquet"))
    export.add_argument("--notes", action="store_true", help="with what moderators noted")
    _days(export)

    tasks = command("export-label-studio", _export_tasks, "write items and labels as tasks")
    _days(tasks)

    come = command("import-label-studio", _import_tasks, "queue tasks, and log their labels")
    come.add_argument("file", type=Path, help="JSON, as Label Studio exports it")
    come.add_argument("--day", type=datetime.date.fromisoformat, help="of tasks without `dt`")

    send = command("deliver", _deliver, "send decisions to the platform until stopped")
    send.add_argument("--once", action="store_true", help="send what is due, and end")
    command("resend", _resend, "send the platform again what was given up")

    words = "comments whose label is known; moderators meet them unmarked"
    _add_gold_commands(commands.add_parser("gold", help=words, description=words))


def _add_gold_commands(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, call: Callable[..., object], words: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=words, description=words)
        sub.set_defaults(command=call)
        return sub

    add = command("add", _add_gold, "add the comments of a file, all or none")
    add.add_argument(
        "file",
        type=Path,
        help="CSV, JSONL or Parquet: comment_id, text, label (1 toxic, 0 not) and source; perhaps "
        "parent_text, language, platform and policy_code",
    )
    retire = command("retire", _retire_gold, "ask nobody about these any more")
    retire.add_argument("comment_id", nargs="+")
    decided = command("from-decisions", _gold_from_decisions, "add decided items, all or none")
    decided.add_argument("item_id", nargs="+", type=int)


def _days(parser: argparse.ArgumentParser) -> None:
    for name in ("--first", "--last"):
        parser.add_argument(
            name, type=datetime.date.fromisoformat, help="day, YYYY-MM-DD; default: no limit"
        )


def _verify_log(options: argparse.Namespace) -> int:
    from modwatch.resources import open_resources
    from modwatch.review.log.check import verify_export, verify_log

    kept: Path | None = options.witness
    witness = kept.read_text() if kept and kept.exists() else None
    if options.export is None:
        with open_resources() as at:
            report = verify_log(at.database, witness)
    else:
        with _opened(options.export) as lines:
            report = verify_export(lines, witness, partial=options.partial)
    print(f"{report.decisions:,} decisions, head {report.head}", *report.problems, sep="\n")
    if report.unproven:
        print(f"{report.unproven:,} were exported without their notes: their hashes prove nothing")
    if kept and witness is None:
        print(f"{kept} was not there: nothing was compared, and it begins anew", file=sys.stderr)
    if kept and report.intact:
        new = kept.with_name(f"{kept.name}.new")
        new.write_text(report.witness)
        new.replace(kept)
    return 0 if report.intact else 1


def _export(options: argparse.Namespace) -> None:
    from modwatch.resources import open_resources
    from modwatch.review.log.export import export

    with open_resources() as at:
        _write(
            export(
                at.database,
                options.format,
                first=options.first,
                last=options.last,
                with_notes=options.notes,
            )
        )


def _export_tasks(options: argparse.Namespace) -> None:
    from modwatch.resources import open_resources
    from modwatch.review.label_studio.transfer import export_tasks

    with open_resources() as at:
        _write(export_tasks(at.database, first=options.first, last=options.last))


def _import_tasks(options: argparse.Namespace) -> None:
    from modwatch.resources import open_resources
    from modwatch.review.label_studio.transfer import import_tasks

    with open_resources() as at, _opened(options.file) as file:
        done = import_tasks(at.database, file, day=options.day, lanes=at.lanes)
    print(
        f"{done.tasks} tasks: {done.items} new items, {done.labels} new labels, {done.gold} new "
        f"gold comments, {done.cancelled} cancelled annotations, {done.left} labels left out"
    )


def _deliver(options: argparse.Namespace) -> None:
    from modwatch.console import deliverer
    from modwatch.resources import open_resources

    with open_resources() as at:
        if at.settings.decision_webhook_url is None:
            raise QueueError("there is nobody to tell; set MODWATCH_DECISION_WEBHOOK_URL")
        work = deliverer(at)
        if options.once:
            while work.once():
                pass
            return
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        work.run(stop)


def _resend(_: argparse.Namespace) -> None:
    from modwatch.resources import open_resources
    from modwatch.review.outbox.deliverer import PLATFORM
    from modwatch.review.outbox.health import resend

    with open_resources() as at:
        print(f"{resend(at.database, PLATFORM)} messages are due again")


def _add_gold(options: argparse.Namespace) -> None:
    from modwatch.resources import open_resources
    from modwatch.review.checks.gold import add_gold

    with open_resources() as at:
        print(f"{add_gold(at.database, _gold_in(options.file))} new gold comments")


def _gold_in(file: Path) -> Iterator["GoldComment"]:
    from modwatch.ingest.readers import read_records
    from modwatch.review.checks.gold import gold_of

    for record in read_records(file):
        where = f"line {record.line} of {file}"
        if record.problem is not None:
            raise QueueError(f"{where} is no record; mend it (nothing of the file was added)")
        yield gold_of(record.values, where)


def _retire_gold(options: argparse.Namespace) -> None:
    from modwatch.resources import open_resources
    from modwatch.review.checks.gold import retire_gold

    with open_resources() as at:
        print(f"{retire_gold(at.database, options.comment_id)} gold comments retired")


def _gold_from_decisions(options: argparse.Namespace) -> None:
    from modwatch.resources import open_resources
    from modwatch.review.checks.gold import gold_from_decisions

    with open_resources() as at:
        print(f"{len(gold_from_decisions(at.database, options.item_id))} new gold comments")


def _write(parts: Iterable[bytes]) -> None:
    for part in parts:
        sys.stdout.buffer.write(part)


def _opened(path: Path) -> Any:
    try:
        return path.open("rb")
    except OSError as exc:
        raise QueueError(f"{path} cannot be read ({type(exc).__name__}); name a file") from None
