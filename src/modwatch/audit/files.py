"""The files of an audit's evidence: tables as CSV, in one canonical form, so that they hash alike.

No text of a comment is in them: ids, scores, random numbers, labels and pseudonyms.
"""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from typing import Any, TypeVar

from modwatch.audit.draw import Drawn, DrawnComment
from modwatch.audit.labels import AuditLabel
from modwatch.errors import AuditError

PLAN, CHAIN, RESULT = "plan.json", "chain.jsonl", "result.json"

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
                repr(each.score),
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

    return tuple(_read(content, _SAMPLE, row, "sample"))


def write_population(drawn: Drawn) -> bytes:
    """Return the numbers of comments by column, value and stratum."""
    rows = ((*key, comments) for key, comments in sorted(drawn.population.items()))
    return _written(_POPULATION, rows)


def read_population(content: bytes) -> dict[tuple[str, str, int], int]:
    """Return what `write_population` wrote; AuditError for anything else."""

    def row(cells: Mapping[str, str]) -> tuple[tuple[str, str, int], int]:
        key = (cells["column"], cells["value"], int(cells["stratum"]))
        return key, int(cells["comments"])

    return dict(_read(content, _POPULATION, row, "population"))


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

    return list(_read(content, _LABEL, row, "labels"))


def _written(header: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue().encode(errors="surrogatepass")


def _read(
    content: bytes, header: Sequence[str], row: Callable[[Mapping[str, str]], T], name: str
) -> Iterable[T]:
    """Return the rows, each made by `row`; the message of a refusal quotes none."""
    text = content.decode(errors="surrogatepass")
    lines = csv.reader(io.StringIO(text, newline=""))
    if tuple(next(lines, ())) != tuple(header):
        raise AuditError(f"the file of the {name} does not have the columns {', '.join(header)}")
    made = []
    for number, cells in enumerate(lines, 1):
        try:
            made.append(row(dict(zip(header, cells, strict=True))))
        except (ValueError, TypeError):
            raise AuditError(f"row {number} of the file of the {name} cannot be read") from None
    return made


def _joined(traits: Mapping[str, tuple[str, ...]]) -> str:
    """Return the values of all columns in one cell: `language=de;groups=a,b`."""
    return ";".join(
        f"{_quoted(column)}={','.join(map(_quoted, values))}"
        for column, values in sorted(traits.items())
    )


def _parted(cell: str) -> dict[str, tuple[str, ...]]:
    pairs = (part.split("=") for part in cell.split(";") if part)
    return {
        _unquoted(column): tuple(_unquoted(value) for value in values.split(",") if value)
        for column, values in pairs
    }


def _quoted(word: str) -> str:
    return "".join(f"%{ord(c):x}." if c in "%;=,." else c for c in word)


def _unquoted(word: str) -> str:
    parts = word.split("%")
    rest = (part.split(".", 1) for part in parts[1:])
    return parts[0] + "".join(chr(int(code, 16)) + left for code, left in rest)
