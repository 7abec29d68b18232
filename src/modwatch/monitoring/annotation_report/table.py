"""Reads annotations from a file with one row an annotation."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from modwatch.common.errors import MetricInputError, SourceError
from modwatch.data.sources.readers import column_names, read_records
from modwatch.statistics.disagreement import Annotations
from modwatch.statistics.divergence import intersections

_REQUIRED = ("item", "annotator", "label")
#: Columns by meaning.
COLUMNS = {name: name for name in (*_REQUIRED, "time", "prob")}
_SURROGATES = re.compile("[\ud800-\udfff]")
#: By which probabilities of all labels may miss 1, such as 0.33 of each of three.
_ROUNDED = 0.02


@dataclass(frozen=True, kw_only=True)
class AnnotationTable:
    """Annotations, and what the file has about their items and annotators."""

    annotations: Annotations = field(repr=False)
    #: (I,) probability of each item, or (I, K) of each of more than two classes, in the order of
    #: `annotations.items`; None: not in the file.
    y_prob: NDArray[np.float64] | None = field(repr=False)
    #: Group of each annotator by grouping.
    groups: Mapping[str, pd.Series] = field(repr=False)


def read_annotations(
    path: Path,
    *,
    columns: Mapping[str, str] | None = None,
    groups: Sequence[str] = (),
    classes: Sequence[str] | None = None,
) -> AnnotationTable:
    """Return the annotations of a CSV, TSV, JSON lines or Parquet file, one row each.

    Rows are in the order in which labels were given, or are sorted by the column `time`. A later
    label of the same item by the same annotator is a retest.

    Args:
        path: of the file.
        columns: names of the columns `item`, `annotator`, `label`, `time` and `prob`, where they
            have others; `time` and `prob` are used if the file has them. `prob` is the probability
            of the last of two labels; of more there is a column `prob_LABEL` for each, as there may
            be of two.
        groups: attributes of annotators: names of columns, several joined by commas for their
            intersections.
        classes: the labels as texts, the positive one of two last; default: those that occur.

    Raises:
        SourceError: the file cannot be read, a column is missing or contradicts itself, or the
            labels are no annotations, such as labels of one class only. The message names columns
            and numbers of rows, and quotes nothing.
    """
    names = {**COLUMNS, **(columns or {})}
    present = column_names(path)
    if not present:
        raise SourceError(f"{path} is empty; it needs a row of column names, and one an annotation")
    wanted = dict.fromkeys(name for grouping in groups for name in _attributes(grouping))
    _check_columns(path, present, names, wanted)
    needed = [*(names[part] for part in _REQUIRED), *wanted, *(columns or {}).values()]
    if missing := [name for name in dict.fromkeys(needed) if name not in present]:
        raise SourceError(f"{path} has no column {', '.join(missing)}; it has {', '.join(present)}")
    of_classes = [name for name in present if name.startswith(f"{names['prob']}_")]
    used = [
        name for name in dict.fromkeys([*names.values(), *wanted, *of_classes]) if name in present
    ]
    frame = _frame(path, used)
    required = [names[part] for part in _REQUIRED]
    if blank := int(frame[required].isna().any(axis=1).sum()):
        raise SourceError(
            f"{path}: {blank} of {len(frame)} rows have no {', '.join(required[:2])} or "
            f"{required[2]}; drop those rows"
        )
    if names["time"] in frame:
        frame = _in_order(path, frame, names["time"])
    annotations = _annotations(path, frame, names, classes)
    return AnnotationTable(
        annotations=annotations,
        y_prob=_of_model(path, frame, annotations, names["prob"]),
        groups={grouping: _group(path, frame, names["annotator"], grouping) for grouping in groups},
    )


def _attributes(grouping: str) -> list[str]:
    """Return the columns of a grouping.

    >>> _attributes("gender,age")
    ['gender', 'age']
    """
    return list(dict.fromkeys(grouping.split(",")))


def _check_columns(
    path: Path, present: Sequence[str], names: Mapping[str, str], attributes: Collection[str]
) -> None:
    """Raise SourceError if one column is to be two things, or two are one, or one has no name."""
    repeated = sorted({*names.values(), *attributes} & {n for n in present if present.count(n) > 1})
    if repeated:
        raise SourceError(f"{path} has several columns {', '.join(repeated)}; rename all but one")
    if "" in attributes:
        raise SourceError(
            f"{path}: a grouping is the name of a column, or several joined by commas; there is "
            "one without a name"
        )
    used = [names[part] for part in _REQUIRED]
    if twice := sorted({name for name in used if used.count(name) > 1}):
        raise SourceError(
            f"{path}: the column {', '.join(twice)} cannot be two of {', '.join(_REQUIRED)}"
        )
    if names["annotator"] in attributes:
        raise SourceError(
            f"{path}: {names['annotator']} tells annotators apart; groups need an attribute of them"
        )


def _annotations(
    path: Path, frame: pd.DataFrame, names: Mapping[str, str], classes: Sequence[str] | None
) -> Annotations:
    item, annotator, label = (frame[names[part]].astype(str) for part in _REQUIRED)
    if classes is None and len(label) and (label == label.iloc[0]).all():
        raise SourceError(
            f"{path}: all {len(label)} labels are alike; name the labels that could have been "
            "given, too (--classes)"
        )
    try:
        return Annotations.from_columns(
            item=item, annotator=annotator, label=label, classes=classes
        )
    except MetricInputError as exc:
        raise SourceError(f"{path}: {exc}") from exc


def _frame(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """Return the columns as texts; empty ones are missing."""
    rows, malformed = [], 0
    for record in read_records(path):
        malformed += record.problem is not None
        if record.problem is None:
            rows.append([record.values.get(name) for name in columns])
    if malformed:
        raise SourceError(f"{path}: {malformed} rows are malformed; correct or drop them")
    frame = pd.DataFrame(rows, columns=list(columns), dtype=object)
    if foreign := int(frame.map(_undecoded).any(axis=1).sum()):
        raise SourceError(f"{path}: {foreign} rows are not UTF-8; save the file as UTF-8")
    return frame.mask(frame.map(lambda value: isinstance(value, str) and not value.strip()))


def _undecoded(value: object) -> bool:
    """Return whether a text has bytes that are not UTF-8; the readers keep them as surrogates."""
    return isinstance(value, str) and not value.isascii() and bool(_SURROGATES.search(value))


def _in_order(path: Path, frame: pd.DataFrame, time: str) -> pd.DataFrame:
    column = frame[time]
    numbers = pd.to_numeric(column, errors="coerce")
    when = pd.to_datetime(column.astype(str), errors="coerce", utc=True, format="ISO8601")
    order = numbers if numbers.notna().all() else when
    if order.isna().any():
        raise SourceError(
            f"{path}: {int(order.isna().sum())} values of {time} are neither numbers nor times of "
            "ISO 8601; correct them, or rename the column"
        )
    return frame.iloc[np.argsort(order.to_numpy(), kind="stable")]


def _of_model(
    path: Path, frame: pd.DataFrame, annotations: Annotations, name: str
) -> NDArray[np.float64] | None:
    """Return the probability of the last of two classes (I,), or of all (I, K)."""
    if annotations.n_classes == 2 and name in frame:
        return _probabilities(path, frame, annotations, name)
    columns = [f"{name}_{label}" for label in annotations.classes]
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


def _group(path: Path, frame: pd.DataFrame, annotator: str, by: str) -> pd.Series:
    attributes = _attributes(by)
    people = frame[[annotator, *attributes]].drop_duplicates()
    people = people.dropna(subset=attributes, how="all")
    twice = people.loc[people[annotator].duplicated(), annotator].nunique()
    if twice:
        raise SourceError(
            f"{path}: {twice} annotators have several values of {' and '.join(attributes)}; give "
            "each one"
        )
    people = people.assign(**{annotator: people[annotator].astype(str)}).set_index(annotator)
    return intersections(people, attributes).dropna()
