"""What the loaders share: records of a published file, with its columns checked."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from modwatch.errors import SourceError
from modwatch.ingest.landing import decodable
from modwatch.ingest.readers import Record, read_delimited

_TRUE = {"1", "1.0", "true"}
_FALSE = {"0", "0.0", "false"}


def rows(
    path: Path,
    columns: Sequence[str],
    left_out: Counter[str],
    *,
    delimiter: str = ",",
    header: Sequence[str] | None = None,
) -> Iterator[dict[str, str]]:
    """Yield the readable records of a file that must have `columns`; count the others.

    Names are stripped of the spaces that some files put after commas; values are as they stand.
    Raises SourceError naming a missing column.
    """
    checked = False
    for record in read_delimited(path, delimiter=delimiter, header=header):
        values = {name.strip(): value for name, value in record.values.items()}
        if record.problem or not _decodable(record):
            left_out[record.problem or "undecodable_text"] += 1
            continue
        if not checked:
            _check(path, columns, values)
            checked = True
        yield values
    if not checked and not left_out:
        raise SourceError(f"{path} holds no records; fetch the published file again.")


def find(folder: Path, *patterns: str) -> Path:
    """Return the first file of `folder` that fits one of `patterns`, in their order.

    Raises SourceError naming folder and patterns when none does.
    """
    for pattern in patterns:
        found = sorted(folder.glob(pattern))
        if found:
            return found[0]
    raise SourceError(
        f"{folder} holds no {' or '.join(patterns)}; give the folder with the published files."
    )


def binary(written: str, path: Path) -> int | None:
    """Return 0, 1 or None (empty) of a label as files write it; SourceError for anything else.

    >>> binary("True", Path("x")), binary("0.0", Path("x")), binary("", Path("x"))
    (1, 0, None)
    """
    value = written.strip().lower()
    if not value:
        return None
    if value not in _TRUE | _FALSE:
        raise SourceError(f"A label of {path} is neither 0 nor 1; this is not the format expected.")
    return int(value in _TRUE)


def number(written: str, path: Path) -> float | None:
    """Return a number or None (empty); SourceError names the file when it is neither."""
    try:
        return float(written) if written.strip() else None
    except ValueError as exc:
        raise SourceError(
            f"A score of {path} is not a number; this is not the format expected."
        ) from exc


def majority(votes: Iterable[int | None]) -> tuple[int | None, float | None]:
    """Return the majority label (None on a tie or without votes) and the share of ones.

    >>> majority([1, 1, 0, None]), majority([0, 1]), majority([])
    ((1, 0.6666666666666666), (None, 0.5), (None, None))
    """
    known = [vote for vote in votes if vote is not None]
    if not known:
        return None, None
    share = sum(known) / len(known)
    return (None if share == 0.5 else int(share > 0.5)), share


def _decodable(record: Record) -> bool:
    return all(decodable(value)[1] is None for value in record.values.values())


def _check(path: Path, columns: Sequence[str], values: dict[str, str]) -> None:
    missing = [name for name in columns if name not in values]
    if missing:
        raise SourceError(
            f"{path} has no column {', '.join(missing)}; this is not the published format "
            f"(expected {', '.join(columns)})."
        )
