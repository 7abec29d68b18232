"""Validation of a day's comments."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from math import ceil, floor
from statistics import median
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from modwatch.common.columns import Column
from modwatch.common.columns import profiled as profiled_columns
from modwatch.common.errors import CheckError
from modwatch.data.lake.schemas import schema_of
from modwatch.data.validation.expectations import CHUNK_ROWS, chunks, failing_rows, judged_day
from modwatch.data.validation.ids import IdIndex
from modwatch.data.validation.losses import Losses
from modwatch.data.validation.own_expectations import TableCheck
from modwatch.data.validation.profiles import (
    measure_of,
    profile_comments,
    skipped,
    too_few_days,
    trailing_findings,
)
from modwatch.data.validation.result import (
    InvalidRows,
    Measure,
    RuleResult,
    ValidationResult,
    joined,
    percentage,
)
from modwatch.data.validation.rows import bools, columns_of, is_valid, schema_faults
from modwatch.data.validation.rules import (
    Rule,
    Thresholds,
    day_parameters,
    missing_share_rule,
    reason_codes,
    suite_rules,
    validated,
)
from modwatch.statistics.drift.day_comparison import with_column
from modwatch.statistics.drift.profile import Profile, pooled
from modwatch.statistics.drift.seasons import NO_CALENDAR, Calendar, Volume, season, usual_factor

log = logging.getLogger(__name__)

_PROBLEM = r"^[a-z][a-z0-9_]{0,47}$"

#: Strings that are not stored on.
_NOT_STORED = ("origin", "problem")

#: What the rules on single rows read, besides the number of NUL bytes.
_READ = ("comment_id", "created_at", "text", "language", "prob", "flagged", "model_version")

_VOLUME_RULES = ("volume_collapse", "volume_shift", "empty_day")

_SCORE_BATCHES = ("own_scores", "scored_comments")

#: Mixes of the profile that a rule compares with the trailing days.
_COMPARED_MIXES = ("language", "detected_language", "script")


@dataclass(frozen=True, kw_only=True)
class ValidatedComments:
    """The validation result of a day's comments, its invalid rows, and its profile."""

    result: ValidationResult
    invalid: InvalidRows
    #: The comments part.
    profile: Profile


