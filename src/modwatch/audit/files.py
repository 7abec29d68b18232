"""The files of an audit's evidence: tables as CSV, in one canonical form, so that they hash alike.

RFC 4180 in UTF-8. Before a text that a spreadsheet might take for a formula stands an apostrophe
(`cells.neutral`). No text of a comment is in them: ids, scores, random numbers, labels
and pseudonyms.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from typing import Any, TypeVar

from modwatch.audit.draw import Drawn, DrawnComment
from modwatch.audit.labels import AuditLabel
from modwatch.cells import neutral, original
from modwatch.errors import AuditError

PLAN, CHAIN, RESULT, REPORT = "plan.json", "chain.jsonl", "result.json", "report.html"

#: Parts 8 and 11 of the transparency report that the Digital Services Act asks for.
AUTOMATED_MEANS_FILE, QUALITATIVE_FILE = "dsa-automated-means.csv", "dsa-qualitative.csv"

#: What may be shown where people are not to see single comments and who labelled them.
SHOWN = (PLAN, RESULT, REPORT, AUTOMATED_MEANS_FILE, QUALITATIVE_FILE)

_SAMPLE = ("day", "comment_id", "stratum", "score", "key", "traits")
_POPULATION = ("column", "value", "stratum", "comments")
_LABEL = ("day", "comment_id", "labeller", "action", "label", "decided_at", "decision")

T = TypeVar("T")


def sample_file(stage: int) -> str:
    """Return the name of the file of a stage's sample; it holds those of earlier stages too."""
    return f"sample-{stage}.csv"


def population_file(stage: int) -> str:
    """Return the name of the file of the numbers of comments that the sample stands for."""
    return f"population-{stage}.csv"


def labels_file(stage: int) -> str:
    """Return the name of the file of the labels up to a stage."""
    return f"labels-{stage}.csv"


def write_sample(drawn: Iterable[DrawnComment]) -> bytes:
    """Return the comments of a sample, in the order in which they are given."""
    return _written(
        _SAMPLE,
        (
            (
                each.day.isoformat(),
                each.comment_id,
                each.stratum,
                each.score,
                each.key,
                _joined(each.traits),
            )
            for each in drawn
        ),
    )


def read_sample(content: bytes) -> tuple[DrawnComment, ...]:
    """Return what `write_sample` wrote; AuditError for anything else."""

    def row(cells: Mapping[str, str]) -> DrawnComment:
        return DrawnComment(
            day=date.fromisoformat(cells["day"]),
            comment_id=cells["comment_id"],
            stratum=int(cells["stratum"]),
            score=float(cells["score"]),
            key=int(cells["key"]),
            traits=_parted(cells["traits"]),
        )

    drawn = tuple(_read(content, _SAMPLE, row, "sample"))
    return _canonical(drawn, write_sample(drawn), content, "sample")


def write_population(drawn: Drawn) -> bytes:
    """Return the numbers of comments by column, value and stratum."""
    rows = ((*key, comments) for key, comments in sorted(drawn.population.items()))
    return _written(_POPULATION, rows)


def read_population(content: bytes) -> dict[tuple[str, str, int], int]:
    """Return what `write_population` wrote; AuditError for anything else."""

    def row(cells: Mapping[str, str]) -> tuple[tuple[str, str, int], int]:
        key = (cells["column"], cells["value"], int(cells["stratum"]))
        return key, int(cells["comments"])

    found = dict(_read(content, _POPULATION, row, "population"))
    again = write_population(Drawn(comments=(), population=found))
    return _canonical(found, again, content, "population")


def write_labels(labels: Iterable[AuditLabel]) -> bytes:
    """Return the labels by day, comment and person."""
    rows = sorted(
        (
            each.day.isoformat(),
            each.comment_id,
            each.labeller,
            each.action,
            each.label,
            each.decided_at,
            each.decision,
        )
        for each in labels
    )
    return _written(_LABEL, rows)


def read_labels(content: bytes) -> list[AuditLabel]:
    """Return what `write_labels` wrote; AuditError for anything else."""

    def row(cells: Mapping[str, str]) -> AuditLabel:
        words: dict[str, Any] = {name: cells[name] for name in _LABEL}
        words |= {"day": date.fromisoformat(cells["day"]), "label": int(cells["label"])}
        return AuditLabel(**words)

    labels = list(_read(content, _LABEL, row, "labels"))
    return _canonical(labels, write_labels(labels), content, "labels")


def _written(header: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(header)
    writer.writerows(
        [neutral(cell) if isinstance(cell, str) else cell for cell in row] for row in rows
    )
    return out.getvalue().encode(errors="surrogatepass")


def _read(
    content: bytes, header: Sequence[str], row: Callable[[Mapping[str, str]], T], name: str
) -> list[T]:
    """Return the rows, each made by `row`; the message of a refusal quotes none."""
    made: list[T] = []
    try:
        text = content.decode(errors="surrogatepass")
        lines = csv.reader(io.StringIO(text, newline=""), strict=True)
        if tuple(next(lines, ())) != tuple(header):
            raise AuditError(f"the file of the {name} does not have the columns {','.join(header)}")
        made.extend(row(dict(zip(header, map(original, cells), strict=True))) for cells in lines)
    except UnicodeDecodeError:
        raise AuditError(f"the file of the {name} is no text in UTF-8") from None
    except (ValueError, OverflowError, csv.Error):
        number = len(made) + 1
        raise AuditError(f"row {number} of the file of the {name} cannot be read") from None
    return made


def _canonical(read: T, again: bytes, content: bytes, name: str) -> T:
    """Return what was read, if it would be written as it was."""
    if again != content:
        raise AuditError(
            f"the file of the {name} is not in canonical form: it was edited or reformatted"
        )
    return read


def _joined(traits: Mapping[str, tuple[str, ...]]) -> str:
    """Return the values of all columns in one cell: `groups=a,b;language=de`.

    Of a character that means something in it stands the number, `%2c.` for a comma; `%.` is a value
    that is empty.
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
