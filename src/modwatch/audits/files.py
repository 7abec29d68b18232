"""The files of an audit's evidence: tables as CSV in canonical form, for reproducible hashes.

RFC 4180 in UTF-8. Text that a spreadsheet might take for a formula starts with an apostrophe
(`text.neutral`). They contain ids, scores, random numbers, labels and pseudonyms, and no text of
a comment.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from functools import partial
from typing import Any, TypeVar

from modwatch.common.errors import AuditError
from modwatch.common.text import neutral, original
from modwatch.statistics.audit.draw import DrawnComment
from modwatch.statistics.audit.labels import OUTCOMES, AuditLabel, Outcome

PLAN, CHAIN, RESULT, REPORT = "plan.json", "chain.jsonl", "result.json", "report.html"

#: Notes of the steps with their salts, to which the chain commits; sealed by no step.
NOTES = "notes.json"

#: What the report and the files for transparency reports were made of, besides plan and result.
PUBLICATION = "publication.json"

#: Parts 8 and 11 of the transparency report that the Digital Services Act asks for.
AUTOMATED_MEANS_FILE, QUALITATIVE_FILE = "dsa-automated-means.csv", "dsa-qualitative.csv"

#: Files without single comments and their labellers.
SHOWN = (PLAN, RESULT, REPORT, AUTOMATED_MEANS_FILE, QUALITATIVE_FILE)

_SAMPLE = ("day", "comment_id", "stratum", "score", "key", "traits")
_POPULATION = ("column", "value", "stratum", "comments")
_LABEL = ("day", "comment_id", "labeller", "action", "label", "decided_at", "decision")

_OUTCOME = ("day", "comment_id", "outcome", "labels")

#: Signatures and timestamps of the first N lines of the chain, which no step seals.
_WITNESS = re.compile(r"chain-([1-9]\d{0,3})\.(sig|tsr)")

T = TypeVar("T")


def sample_file(stage: int) -> str:
    """Return the file name of a stage's sample, which includes those of earlier stages."""
    return f"sample-{stage}.csv"


def population_file(stage: int) -> str:
    """Return the file name of the numbers of comments that the sample represents."""
    return f"population-{stage}.csv"


def labels_file(stage: int) -> str:
    """Return the file name of the labels up to a stage."""
    return f"labels-{stage}.csv"


def outcomes_file(stage: int) -> str:
    """Return the file name of the outcomes of all comments drawn up to a stage."""
    return f"outcomes-{stage}.csv"


def signature_file(steps: int) -> str:
    """Return the file name of the signature of the first `steps` lines of the chain."""
    return f"chain-{steps}.sig"


def timestamp_file(steps: int) -> str:
    """Return the file name of the timestamp of the first `steps` lines of the chain."""
    return f"chain-{steps}.tsr"


def witnessed_steps(name: str) -> int | None:
    """Return how many lines a signature or timestamp is of; None for the name of another file.

    >>> witnessed_steps("chain-2.sig"), witnessed_steps("chain.jsonl")
    (2, None)
    """
    found = _WITNESS.fullmatch(name)
    return int(found[1]) if found else None


def write_sample(drawn: Iterable[DrawnComment]) -> bytes:
    """Return the comments of a sample as CSV, in the given order."""
    return written(_SAMPLE, (_row(comment, _SAMPLE) for comment in drawn))


def read_sample(content: bytes) -> tuple[DrawnComment, ...]:
    """Return what `write_sample` wrote; AuditError for anything else."""
    return tuple(_read(content, _SAMPLE, partial(_record, DrawnComment), write_sample, "sample"))


def write_population(population: Mapping[tuple[str, str, int], int]) -> bytes:
    """Return the numbers of comments by column, value and stratum as CSV."""
    rows = ((*key, comments) for key, comments in sorted(population.items()))
    return written(_POPULATION, rows)


def read_population(content: bytes) -> dict[tuple[str, str, int], int]:
    """Return what `write_population` wrote; AuditError for anything else."""

    def row(cells: Mapping[str, str]) -> tuple[tuple[str, str, int], int]:
        key = (cells["column"], cells["value"], int(cells["stratum"]))
        return key, int(cells["comments"])

    def write(rows: Iterable[tuple[tuple[str, str, int], int]]) -> bytes:
        return write_population(dict(rows))

    return dict(_read(content, _POPULATION, row, write, "population"))