def validate_comments(
    landed: Callable[..., Iterable[pa.RecordBatch]],
    *,
    day: date,
    earlier_ids: Iterable[pa.Array] = (),
    later_ids: Iterable[tuple[date, pa.Array]] = (),
    trailing: Sequence[Profile] = (),
    volumes: Mapping[date, Volume] = MappingProxyType({}),
    calendar: Calendar = NO_CALENDAR,
    thresholds: Thresholds | None = None,
    own_scores: bool = False,
    expectations: Sequence[Rule] = (),
    declared_empty_by: str | None = None,
    elsewhere: str = "",
    own: Sequence[Column] = (),
) -> ValidatedComments:
    """Validate a day's landed rows, then the valid ones as a whole.

    Memory is about 100 bytes a row, besides the rows that are evaluated at once.

    Args:
        landed: returns rows of `schemas.LANDED` in any order; `columns` names those that are
            needed. Called two or three times.
        day: the UTC day that they belong to.
        earlier_ids: comment ids that earlier days published, in chunks; streamed once.
        later_ids: those of later days, as a day that is run again has; streamed once.
        trailing: profiles of the days to compare with.
        volumes: of earlier days, for the season of the day's (`statistics.drift.seasons`).
        calendar: days that people know to be unusual.
        thresholds: the bounds; None stands for the defaults.
        own_scores: the source brings scores; then every row needs one. A day of which any row has
            a score is treated alike.
        expectations: those of `load_expectations`.
        declared_empty_by: who said that the day has no rows; then its volume is not compared.
        elsewhere: what the source has of impossible days, in words; may be empty.
        own: the columns of the platform.

    Raises:
        CheckError: `row` does not number the rows 0…N−1, they changed between the calls, or Great
            Expectations could not evaluate a rule.
    """
    bounds = _usual_volume(thresholds or Thresholds(), usual_factor(day, volumes))
    own_scores = own_scores or _has_scores(landed(columns=["prob", "flagged"]))
    rules = [
        rule
        for rule in suite_rules("comments", bounds, own)
        if own_scores or rule.batch not in _SCORE_BATCHES
    ]
    schema = schema_of("landed", own)
    parameters = _parameters(day, bounds, trailing, schema, validated(own))
    rows = _check_rows(
        landed(), rules, parameters, schema, day=day, earlier_ids=earlier_ids, later_ids=later_ids
    )
    invalid = rows.invalid
    table = TableCheck(
        rules=[rule for rule in (*rules, *expectations) if rule.batch == "comments"],
        parameters=parameters,
    )
    losses = Losses(invalid=invalid)
    columns = dict.fromkeys([*losses.columns, "text", *profiled_columns(own), *table.columns])
    stored = pa.schema([schema_of("comments", own).field(name) for name in table.columns])
    again = _checked(losses.reading(landed(columns=[*columns])), invalid, table, stored)
    profile = profile_comments(again, invalid, own)
    measures = _measures(
        profile, rows.schema_faults, trailing, bounds, validated(own), elsewhere=elsewhere
    )
    if declared_empty_by:
        declared = skipped(f"{declared_empty_by} declared that the day has no comments")
        measures |= dict.fromkeys(_VOLUME_RULES, declared)
    shift = measures["volume_shift"]
    if known := season(day, Volume(rows=profile.landed, ratio=shift.value), volumes, calendar):
        planned = calendar.explanation(day, shift.value or 0.0)
        explained = _VOLUME_RULES if planned else ("volume_shift",)
        measures |= dict.fromkeys(explained, skipped(f"{shift.observed}; {known}"))
    by_day = ", ".join(f"{count:,} of {day}" for day, count in sorted(rows.later.items()))
    measures["ids_of_later_days"] = Measure(value=rows.later.total(), observed=by_day or "none")
    versions = rows.version[invalid.reason == 0]
    count = np.unique(versions).size
    measures["several_model_versions"] = Measure(value=count, observed=f"{count:,}")
    measures |= _loss_measures(losses, profile.comments)
    profiled = {
        **{f"{mix}_divergence": measures[f"{mix}_shift"].value for mix in _COMPARED_MIXES},
        **{name: measures[name].value for name in ("values_left_out", "concentrated_loss")},
        "ids_of_later_days": rows.later.total(),
    }
    frames = {
        "columns": pd.DataFrame(columns=rows.columns),
        "day": pd.DataFrame({"quarantined": invalid.reason > 0}),
        "comments": table.presence(),
        "profile": pd.DataFrame([profiled]),
        "scored_comments": pd.DataFrame({"model_version": versions}),
    }
    tolerated = bounds.tolerated_rows / max(profile.landed, 1) if profile.comments else 0.0
    parameters["quarantined_most"] = max(bounds.quarantined_critical, tolerated)
    result = ValidationResult(
        suite="comments",
        day=day,
        rows=profile.landed,
        valid=profile.comments,
        results=(
            *judged_day(rules, measures, parameters, frames),
            *rows.results,
            *table.own_results(),
        ),
        quarantined=invalid.counts(),
        left_out=dict(losses.faults.most_common()),
    )
    level = logging.INFO if result.status == "passed" else logging.WARNING
    log.log(level, result.summary, extra={"event": "comments_checked", "status": result.status})
    return ValidatedComments(result=result, invalid=invalid, profile=profile)


def _has_scores(batches: Iterable[pa.RecordBatch]) -> bool:
    return any(
        column.null_count < len(column)
        for batch in batches
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
        if name in ("prob", "flagged")
    )


def _usual_volume(bounds: Thresholds, factor: float) -> Thresholds:
    """Return thresholds of the volume that are as close as the volumes of other days."""
    low, high = max(bounds.low_volume, 1 / factor), min(bounds.high_volume, factor)
    return replace(bounds, low_volume=low, high_volume=high)


def _parameters(
    day: date,
    bounds: Thresholds,
    trailing: Sequence[Profile],
    schema: pa.Schema,
    compared: Sequence[str],
) -> dict[str, Any]:
    """Return what expectations refer to: the thresholds, the day, and bounds by trailing days."""
    known = day_parameters(day, bounds, schema)
    if len(trailing) < bounds.min_trailing_days:
        return known
    usual, before = median(past.landed for past in trailing), pooled(trailing)
    present = {
        name: 1 - before.missing.get(name, 0) / max(sum(past.comments for past in days), 1)
        for name in compared
        if (days := with_column(trailing, name))
    }
    change = bounds.missing_share_change
    return {
        **known,
        "trailing_median_rows": usual,
        "collapsed_rows": ceil(round(bounds.collapsed_volume * usual, 6)),
        "low_rows": ceil(round(bounds.low_volume * usual, 6)),
        "high_rows": floor(round(bounds.high_volume * usual, 6)),
        **{f"least_{name}": max(share - change, 0.0) for name, share in present.items()},
        **{f"most_{name}": min(share + change, 1.0) for name, share in present.items()},
    }


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """The N landed rows of a day, each judged."""

    invalid: InvalidRows
    results: tuple[RuleResult, ...]
    #: (N,) int64: equal for rows with the same comment_id, N without one.
    id_group: NDArray[np.int64]
    #: (N,) int32: equal for rows with the same model version, −1 without one.
    version: NDArray[np.int32]
    #: Valid comments that later days have, too, by day.
    later: Counter[date]
    #: The columns that are as they should be, and a sentence for each other one.
    columns: tuple[str, ...]
    schema_faults: tuple[str, ...]


