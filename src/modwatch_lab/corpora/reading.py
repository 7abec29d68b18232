"""Common parts of the loaders: records with validated columns, labels, majority votes."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from modwatch.common.errors import SourceError
from modwatch.data.sources.delimited import TextFormat
from modwatch.data.sources.readers import read_records, require_columns
from modwatch.data.sources.values import majority, number_of, text_of, vote_of


def rows(
    path: Path,
    columns: Sequence[str],
    left_out: Counter[str],
    *,
    delimiter: str = ",",
    header: Sequence[str] | None = None,
) -> Iterator[dict[str, str]]:
    """Yield the readable records of a file, which must have `columns`; count the others.

    Column names are stripped, because some files have spaces after commas; values are unchanged.
    A Parquet file with the same columns serves, too.
    Raises SourceError naming a missing column.
    """
    checked = False
    form = TextFormat(delimiter=delimiter, quoting="minimal")
    for record in read_records(path, form=form, header=header):
        # As a delimited file has the values of a Parquet file.
        texts = {name.strip(): text_of(value) for name, value in record.values.items()}
        if record.problem or any(problem == "undecodable_text" for _, problem in texts.values()):
            left_out[record.problem or "undecodable_text"] += 1
            continue
        values = {name: text or "" for name, (text, _) in texts.items()}
        if not checked:
            check_columns(path, columns, list(values))
            checked = True
        yield values
    if not checked and not left_out:
        raise SourceError(f"{path} contains no records; download the published file again.")


def find(folder: Path, *patterns: str) -> Path:
    """Return the first file of `folder` that matches one of `patterns`, in their order.

    Raises SourceError naming folder and patterns when no file matches.
    """
    return find_all(folder, patterns)[0]


def find_all(path: Path, patterns: Sequence[str]) -> list[Path]:
    """Return the files of folder `path` that match `patterns`, in their order; or the file `path`.

    Raises SourceError naming folder and patterns when no file matches.
    """
    if path.is_file():
        return [path]
    files = [file for pattern in patterns for file in sorted(path.glob(pattern))]
    if not files:
        raise SourceError(
            f"{path} contains no {' or '.join(patterns)}; use the folder with the published files."
        )
    return files


def binary(written: str, path: Path) -> int | None:
    """Return the label 0, 1 or None (empty) of a field; SourceError for other text.

    >>> binary("True", Path("x")), binary("0.0", Path("x")), binary("", Path("x"))
    (1, 0, None)
    """
    label, problem = vote_of(written)
    if problem:
        raise SourceError(f"A label in {path} is not 0 or 1; this is not the published format.")
    return label


def number(written: str, path: Path) -> float | None:
    """Return the number or None (empty) of a field; SourceError for other text."""
    value, problem = number_of(written)
    if problem:
        raise SourceError(f"A score in {path} is not a number; this is not the published format.")
    return value


def voted_items(
    texts: Iterable[tuple[str, str | None]], votes: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return one item per id and text: its label is the majority vote, its score the share of ones.

    `votes` have a `comment_id` and a `label`.

    >>> voted_items([("a", "hello")], [{"comment_id": "a", "label": 1}])
    [{'comment_id': 'a', 'text': 'hello', 'label': 1, 'score': 1.0}]
    """
    labels = defaultdict(list)
    for vote in votes:
        labels[vote["comment_id"]].append(vote["label"])
    items = []
    for comment_id, text in texts:
        label, share = majority(labels[comment_id])
        items.append({"comment_id": comment_id, "text": text, "label": label, "score": share})
    return items


def check_columns(path: Path, columns: Sequence[str], available: Sequence[str]) -> None:
    """Raise SourceError when a file does not have all `columns`."""
    expected = f"This is not the published format (expected {', '.join(columns)})."
    require_columns(str(path), available, dict.fromkeys(columns, expected))