def write_labels(labels: Iterable[AuditLabel]) -> bytes:
    """Return the labels as CSV, sorted by day, comment and person."""
    return written(_LABEL, sorted(_row(label, _LABEL) for label in labels))


def read_labels(content: bytes) -> list[AuditLabel]:
    """Return what `write_labels` wrote; AuditError for anything else."""
    return _read(content, _LABEL, partial(_record, AuditLabel), write_labels, "labels")


def write_outcomes(outcomes: Iterable[Outcome]) -> bytes:
    """Return the outcomes as CSV, in the given order."""
    return written(_OUTCOME, (_row(outcome, _OUTCOME) for outcome in outcomes))


def read_outcomes(content: bytes) -> list[Outcome]:
    """Return what `write_outcomes` wrote; AuditError for anything else."""
    return _read(content, _OUTCOME, partial(_record, Outcome), write_outcomes, "outcomes")


def _row(record: object, columns: Sequence[str]) -> tuple[Any, ...]:
    """Return the cells of a record."""
    cells = ((name, getattr(record, name)) for name in columns)
    return tuple(_WRITTEN[name](value) if name in _WRITTEN else value for name, value in cells)


def _record(kind: Callable[..., T], cells: Mapping[str, str]) -> T:
    """Return the record with these cells; ValueError when one is invalid."""
    return kind(**{name: _PARSED.get(name, str)(cell) for name, cell in cells.items()})


def written(header: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """Return a file, its texts escaped so that no spreadsheet runs them as formulas."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(header)
    writer.writerows(
        [neutral(cell) if isinstance(cell, str) else cell for cell in row] for row in rows
    )
    return out.getvalue().encode(errors="surrogatepass")


def _read(
    content: bytes,
    header: Sequence[str],
    row: Callable[[Mapping[str, str]], T],
    write: Callable[[list[T]], bytes],
    name: str,
) -> list[T]:
    """Return the rows, each converted by `row`; errors quote no cell.

    AuditError unless `write` turns them into the same bytes again.
    """
    made: list[T] = []
    try:
        text = content.decode(errors="surrogatepass")
        lines = csv.reader(io.StringIO(text, newline=""), strict=True)
        if tuple(next(lines, ())) != tuple(header):
            raise AuditError(f"The {name} file must have the columns {','.join(header)}.")
        made.extend(row(dict(zip(header, map(original, cells), strict=True))) for cells in lines)
    except UnicodeDecodeError:
        raise AuditError(f"The {name} file is not UTF-8.") from None
    except (ValueError, OverflowError, csv.Error):
        number = len(made) + 1
        raise AuditError(f"Row {number} of the {name} file cannot be read.") from None
    if write(made) != content:
        raise AuditError(f"The {name} file is not in canonical form: it was edited or reformatted.")
    return made


def _joined(traits: Mapping[str, tuple[str, ...]]) -> str:
    """Return the values of all columns in one cell: `groups=a,b;language=de`.

    Special characters are encoded by their code point, `%2c.` for a comma; `%.` is an empty value.
    """
    return ";".join(
        f"{_quoted(column)}={','.join(_quoted(value) or '%.' for value in values)}"
        for column, values in sorted(traits.items())
    )


def _parted(cell: str) -> dict[str, tuple[str, ...]]:
    pairs = (part.split("=") for part in cell.split(";") if part)
    return {
        _unquoted(column): tuple(_unquoted(value) for value in values.split(",") if value)
        for column, values in pairs
    }


def _quoted(word: str) -> str:
    return "".join(f"%{ord(c):x}." if c in "%;=," else c for c in word)


def _unquoted(word: str) -> str:
    return re.sub(r"%([0-9a-f]*)\.", lambda code: chr(int(code[1], 16)) if code[1] else "", word)


def _known(outcome: str) -> str:
    if outcome not in OUTCOMES:
        raise ValueError
    return outcome


#: How the cells of a column are written, and parsed, where that is not as text.
_WRITTEN: dict[str, Callable[[Any], str]] = {"day": date.isoformat, "traits": _joined}
_PARSED: dict[str, Callable[[str], object]] = {
    **dict.fromkeys(("stratum", "key", "label", "labels"), int),
    "day": date.fromisoformat,
    "score": float,
    "traits": _parted,
    "outcome": _known,
}