def _check_rows(
    batches: Iterable[pa.RecordBatch],
    rules: Sequence[Rule],
    parameters: Mapping[str, Any],
    schema: pa.Schema,
    *,
    day: date,
    earlier_ids: Iterable[pa.Array],
    later_ids: Iterable[tuple[date, pa.Array]],
) -> _Rows:
    """Judge each row by itself, then the ids of those that passed; an invalid row takes no id."""
    by_row = [rule for rule in rules if rule.level == "row"]
    codes = reason_codes(by_row)
    failing: Counter[Rule] = Counter()
    problems: dict[str, int] = {}
    versions: dict[str, int] = {}
    found = _Schemas(expected=schema, columns=tuple(schema.names))
    ids: list[pa.Array] = []
    parts = [_NO_ROWS]
    for chunk in chunks(found.reading(batches)):
        ids.append(chunk["comment_id"])
        part = {
            "row": pc.fill_null(chunk["row"], -1).to_numpy(),
            "problem": _numbered(_named(chunk["problem"]), problems) + 1,
            "version": _numbered(chunk["model_version"], versions),
            "reason": np.zeros(len(chunk["row"]), np.int16),
        }
        for positions, rule in _failing(chunk, by_row, parameters):
            failing[rule] += len(positions)
            empty = positions[part["reason"][positions] == 0]
            part["reason"][empty] = codes[rule.name]
        parts.append(part)
    facts = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    groups, shared = _id_groups(ids, earlier_ids, later_ids)
    facts |= groups
    facts = _in_row_order(facts, day)
    reason, rows = facts["reason"], len(facts["reason"])
    good = np.flatnonzero(reason == 0)
    judged = {rule: rows if rule.batch != "ids" else len(good) for rule in by_row}
    for positions, rule in _failing_ids(facts, good, by_row, parameters):
        failing[rule] += len(positions)
        empty = positions[reason[positions] == 0]
        reason[empty] = codes[rule.name]
    unreadable = facts["problem"] > 0
    reason = np.where(unreadable, facts["problem"], reason + len(problems) * (reason > 0))
    measures = {rule: Measure.from_count(failing[rule], judged[rule]) for rule in by_row}
    invalid = InvalidRows(day=day, reason=reason.astype(np.int16), reasons=(*problems, *codes))
    return _Rows(
        invalid=replace(invalid, conflict=_first_conflict(invalid, facts["id_group"])),
        results=tuple(rule.result(m, passed=m.value == 0) for rule, m in measures.items()),
        id_group=facts["id_group"],
        version=facts["version"],
        later=_counted_later(facts["id_group"][reason == 0], shared),
        columns=found.columns,
        schema_faults=found.faults,
    )


#: Gives every array its type on a day without rows.
_NO_ROWS: dict[str, NDArray[Any]] = {
    "row": np.empty(0, np.int64),
    "problem": np.empty(0, np.int32),
    "version": np.empty(0, np.int32),
    "reason": np.empty(0, np.int16),
}


@dataclass
class _Schemas:
    """The columns of a day's batches, as far as they are the expected ones."""

    expected: pa.Schema
    columns: tuple[str, ...]
    faults: tuple[str, ...] = ()

    def reading(self, batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, pa.Array]]:
        """Yield the columns of each batch, and keep the first faults."""
        for batch in batches:
            if not self.faults:
                self.faults, self.columns = schema_faults(batch.schema, self.expected)
            yield columns_of(batch, self.expected)


