"""The command `modwatch annotations report`."""

import argparse
import sys
from pathlib import Path
from typing import Any

from modwatch.cli.arguments import add_command, whole_number

#: The largest seed that scikit-learn takes.
_LARGEST_SEED = 2**32 - 1


def add_commands(commands: Any) -> None:
    """Add `annotations report`."""
    parser = add_command(
        commands,
        "report",
        _report,
        "write a page about who agrees with whom, from a file with one row an annotation",
    )
    parser.add_argument(
        "file", type=Path, help="CSV, TSV, JSON lines or Parquet: columns item, annotator, label"
    )
    for name, text in (
        ("item", "id of what was labelled"),
        ("annotator", "id of who labelled"),
        ("label", "the label"),
        ("time", "orders the labels, if the file has it"),
        (
            "prob",
            "the model's probability of the last label, if the file has it, or prob_LABEL of "
            "each label",
        ),
    ):
        parser.add_argument(f"--{name}-column", metavar="COLUMN", help=f"{text}; default: {name}")
    parser.add_argument(
        "--group",
        action="append",
        default=[],
        metavar="COLUMN[,COLUMN…]",
        help="attribute of the annotators, or several for their intersections; may be repeated",
    )
    parser.add_argument(
        "--classes",
        nargs="+",
        metavar="LABEL",
        help="all labels, the positive one of two last; default: those of the file, sorted",
    )
    parser.add_argument("--threshold", type=float, default=0.5, help="default: 0.5")
    parser.add_argument(
        "--minimum",
        type=whole_number(1),
        default=5,
        help="annotators of a group that is shown; default: 5",
    )
    parser.add_argument(
        "--seed",
        type=whole_number(0, _LARGEST_SEED),
        default=0,
        help="of permutations; default: 0",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("annotations"),
        help="folder of the page and its tables; default: annotations",
    )


def _report(options: argparse.Namespace) -> None:
    from modwatch.monitoring.annotation_report import (
        annotation_report,
        read_annotations,
        write_report,
    )

    names = ("item", "annotator", "label", "time", "prob")
    given = {name: getattr(options, f"{name}_column") for name in names}
    table = read_annotations(
        options.file,
        columns={name: column for name, column in given.items() if column is not None},
        groups=options.group,
        classes=options.classes,
    )
    report = annotation_report(
        table.annotations,
        y_prob=table.y_prob,
        groups=table.groups,
        threshold=options.threshold,
        minimum=options.minimum,
        seed=options.seed,
        progress=_show_fits,
    )
    page = write_report(report, options.output, title=options.file.stem)
    print(f"{report.annotations:,} annotations of {report.items:,} items: {page}")


def _show_fits(done: int, fits: int) -> None:
    """Show how many fits of the factorisation are done, on a terminal."""
    if sys.stderr.isatty():
        bar = "█" * done + "·" * (fits - done)
        end = "\n" if done == fits else ""
        print(f"\rEstimating flip rates {bar} {done}/{fits}", end=end, file=sys.stderr, flush=True)
