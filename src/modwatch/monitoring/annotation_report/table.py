"""Reads annotations from a file with one row for each annotation, or for each item.

A row is used, merged with an equal one, or left out; the account has the number of each.
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from modwatch.common.account import Account
from modwatch.common.errors import MetricInputError, SourceError
from modwatch.common.text import folded, id_problem
from modwatch.data.sources.delimited import TextFormat
from modwatch.data.sources.labels import label_of, notes_on, numbers_of, spellings
from modwatch.data.sources.readers import (
    Record,
    read_records,
    require_columns,
    table_columns,
    unique_names,
)
from modwatch.data.sources.timestamps import epoch_scale, read_moment
from modwatch.data.sources.values import USUAL, Vocabulary, number_of, text_of
from modwatch.statistics.disagreement import Annotations
from modwatch.statistics.divergence import intersections

_REQUIRED = ("item", "annotator", "label")
#: Columns by meaning.
COLUMNS = {name: name for name in (*_REQUIRED, "time", "prob")}
#: By which probabilities of all labels may miss 1, such as 0.33 of each of three.
_ROUNDED = 0.02
#: Most different numbers that are classes; more are values on a scale.
_MOST_NUMBERS = 20
#: Records that tell names from a first row.
_HEAD = 200
_LONG_FORM = (
    "The command reads one row for each annotation, with columns item, annotator and label (other "
    "names: --column item=… and so on). If the file has one row for each item and one column for "
    "each annotator, name these columns: --votes a,b,c. If its first line does not name the "
    "columns, name them: --columns item,annotator,label."
)
_REMEDIES = {
    "undecodable_text": "name the encoding, such as --encoding cp1252",
    "unreadable_timestamp": "use numbers or ISO 8601, or rename the column",
    "malformed_record": "they have more or fewer fields than there are columns",
}


@dataclass(frozen=True, kw_only=True)
class AnnotationTable:
    """Annotations, and what the file has about their items and annotators."""

    annotations: Annotations = field(repr=False)
    #: (I,) probability of each item, or (I, K) of each of more than two classes, in the order of
    #: `annotations.items`; None: not in the file.
    y_prob: NDArray[np.float64] | None = field(repr=False)
    #: Group of each annotator by grouping.
    groups: Mapping[str, pd.Series] = field(repr=False)
    #: Where the rows of the file ended; with `votes`, each cell of these columns is a row.
    account: Account
    #: What readers must know of how rows and labels were read, in sentences.
    notes: tuple[str, ...]


def read_annotations(
    path: Path,
    *,
    columns: Mapping[str, str] | None = None,
    groups: Sequence[str] = (),
    classes: Sequence[str] | None = None,
    toxic_from: float | None = None,
    votes: Sequence[str] = (),
    header: Sequence[str] = (),
    encoding: str = "utf-8",
    vocabulary: Vocabulary = USUAL,
) -> AnnotationTable:
    """Return the annotations of a file, one from each row.

    Rows are in the order in which labels were given, or are sorted by the column `time` (or
    `round`). A later label of the same item by the same annotator is a retest. Rows with the same
    item, annotator, label and time are one annotation; so are those without a time, since nothing
    tells them from a copy. Labels that differ only in case, width and surrounding blanks, or as 1
    and 1.0 do, are one class.

    Args:
        path: of the file, in any format of `read_records`.
        columns: names of the columns `item`, `annotator`, `label`, `time` and `prob`, where they
            have others; `time` and `prob` are used if the file has them. `prob` is the probability
            of the last of two labels; of more there is a column `prob_LABEL` for each, as there may
            be of two.
        groups: attributes of annotators: names of columns, several joined by commas for their
            intersections.
        classes: the labels as texts, the positive one of two last; default: those that occur.
        toxic_from: labels are numbers, and positive from this one on.
        votes: columns with the labels of one annotator each, in a file with one row for each item;
            a blank cell is no annotation.
        header: names of the columns of a text file without a first line of names; blank: unused.
        encoding: of a text file.
        vocabulary: words that are no label; default: blanks, `NA`, `null` and the like.

    Raises:
        SourceError: the file cannot be read, a column is missing or contradicts itself, or the
            labels are no annotations, such as labels of one class only. The message names columns
            and numbers of rows, and quotes nothing.
    """
    if classes is not None and toxic_from is not None:
        raise SourceError("--toxic-from makes two classes itself; leave out --classes")
    form, names = TextFormat(encoding=encoding), {**COLUMNS, **(columns or {})}
    present = unique_names(header) if header else table_columns(path, form=form)
    if "time" not in {*present, *(columns or {})}:
        names["time"] = "round"
    required = [names["item"], *(votes or (names["annotator"], names["label"]))]
    attributes = {by: list(dict.fromkeys(by.split(","))) for by in groups}
    wanted = dict.fromkeys(chain.from_iterable(attributes.values()))
    _check_columns(path, present, names, wanted, required)
    optional = [*wanted, *(columns or {}).values(), *(n for n in names.values() if n in present)]
    needed = dict.fromkeys(optional, "") | dict.fromkeys(required, _LONG_FORM)
    if not header and not {*needed} <= {*present} and _is_row(path, form):
        present = [""] * len(present)
    require_columns(str(path), present, needed)
    of_model = [n for n in present if n == names["prob"] or n.startswith(f"{names['prob']}_")]
    others, account = list(dict.fromkeys([*wanted, *of_model])), Account()
    records = read_records(path, form=form, header=header, account=account)
    label = partial(label_of, rating=toxic_from is not None, vocabulary=vocabulary)
    rows = _rows(records, names, votes, required if header else (), account, label)
    frame = _frame(path, rows, others, account, label)
    if header:
        frame = _without_header(path, frame, _REQUIRED[:: 2 if votes else 1], account)
    frame = _merged(path, frame, account)
    account.close(path.name)
    annotations = _annotations(path, frame, classes, toxic_from, account)
    more = pd.DataFrame(frame["more"].tolist(), columns=others, dtype=object)
    return AnnotationTable(
        annotations=annotations,
        y_prob=_of_model(path, more, annotations, names["prob"]),
        groups={
            by: _group(path, frame["annotator"].to_list(), more[names])
            for by, names in attributes.items()
        },
        account=account,
        notes=(
            *_left_out(account),
            *_of_header(account),
            *_of_merged(account, timed=bool(frame["time"].notna().any())),
            *notes_on(annotations.classes, are_ratings=toxic_from is not None),
        ),
    )


def _check_columns(
    path: Path,
    present: Sequence[str],
    names: Mapping[str, str],
    attributes: Collection[str],
    required: Sequence[str],
) -> None:
    """Raise SourceError if one column is to be two things, or two are one, or one has no name."""
    if not present:
        raise SourceError(f"{path} is empty; it needs a row of column names, and one an annotation")
    if "" in attributes:
        raise SourceError(
            f"{path}: a grouping is the name of a column, or several joined by commas; there is "
            "one without a name"
        )
    if twice := sorted({name for name in required if required.count(name) > 1}):
        raise SourceError(
            f"{path}: the column {', '.join(twice)} cannot be two of {', '.join(_REQUIRED)}"
        )
    if names["annotator"] in attributes:
        raise SourceError(
            f"{path}: {names['annotator']} tells annotators apart; groups need an attribute of them"
        )


def _is_row(path: Path, form: TextFormat) -> bool:
    """Return whether the names of columns are rather a row: one occurs again."""
    records = islice(read_records(path, form=form), _HEAD)
    return any(value == name for record in records for name, value in record.values.items())


def _rows(
    records: Iterable[Record],
    names: Mapping[str, str],
    votes: Sequence[str],
    header: Sequence[str],
    account: Account,
    label: Callable[[object], tuple[str | None, str | None]],
) -> Iterator[tuple[Record, list[Any]]]:
    """Yield item, annotator, label and time of each annotation, with its record."""
    for record in records:
        value = record.values.get
        if header and all(folded(str(value(name))) == folded(name) for name in header):
            account.count("header")
        elif record.problem or not votes:
            yield record, [value(names[part]) for part in (*_REQUIRED, "time")]
        else:
            account.read += len(votes) - 1
            for vote in votes:
                if label(value(vote))[1] == "no_label":
                    account.count("blank_cell")
                else:
                    yield record, [value(names["item"]), vote, value(vote), value(names["time"])]


def _frame(
    path: Path,
    rows: Iterable[tuple[Record, list[Any]]],
    others: Sequence[str],
    account: Account,
    read: Callable[[object], tuple[str | None, str | None]],
) -> pd.DataFrame:
    """Return the rows that can be used: their lines, annotations, times, and other columns."""
    used = []
    for record, (*ids, label, time) in rows:
        given = [*map(_id, ids), read(label), _time(time)]
        more = [text_of(record.values.get(name)) for name in others]
        problems = [problem for _, problem in given]
        if problems[1] == "missing_id":
            problems[1] = "missing_annotator"
        problems += [problem for _, problem in more if problem == "undecodable_text"]
        place = record.problem or next(filter(None, problems), "used")
        account.count(place, where=f"{path.name}, line {record.line}")
        if place == "used":
            texts = [text if text and text.strip() else None for text, _ in more]
            used.append([record.line, *(value for value, _ in given), texts])
    account.require_most(str(path), _REMEDIES)
    if not used:
        raise SourceError(" ".join([f"{path}: there is no annotation.", *_left_out(account)]))
    return pd.DataFrame(used, columns=["line", *_REQUIRED, "time", "more"])


def _id(value: object) -> tuple[str | None, str | None]:
    text, problem = text_of(value)
    text = text and text.strip()  # `ann1 ` is `ann1`
    return text, problem or id_problem(text)


def _time(value: object) -> tuple[float, str | None]:
    """Return a time in seconds since 1970, or the number of a round; NaN: there is none.

    >>> _time("1970-01-01T01:01:00+01:00"), _time(" "), _time("2"), _time("late")
    ((60.0, None), (nan, None), (2.0, None), (nan, 'unreadable_timestamp'))
    """
    number, problem = number_of(value)
    if problem is None and (number is None or not math.isinf(number)):
        return math.nan if number is None else number / epoch_scale(number), None
    moment = read_moment(value, UTC)
    return moment.created_at.timestamp() if moment.created_at else math.nan, moment.problem


def _without_header(
    path: Path, frame: pd.DataFrame, parts: Sequence[str], account: Account
) -> pd.DataFrame:
    """Return the rows without a first one that names columns; it counts as a header.

    None of its values is a number or occurs in another row, and every other row shares one.
    """
    cells = frame.melt("line", parts, value_name="cell")[["line", "cell"]]
    cells = cells.assign(cell=cells["cell"].map(folded)).drop_duplicates()
    shares = cells["cell"].duplicated(keep=False).groupby(cells["line"]).any()
    first, others = shares.index[0], shares.iloc[1:]
    named = [number_of(cell)[0] is None for cell in cells["cell"][cells["line"] == first]]
    if shares.iloc[0] or others.empty or not (others.all() and all(named)):
        return frame
    header = frame["line"].isin([first])
    account.count("used", -int(header.sum()))
    account.count("header", int(header.sum()), where=f"{path.name}, line {first}")
    return frame[~header]


def _of_header(account: Account) -> list[str]:
    """Return a sentence on a first row that was taken for names of columns."""
    where = account.first.get("header")
    reason = "none of its values occurs again, while every other row shares one."
    return [f"The row of {where}, counts as names of columns: {reason}"] if where else []


def _merged(path: Path, frame: pd.DataFrame, account: Account) -> pd.DataFrame:
    """Return the rows in order of time, without those that repeat another; those count."""
    frame = frame.iloc[np.argsort(frame["time"].to_numpy(np.float64), kind="stable")]
    same = frame.assign(label=frame["label"].map(folded))
    repeated = same.duplicated([*_REQUIRED, "time"])
    repeated |= same["time"].isna() & same.duplicated([*_REQUIRED])
    for line in frame.loc[repeated, "line"].sort_values():
        account.count("merged", where=f"{path.name}, line {line}")
    account.count("used", -int(repeated.sum()))
    return frame[~repeated]


def _left_out(account: Account) -> list[str]:
    """Return a sentence on the rows that were left out; none if there are none."""
    return [f"Rows left out: {account.faults(_REMEDIES)}."] if account.left_out else []


def _of_merged(account: Account, *, timed: bool) -> list[str]:
    """Return a sentence on the rows that were merged; none if there are none."""
    same = (
        "item, annotator, label and time of another: merged."
        if timed
        else "item, annotator and label of another: merged, since without a time nothing tells a "
        "copy from a label given again. If annotators labelled items again, add a column time or "
        "round; else only changed labels count as given again."
    )
    number = account.places["merged"]
    return [f"{number:,} rows repeat the {same}"] if number else []


def _annotations(
    path: Path,
    frame: pd.DataFrame,
    classes: Sequence[str] | None,
    toxic_from: float | None,
    account: Account,
) -> Annotations:
    label, names = frame["label"].map(folded), spellings(frame["label"])
    remedy = "name the labels that could have been given, too (--classes)"
    if toxic_from is not None:
        remedy, limit = "choose another --toxic-from", text_of(toxic_from)[0]
        label = (frame["label"].astype(float) >= toxic_from).astype(str)
        names = {"False": f"under {limit}", "True": f"{limit} or more"}
    elif classes is not None:
        names = {folded(label_of(name)[0] or name): name for name in classes}
    if classes is None and (label == label.iloc[0]).all():
        alike = f"{path}: all {len(label)} labels are alike; {remedy}."
        raise SourceError(" ".join([alike, *_left_out(account)]))
    if classes is None and len(names) > _MOST_NUMBERS and numbers_of(names):
        raise SourceError(
            f"{path}: the labels are {len(names)} different numbers, as on a scale; name the "
            "number from which a label is positive (--toxic-from), or all classes (--classes)"
        )
    try:
        return Annotations.from_columns(
            item=frame["item"],
            annotator=frame["annotator"],
            label=label.map(lambda key: names.get(key, key)),
            classes=list(names.values()),
        )
    except MetricInputError as exc:
        raise SourceError(f"{path}: {exc}") from exc


def _of_model(
    path: Path, frame: pd.DataFrame, annotations: Annotations, name: str
) -> NDArray[np.float64] | None:
    """Return the probability of the last of two classes (I,), or of all (I, K)."""
    if annotations.n_classes == 2 and name in frame:
        return _probabilities(path, frame, annotations, name)
    of = {
        folded(label_of(column.removeprefix(f"{name}_"))[0] or ""): column
        for column in map(str, frame)
        if column.startswith(f"{name}_")
    }
    columns = [of.get(folded(str(label)), f"{name}_{label}") for label in annotations.classes]
    lacking = [column for column in columns if column not in frame]
    if not lacking:
        of_classes = [_probabilities(path, frame, annotations, column) for column in columns]
        return _whole(path, np.stack(of_classes, axis=1), name)
    if len(lacking) < len(columns):
        raise SourceError(
            f"{path}: there are probabilities of some labels, and none of {', '.join(lacking)}; "
            "give all, or none"
        )
    if name in frame:
        raise SourceError(
            f"{path}: there are {annotations.n_classes} labels; give the probability of each in a "
            f"column {name}_LABEL, in place of {name}"
        )
    return None


def _whole(path: Path, prob: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    """Return probabilities (I, K) that sum to 1; those of few digits are scaled."""
    total = prob.sum(axis=1)
    if wrong := int((np.abs(total - 1) > _ROUNDED).sum()):
        raise SourceError(
            f"{path}: the columns {name}_LABEL of {wrong} items do not sum to 1; give the "
            "probability of each label"
        )
    return np.asarray(prob / total[:, None])


def _probabilities(
    path: Path, frame: pd.DataFrame, annotations: Annotations, name: str
) -> NDArray[np.float64]:
    value = pd.to_numeric(frame[name], errors="coerce").to_numpy(np.float64)
    if outside := int((~((value >= 0) & (value <= 1))).sum()):
        raise SourceError(f"{path}: {outside} values of {name} are missing, or outside [0, 1]")
    found = np.full(len(annotations.items), np.nan)
    found[annotations.item] = value
    if different := int((found[annotations.item] != value).sum()):
        raise SourceError(
            f"{path}: {name} differs within an item, on {different} rows; it is the probability "
            "that the model gives to the item"
        )
    return found


def _group(path: Path, annotator: Sequence[str], attributes_of: pd.DataFrame) -> pd.Series:
    attributes = [str(name) for name in attributes_of]
    people = attributes_of.set_axis(pd.Index(annotator)).dropna(how="all")
    people = people[~people.set_index(attributes, append=True).index.duplicated()]
    if several := people.index[people.index.duplicated()].nunique():
        raise SourceError(
            f"{path}: {several} annotators have several values of {' and '.join(attributes)}; "
            "give each one"
        )
    return intersections(people, attributes).dropna()