def _failing(
    chunk: Mapping[str, pa.Array], rules: Sequence[Rule], parameters: Mapping[str, Any]
) -> Iterator[tuple[NDArray[np.int64], Rule]]:
    """Yield for each rule the rows of a chunk that fail it. Unreadable rows have no other fault."""
    of_record = [rule for rule in rules if rule.batch == "landed"]
    others = [rule for rule in rules if rule.batch in ("rows", "own_scores")]
    records = pd.DataFrame({"problem": chunk["problem"].to_pandas()})
    yield from zip(failing_rows(records, of_record, parameters), of_record, strict=True)
    readable = chunk["problem"].is_null()
    at = np.flatnonzero(bools(readable))
    # Filtered before NUL bytes are looked for, which takes the longest.
    # Strings are stored in PostgreSQL, too, which cannot hold a NUL.
    stored = [n for n, c in chunk.items() if c.type == pa.string() and n not in _NOT_STORED]
    columns = {name: chunk[name].filter(readable) for name in (*stored, *_READ, "groups")}
    frame = pa.table({name: columns[name] for name in _READ}).to_pandas()
    frame["nul_bytes"] = _nul_bytes(columns, stored)
    for positions, rule in zip(failing_rows(frame, others, parameters), others, strict=True):
        yield at[positions], rule


def _nul_bytes(columns: Mapping[str, pa.Array], stored: Sequence[str]) -> NDArray[np.int32]:
    """Return (k,) how many of the stored strings of each row contain a NUL byte."""
    found = np.zeros(len(columns["text"]), dtype=np.int32)
    for name in stored:
        found += bools(pc.match_substring(columns[name], "\x00"))
    nul = bools(pc.match_substring(pc.list_flatten(columns["groups"]), "\x00"))
    np.add.at(found, pc.list_parent_indices(columns["groups"]).to_numpy()[nul], 1)
    return found


def _id_groups(
    ids: list[pa.Array],
    earlier_ids: Iterable[pa.Array],
    later_ids: Iterable[tuple[date, pa.Array]],
) -> tuple[dict[str, NDArray[Any]], list[tuple[date, NDArray[np.int64]]]]:
    """Return which rows share an id, and which have one of an earlier day; take all of `ids`.

    The second result is the ids of later days, as they are numbered here.
    """
    index = IdIndex.from_chunks(ids)
    ids.reverse()
    groups = [index.positions(ids.pop()) for _ in range(len(ids))]
    id_group = np.concatenate([np.empty(0, np.int64), *groups])
    earlier = np.zeros(len(index.ids) + 1, dtype=bool)
    for chunk in earlier_ids:
        earlier[index.positions(chunk)] = True
    earlier[-1] = False  # the position of ids that are not of this day
    later = [(day, index.positions(chunk)) for day, chunk in later_ids]
    return {"id_group": id_group, "published_before": earlier[id_group]}, later


def _counted_later(
    valid: NDArray[np.int64], shared: Iterable[tuple[date, NDArray[np.int64]]]
) -> Counter[date]:
    """Return how many ids of valid rows each later day has."""
    found: Counter[date] = Counter()
    for day, ids in shared:
        found[day] += int(np.isin(ids, valid).sum())
    return +found


def _failing_ids(
    facts: Mapping[str, NDArray[Any]],
    good: NDArray[np.int64],
    rules: Sequence[Rule],
    parameters: Mapping[str, Any],
) -> Iterator[tuple[NDArray[np.int64], Rule]]:
    """Yield for each rule on ids the rows that fail it, of the `good` ones.

    In chunks that hold all rows of their ids. Of rows with one id, the first keeps it.
    """
    of_ids = [rule for rule in rules if rule.batch == "ids"]
    in_order = good[np.argsort(facts["id_group"][good], kind="stable")]
    groups, start = facts["id_group"][in_order], 0
    while start < len(in_order):
        last = groups[min(start + CHUNK_ROWS, len(in_order)) - 1]
        stop = int(np.searchsorted(groups, last, side="right"))
        rows, here = in_order[start:stop], groups[start:stop]
        frame = pd.DataFrame(
            {"comment_id": here, "published_before": facts["published_before"][rows]}
        )
        for positions, rule in zip(failing_rows(frame, of_ids, parameters), of_ids, strict=True):
            first = np.unique(here[positions], return_index=True)[1]
            unique = rule.type == "expect_column_values_to_be_unique"
            yield rows[np.delete(positions, first) if unique else positions], rule
        start = stop


def _named(problem: pa.Array) -> pa.Array:
    """Return the problems, `unreadable` for what is no name."""
    well_named = pc.match_substring_regex(problem, _PROBLEM)
    return pc.if_else(well_named, problem, "unreadable")


def _numbered(names: pa.Array, known: dict[str, int]) -> NDArray[np.int32]:
    """Return (k,) int32: the number of each name, which `known` keeps; −1 for a null."""
    encoded = pc.dictionary_encode(names)
    codes = [known.setdefault(name, len(known)) for name in encoded.dictionary.to_pylist()]
    indices = pc.fill_null(encoded.indices, len(codes)).to_numpy()
    return np.asarray(np.array([*codes, -1], dtype=np.int32)[indices])


