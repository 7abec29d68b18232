"""The command `modwatch annotations report`."""

import sys
from pathlib import Path

import click

from modwatch.cli.arguments import PATH, Group, Several, Variadic, columns, options, vocabulary


@click.group(cls=Group)
def annotations() -> None:
    """Report how much annotators agree, from a file of annotations."""


@annotations.command(cls=Variadic)
@click.argument(
    "file", type=PATH, help="CSV, TSV, JSON, Parquet or Excel, with one row per annotation."
)
@columns("item", "annotator", "label", "time", "prob")
@click.option(
    "--group",
    multiple=True,
    metavar="COLUMN[,COLUMN…]",
    help="Attribute of the annotators, or several for their intersections; may be repeated.",
)
@click.option(
    "--classes",
    cls=Several,
    metavar="LABEL…",
    help="All labels, the positive one of two last; default: those of the file, sorted.",
)
@options(
    toxic_from=(float, "Labels are ratings, positive from this number on."),
    votes=(str, "Columns of one annotator each, A,B,…, of a file with one row per item."),
    columns=(str, "Names of the columns, A,B,…, of a file without a first line of names."),
)
@vocabulary
@click.option("--encoding", default="utf-8", help="Encoding of a text file.")
@click.option(
    "--minimum", type=click.IntRange(1), default=5, help="Annotators of a group that is shown."
)
@click.option(
    "--output", type=PATH, default=Path("annotations"), help="Folder of the page and its tables."
)
def report(
    file: Path,
    group: tuple[str, ...],
    classes: tuple[str, ...],
    toxic_from: float | None,
    votes: str | None,
    columns: str | None,
    column: dict[str, str],
    value: tuple[str, ...],
    encoding: str,
    minimum: int,
    output: Path,
) -> None:
    """Write a page on the agreement of annotators, from a file with one row per annotation.

    Columns have the names of --column by default. Optional ones: time, times or numbers of rounds,
    which order the labels; prob, the model's probabilities of the last label, or prob_LABEL of each
    label.
    """
    from modwatch.data.sources.values import Vocabulary
    from modwatch.monitoring.annotation_report import report_of_file, rows_section, write_report

    reading = {
        "columns": column,
        "classes": list(classes) or None,
        "toxic_from": toxic_from,
        "votes": _names(votes),
        "header": _names(columns),
        "vocabulary": Vocabulary.of(value),
        "encoding": encoding,
    }
    table, found = report_of_file(
        file, group, reading=reading, minimum=minimum, progress=_show_fits
    )
    page = write_report(found, output, title=file.stem, more=[rows_section(table)])
    places = ", ".join(f"{name.lower()} {n:,}" for name, n, _ in table.account.rows())
    print(f"Rows: {table.account.read:,} ({places}).", *table.notes, sep="\n")
    again = f" and {found.retests:,} labels given again" if found.retests else ""
    print(f"{found.annotations:,} annotations{again} of {found.items:,} items: {page}")


def _names(written: str | None) -> list[str]:
    return [name.strip() for name in written.split(",")] if written else []


def _show_fits(done: int, fits: int) -> None:
    """Show how many fits of the factorisation are done, on a terminal."""
    if sys.stderr.isatty():
        bar = "█" * done + "·" * (fits - done)
        end = "\n" if done == fits else ""
        print(f"\rEstimating flip rates {bar} {done}/{fits}", end=end, file=sys.stderr, flush=True)
