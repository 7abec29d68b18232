"""Reads annotations from a file with one row an annotation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from modwatch.disagreement import Annotations
from modwatch.divergence import intersections
from modwatch.errors import SourceError
from modwatch.ingest.readers import column_names, read_records

#: Columns by meaning; the first three are required.
COLUMNS = {
    "item": "item",
    "annotator": "annotator",
    "label": "label",
    "time": "time",
    "prob": "prob",
}
_REQUIRED = ("item", "annotator", "label")


@dataclass(frozen=True, kw_only=True)
class AnnotationTable:
    """Annotations, and what the file tells of their items and annotators."""

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
            have others; `time` and `prob` are used if the file has them. With more than two labels
            there is a column `prob_LABEL` for each in place of `prob`.
        groups: attributes of annotators: names of columns, several joined by commas for their
            intersections.
        classes: the labels as texts, the positive one of two last; default: those that occur.

    Raises:
        SourceError: the file cannot be read, or a column is missing, or contradicts itself. The
            message names columns and numbers of rows, and quotes nothing.
        MetricInputError: the labels are no annotations, such as labels of one class only.
    """
    names = {**COLUMNS, **(columns or {})}
    present = column_names(path)
    wanted = dict.fromkeys(name for each in groups for name in each.split(","))
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
    annotations = Annotations.of(
        item=frame[names["item"]].astype(str),
        annotator=frame[names["annotator"]].astype(str),
        label=frame[names["label"]].astype(str),
        classes=classes,
    )
    return AnnotationTable(
        annotations=annotations,
        y_prob=_of_model(path, frame, annotations, names["prob"]),
        groups={each: _group(path, frame, names["annotator"], each) for each in groups},
    )


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
    return frame.mask(frame.map(lambda value: isinstance(value, str) and not value.strip()))


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
    """Return the probability of the last of two classes (I,), or of all of more (I, K)."""
    if annotations.n_classes == 2:
        return _probabilities(path, frame, annotations, name) if name in frame else None
    columns = [f"{name}_{each}" for each in annotations.classes]
    if set(columns) <= set(frame):
        of_classes = [_probabilities(path, frame, annotations, each) for each in columns]
        return np.stack(of_classes, axis=1)
    if name in frame:
        raise SourceError(
            f"{path}: there are {annotations.n_classes} labels; give the probability of each in a "
            f"column {name}_LABEL, in place of {name}"
        )
    return None


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
    attributes = by.split(",")
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