def _in_row_order(facts: dict[str, NDArray[Any]], day: date) -> dict[str, NDArray[Any]]:
    """Return the facts sorted by `row`, which must number them 0…N−1."""
    order = np.argsort(facts["row"], kind="stable")
    if not np.array_equal(facts["row"][order], np.arange(len(order))):
        raise CheckError(
            f"Column row does not number the {len(order)} landed comments of {day} from 0; "
            "ingest the day again."
        )
    return {name: facts.pop(name)[order] for name in [*facts]}


def _checked(
    batches: Iterable[pa.RecordBatch], invalid: InvalidRows, table: TableCheck, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the batches, whose valid rows `table` takes, in the columns of `schema`."""
    for batch in batches:
        valid = pa.array(is_valid(batch, invalid))
        columns = columns_of(batch, schema)
        table.add({name: c.filter(valid) for name, c in columns.items()}, valid.true_count)
        yield batch


def _first_conflict(invalid: InvalidRows, id_group: NDArray[np.int64]) -> tuple[int, ...]:
    """Return the first row whose id another one keeps, and that one; nothing if there is none."""
    rows = np.flatnonzero(invalid.failing("duplicate_id"))
    if not rows.size:
        return ()
    keeper = np.flatnonzero((invalid.reason == 0) & (id_group == id_group[rows[0]]))
    return int(rows[0]), int(keeper[0])


def _measures(
    today: Profile,
    faults: Sequence[str],
    trailing: Sequence[Profile],
    bounds: Thresholds,
    columns: Sequence[str],
    *,
    elsewhere: str,
) -> dict[str, Measure]:
    """Return one measure for each rule of the day."""
    findings = trailing_findings(today, trailing)
    few = too_few_days(trailing, bounds.min_trailing_days)

    def compared(metric: str, feature: str, observed: Callable[[float], str]) -> Measure:
        return few or measure_of(findings[metric, feature], observed)

    usual = median(day.landed for day in trailing or [Profile()])
    volume = compared(
        "volume_ratio",
        "comments",
        lambda ratio: (
            f"{today.landed:,} rows, {ratio:.2f} times the trailing median of {usual:,.0f}"
            f"{elsewhere and f'; {elsewhere}'}"
        ),
    )
    percent = percentage(today.quarantined, today.landed)
    quarantined = Measure(
        value=today.quarantined / max(today.landed, 1),
        observed=f"{today.quarantined:,} of {today.landed:,} rows ({percent})",
    )
    if not today.landed:
        quarantined = skipped("there are no rows")
    return {
        "schema": Measure(value=len(faults), observed=joined(faults)),
        "volume_collapse": volume,
        "volume_shift": volume,
        "empty_day": Measure(value=today.landed, observed=f"{today.landed:,} rows"),
        "quarantined_most": quarantined,
        "quarantined_many": quarantined,
        **{
            f"{mix}_shift": compared("jensen_shannon", mix, partial(_mix_observed, today, mix))
            for mix in _COMPARED_MIXES
        },
        **{
            missing_share_rule(column): compared(
                "missing_share_change",
                column,
                partial(_missing, today, with_column(trailing, column), column),
            )
            for column in columns
        },
    }


def _loss_measures(losses: Losses, comments: int) -> dict[str, Measure]:
    """Return the measures of values that could not be read, and of rows that are of one kind."""
    named = [f"{fault} {number:,}" for fault, number in losses.faults.most_common()]
    found = losses.concentrated()
    return {
        "values_left_out": Measure(
            value=losses.most_faults / max(comments, 1), observed=joined(named)
        ),
        "concentrated_loss": Measure(value=len(found), observed=joined(found)),
    }


def _mix_observed(today: Profile, mix: str, divergence: float) -> str:
    """Return a divergence with the three most frequent categories and their shares."""
    counts = today.categories[mix]
    names = sorted(counts, key=lambda name: (-counts[name], name))[:3]
    shares = (f"{name} {percentage(counts[name], sum(counts.values()))}" for name in names)
    return f"{divergence:.3f} bits; {', '.join(shares)}"


def _missing(today: Profile, days: Sequence[Profile], column: str, _change: float) -> str:
    now = percentage(today.missing[column], today.comments)
    before = sum(day.missing.get(column, 0) for day in days)
    return f"{now} missing, {percentage(before, sum(day.comments for day in days))} before"
