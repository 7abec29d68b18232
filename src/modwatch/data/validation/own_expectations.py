"""The expectations of an installation: a suite of Great Expectations in expectations.json.

Expectations on single rows are evaluated in chunks and their counts added up; the others get their
columns whole. Texts are too large for that and are represented by hashes, which are as unique.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from modwatch.common.columns import Column, grouped
from modwatch.common.errors import SettingsError
from modwatch.data.lake.schemas import SCORES, schema_of
from modwatch.data.validation.expectations import CHUNK_ROWS, chunks, counted, great_expectations
from modwatch.data.validation.ids import siphash
from modwatch.data.validation.result import Measure, RuleResult, Severity
from modwatch.data.validation.rows import absent
from modwatch.data.validation.rules import Rule, Thresholds, day_parameters

#: Expectations on single rows: these get the values of any column.
ROW_WISE = frozenset(
    {
        "expect_column_pair_values_a_to_be_greater_than_b",
        "expect_column_pair_values_to_be_equal",
        "expect_column_value_lengths_to_be_between",
        "expect_column_value_lengths_to_equal",
        "expect_column_values_to_be_between",
        "expect_column_values_to_be_in_set",
        "expect_column_values_to_be_null",
        "expect_column_values_to_match_regex",
        "expect_column_values_to_match_regex_list",
        "expect_column_values_to_not_be_in_set",
        "expect_column_values_to_not_be_null",
        "expect_column_values_to_not_match_regex",
        "expect_column_values_to_not_match_regex_list",
    }
)
_NULLS = frozenset({"expect_column_proportion_of_non_null_values_to_be_between"})
_EQUALITY = frozenset(
    {
        "expect_column_proportion_of_unique_values_to_be_between",
        "expect_column_unique_value_count_to_be_between",
        "expect_column_values_to_be_unique",
        "expect_compound_columns_to_be_unique",
    }
)
_VALUES = frozenset(
    {
        "expect_column_distinct_values_to_be_in_set",
        "expect_column_distinct_values_to_contain_set",
        "expect_column_distinct_values_to_equal_set",
        "expect_column_max_to_be_between",
        "expect_column_mean_to_be_between",
        "expect_column_median_to_be_between",
        "expect_column_min_to_be_between",
        "expect_column_most_common_value_to_be_in_set",
        "expect_column_quantile_values_to_be_between",
        "expect_column_stdev_to_be_between",
        "expect_column_sum_to_be_between",
    }
)
_TABLE = frozenset({"expect_table_row_count_to_be_between", "expect_table_row_count_to_equal"})
SUPPORTED = ROW_WISE | _NULLS | _EQUALITY | _VALUES | _TABLE

#: A column that is not stored: the length of the text in characters.
_LENGTH = pa.field("text_length", pa.int32())
_LEFT_OUT = ("dt", "row", "groups", "label", "role", "salt")


def expected_tables(own: Sequence[Column] = ()) -> Mapping[str, pa.Schema]:
    """Return the columns that expectations may name, by table; with the platform's `own`.

    >>> [*expected_tables()]
    ['comments', 'scores']
    """
    comments = (f for f in schema_of("comments", own) if f.name not in _LEFT_OUT)
    scores = (f for f in SCORES if f.name not in _LEFT_OUT)
    return {"comments": pa.schema([*comments, _LENGTH]), "scores": pa.schema([*scores])}


#: What expectations may refer to as `$PARAMETER`, besides the thresholds.
_OF_DAY = ("day_start", "day_end", "trailing_median_rows")

#: What Great Expectations can compute with them.
_FUNCTIONS = ("abs", "round", "trunc")

#: Arguments that are compared with values of the column, and the expectations that compare them.
_COMPARED = ("min_value", "max_value", "value_set", "quantile_ranges")
_COMPARING = _VALUES - {"expect_column_stdev_to_be_between"} | {
    "expect_column_values_to_be_between",
    "expect_column_values_to_be_in_set",
    "expect_column_values_to_not_be_in_set",
}

_LONGEST = 200


def load_expectations(path: Path, own: Sequence[Column] = ()) -> tuple[Rule, ...]:
    """Return the expectations of a file, each for the batch `comments` or `scores`.

    They may name the columns of comments and scores, and the platform's `own`.

    Suites of Great Expectations before 1.0, which write `expectation_type`, are read, too. Times
    without a zone are UTC. Each expectation is tried on invented rows: one that cannot be evaluated
    is named.

    Raises:
        SettingsError: the file cannot be read, or an expectation cannot be evaluated on the day.
    """
    where = str(path)
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as exc:
        raise SettingsError(
            f"{where} cannot be read as JSON ({type(exc).__name__}); correct the path, or save the "
            "suite as Great Expectations does: docs/validation.md"
        ) from exc
    configs = found.get("expectations") if isinstance(found, dict) else None
    if not isinstance(configs, list):
        raise SettingsError(
            f"{where} has no list `expectations`; save the suite as Great Expectations does: "
            "docs/validation.md"
        )
    rules, faults = [], []
    for number, config in enumerate(configs, start=1):
        try:
            rules.append(_rule(config, f"expectation {number}", path, own))
        except SettingsError as exc:
            faults.append(str(exc))
    if faults:
        raise SettingsError(f"{where}: {'; '.join(faults)}: docs/validation.md")
    return tuple(rules)


def _rule(config: Any, where: str, path: Path, own: Sequence[Column]) -> Rule:
    """Return one expectation of the file as a rule."""
    _require(isinstance(config, dict), where, "is not an object; write `type` and `kwargs`")
    name = config.get("type", config.get("expectation_type"))  # the latter before version 1.0
    kwargs = config.get("kwargs", {})
    _require(
        name in SUPPORTED, where, f"has the type {name!r}, which is not supported; choose another"
    )
    where = f"{where} ({name})"
    _require(isinstance(kwargs, dict), where, "has no object `kwargs`; write its arguments")
    _require(
        kwargs.get("row_condition") is None,
        where,
        "has a row_condition, which is not supported; remove it",
    )
    severity = config.get("severity", "warning")
    _require(
        severity in get_args(Severity),
        where,
        f"has the severity {severity!r}; choose {', '.join(get_args(Severity))}",
    )
    meta = (config.get("meta") or {}).get("modwatch") or {}
    table, tables = meta.get("table", "comments"), expected_tables(own)
    _require(table in tables, where, f"is for the table {table!r}; choose {' or '.join(tables)}")
    kwargs = {key: value for key, value in kwargs.items() if key != "severity"}
    shown = ", ".join(f"{key} {value}" for key, value in kwargs.items() if "column" not in key)
    rule = Rule(
        name=str(meta.get("rule") or name),
        type=name,
        kwargs=kwargs,
        severity=severity,
        batch=table,
        allowed=shown if len(shown) < _LONGEST else f"{shown[:_LONGEST]}…",
        expectation=str(config.get("description") or f"an expectation of {path.name}"),
        remedy=str(meta.get("remedy") or f"See the expectation in {path.name}."),
        own=True,
    )
    _check_columns(rule, where, tables[table], (*grouped(own), "model_version"))
    types = [tables[table].field(column).type for column in rule.columns]
    if name in _COMPARING and any(map(pa.types.is_timestamp, types)):
        _require("most_common" not in name, where, "finds no times; use the minimum or maximum")
        times = {key: _times(kwargs[key], where) for key in _COMPARED if key in kwargs}
        rule = replace(rule, kwargs=kwargs | times)
    _check_arguments(rule, where)
    _check_values(rule, where, tables[table])
    return rule


def _times(given: Any, where: str) -> Any:
    """Return an argument with its texts as times, UTC where they name no zone."""
    if isinstance(given, list):
        return [_times(each, where) for each in given]
    if isinstance(given, dict):  # quantiles with their ranges, or a parameter
        ranges = given.get("value_ranges")
        return given if ranges is None else {**given, "value_ranges": _times(ranges, where)}
    if given is None:
        return None
    try:
        moment = datetime.fromisoformat(given)
    except (TypeError, ValueError):
        raise SettingsError(
            f"{where} compares times with {str(given)[:_LONGEST]!r}; write a time such as "
            "2026-01-31T00:00:00+00:00"
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _require(condition: object, where: str, fault: str) -> None:
    if not condition:
        raise SettingsError(f"{where} {fault}")


def _check_columns(rule: Rule, where: str, table: pa.Schema, categories: Collection[str]) -> None:
    """Raise SettingsError for a column that the table lacks, or that is too large to read whole."""
    for column in rule.columns:
        _require(
            column in table.names,
            where,
            f"names the column {column!r}, which {rule.batch} do not have; choose one of "
            f"{', '.join(table.names)}",
        )
        whole = rule.type in _VALUES and table.field(column).type == pa.string()
        _require(
            not whole or column in categories,
            where,
            f"reads all values of {column!r}, which is too large; use {', '.join(categories)} or "
            "text_length, or an expectation on single rows",
        )


def _check_arguments(rule: Rule, where: str) -> None:
    """Raise SettingsError for unknown parameters, and arguments that Great Expectations rejects."""
    known = {*Thresholds().words(), *_OF_DAY}
    kwargs = dict(rule.kwargs)
    for parameter in _parameters(kwargs):
        _require(
            parameter in known,
            where,
            f"refers to the parameter {parameter!r}; use one of {', '.join(sorted(known))}",
        )
    try:
        config = {"type": rule.type, "kwargs": kwargs}
        great_expectations().ExpectationSuite(name="own", expectations=[config])
    except Exception as exc:
        reason = str(exc).strip().splitlines()[-1].strip()
        raise SettingsError(f"{where} has invalid kwargs ({reason})") from exc


def _check_values(rule: Rule, where: str, schema: pa.Schema) -> None:
    """Raise SettingsError for an expectation that raises an error on two invented rows."""
    words = day_parameters(date(2026, 1, 5), Thresholds(), schema) | {"trailing_median_rows": 2.0}
    check = TableCheck(rules=[rule], parameters=words)
    check.add({name: _invented(schema.field(name).type) for name in check.columns}, 2)
    fault = "cannot be evaluated on values of its columns; use other arguments, or other columns"
    try:
        (result,) = check.own_results()
    except Exception as exc:  # a parameter of another type than the argument
        raise SettingsError(f"{where} {fault}") from exc
    _require(result.observed != _NOT_EVALUATED.observed, where, fault)


def _invented(kind: pa.DataType) -> pa.Array:
    """Return two values of a type."""
    if pa.types.is_timestamp(kind):
        noon = datetime(2026, 1, 5, 12, tzinfo=UTC)
        return pa.array([noon, noon + timedelta(hours=1)], kind)
    return pa.array(["a", "b"]) if kind == pa.string() else pa.array([0, 1]).cast(kind)


def _parameters(kwargs: Any) -> list[str]:
    """Return the names of all parameters that arguments refer to."""
    if isinstance(kwargs, dict):
        words = re.findall(r"[A-Za-z_]\w*", str(kwargs.get("$PARAMETER", "")))
        named = [word for word in words if word not in _FUNCTIONS]
        return [*named, *(name for value in kwargs.values() for name in _parameters(value))]
    if isinstance(kwargs, list):
        return [name for value in kwargs for name in _parameters(value)]
    return []


@dataclass(kw_only=True)
class TableCheck:
    """Evaluates rules on a table of the day that is read as a stream."""

    #: Of one table.
    rules: Sequence[Rule]
    #: The values of what they refer to; a rule that refers to another name is skipped.
    parameters: Mapping[str, Any]
    _rows: int = 0
    _buffered: list[dict[str, pa.Array]] = field(default_factory=list)
    _counts: dict[Rule, "_Counts"] = field(default_factory=dict)
    _kept: list[dict[tuple[str, frozenset[str]], Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        known = [r for r in self.rules if {*_parameters(dict(r.kwargs))} <= {*self.parameters}]
        self._row_wise = [rule for rule in known if rule.own and rule.type in ROW_WISE]
        self._whole = [rule for rule in known if rule not in self._row_wise]

    @property
    def columns(self) -> list[str]:
        """The stored columns that the rules read."""
        named = {column for rule in self.rules for column in rule.columns}
        return sorted(named - {_LENGTH.name} | ({"text"} if _LENGTH.name in named else set()))

    def add(self, columns: Mapping[str, pa.Array], rows: int) -> None:
        """Take the next rows of the table: `columns` has those that the rules read."""
        self._rows += rows
        given = {name: _without_blanks(column) for name, column in columns.items()}
        if "text" in given:
            given[_LENGTH.name] = pc.utf8_length(given["text"])
        wanted = {(name, kind) for rule, kind in self._kinds() for name in rule.columns}
        self._kept.append({(name, kind): _light(given[name], kind) for name, kind in wanted})
        if self._row_wise:
            names = {name for rule in self._row_wise for name in rule.columns}
            self._buffered.append({name: given[name] for name in names})
            if sum(len(next(iter(part.values()))) for part in self._buffered) >= CHUNK_ROWS:
                self._count()

    def own_results(self) -> tuple[RuleResult, ...]:
        """Return the outcome of every expectation of the file."""
        self._count()
        found = {rule: self._counts[rule].outcome(rule) for rule in self._row_wise if self._rows}
        for kind in {k for r, k in self._kinds() if r.own and (self._rows or k is _TABLE)}:
            rules = [rule for rule, its in self._kinds() if rule.own and its is kind]
            results = counted(self._frame(rules, kind), rules, self.parameters)
            found |= {r: _outcome(result) for r, result in zip(rules, results, strict=True)}
        skipped = Measure(value=None, observed="skipped: there is nothing to compare with"), True
        outcomes = ((rule, *found.get(rule, skipped)) for rule in self.rules if rule.own)
        return tuple(rule.result(measure, passed=passed) for rule, measure, passed in outcomes)

    def presence(self) -> pd.DataFrame:
        """Return the columns that the rules on missing values read: null or not."""
        return self._frame([rule for rule, kind in self._kinds() if kind is _NULLS], _NULLS)

    def _kinds(self) -> list[tuple[Rule, frozenset[str]]]:
        """Return the rules on whole columns, each with the kind of expectation that it is."""
        kinds = (_NULLS, _EQUALITY, _VALUES, _TABLE)
        return [(rule, next(k for k in kinds if rule.type in k)) for rule in self._whole]

    def _frame(self, rules: Sequence[Rule], kind: frozenset[str]) -> pd.DataFrame:
        """Return the columns that rules of a kind read."""
        names = sorted({name for rule in rules for name in rule.columns})
        columns = {name: [part[name, kind] for part in self._kept] for name in names}
        if kind is _NULLS or not names:
            present, missing = np.float16(1), np.float16("nan")
            whole = {name: np.concatenate([*parts, _NO_ROWS]) for name, parts in columns.items()}
            frame = {name: np.where(valid, present, missing) for name, valid in whole.items()}
            return pd.DataFrame(frame, index=range(self._rows))
        table = pa.table({name: pa.chunked_array(parts) for name, parts in columns.items()})
        mapper = {pa.uint64(): pd.UInt64Dtype()}.get
        values: pd.DataFrame = table.unify_dictionaries().to_pandas(types_mapper=mapper)
        return values

    def _count(self) -> None:
        """Evaluate the expectations on single rows on the rows that are waiting."""
        for chunk in chunks(self._buffered):
            frame = pa.table(chunk).to_pandas()
            results = counted(frame, self._row_wise, self.parameters)
            for rule, result in zip(self._row_wise, results, strict=True):
                self._counts.setdefault(rule, _Counts()).add(result)
        self._buffered = []


_NO_ROWS = np.empty(0, dtype=bool)


@dataclass(kw_only=True)
class _Counts:
    """Rows of an expectation on single rows, over all chunks."""

    judged: int = 0
    failing: int = 0
    evaluated: bool = True

    def add(self, result: Any) -> None:
        if result is None:
            self.evaluated = False
            return
        counts = result.result
        self.judged += counts["element_count"] - counts.get("missing_count", 0)
        self.failing += counts["unexpected_count"]

    def outcome(self, rule: Rule) -> tuple[Measure, bool]:
        if not self.evaluated:
            return _NOT_EVALUATED, False
        held = (self.judged - self.failing) / self.judged if self.judged else 1.0
        passed = held >= float(rule.kwargs.get("mostly", 1.0))
        return Measure.from_count(self.failing, self.judged), passed


#: An expectation that raised an error, such as the mean of a column without values, has not passed.
_NOT_EVALUATED = Measure(
    value=None, observed="Great Expectations could not evaluate it on the values of the day"
)


def _outcome(result: Any) -> tuple[Measure, bool]:
    """Return the outcome of an expectation on whole columns; only numbers are shown of it."""
    if result is None:
        return _NOT_EVALUATED, False
    value = result.result.get("observed_value", result.result.get("unexpected_count"))
    passed = bool(result.success)
    if isinstance(value, int | float | np.number) and not isinstance(value, bool):
        return Measure(value=float(value), observed=f"{float(value):,.6g}"), passed
    return Measure(value=float(not passed), observed="as expected" if passed else "other"), passed


def _without_blanks(column: pa.Array) -> pa.Array:
    """Return the column with null for what counts as missing: an empty string, too."""
    if column.type != pa.string():
        return column
    return pc.if_else(absent(column), pa.scalar(None, pa.string()), column)


def _light(column: pa.Array, kind: frozenset[str]) -> Any:
    """Return what an expectation of a kind needs of a column, in little memory."""
    if kind is _NULLS:
        return np.asarray(column.is_valid())
    if column.type != pa.string():
        return column
    if kind is _VALUES:
        return column.dictionary_encode()
    missing = column.is_null()
    hashes = siphash(pc.fill_null(column, ""))
    return pa.array(hashes, pa.uint64(), mask=missing.to_numpy(zero_copy_only=False))
