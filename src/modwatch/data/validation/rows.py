"""Flags and numbers of each landed row: all that the row-level rules get."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from modwatch.common.errors import CheckError
from modwatch.data.lake.schemas import LANDED
from modwatch.data.validation.id_index import IdIndex
from modwatch.data.validation.schema import absent, bools, columns_of, schema_faults

# A character that a reader can see: no separator, control or format character, and none of the
# fillers and selectors that Unicode counts as letters, symbols or marks but that draw nothing.
_VISIBLE = (
    r"[^\p{Z}\p{Cc}\p{Cf}\x{034F}\x{115F}\x{1160}\x{17B4}\x{17B5}\x{180B}-\x{180F}"
    r"\x{2800}\x{3164}\x{FE00}-\x{FE0F}\x{FFA0}]"
)
# The shape of a BCP 47 tag (RFC 5646): a language and subtags.
_LANGUAGE = r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8}){0,8}$"
_PROBLEM = r"^[a-z][a-z0-9_]{0,47}$"
# Of a version that a source names: short and without blanks, so that no comment's text passes.
_VERSION = r"^[A-Za-z0-9._:@/+-]{1,100}$"
# Strings that are stored on, in PostgreSQL among others, which cannot hold a NUL.
_STORED = [f.name for f in LANDED if f.type == pa.string() and f.name not in ("origin", "problem")]

#: Rules on the scores that a source brings.
_OF_SCORES = (
    *("missing_probability", "probability_out_of_range"),
    *("missing_decision", "malformed_model_version"),
)

_Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True, kw_only=True)
class RowFacts:
    """N landed rows of a day as flags and numbers, in the order of their `row`."""

    day: date
    #: One row a landed row, one column a rule on a row by itself: a flag, or a number of
    #: characters. An unreadable row has no other fault.
    frame: pd.DataFrame
    #: (N,) int16: 0 is readable, k stands for `problems[k-1]`.
    problem: NDArray[np.int16]
    problems: tuple[str, ...]
    #: (N,) int64: equal for rows with the same comment_id, N without one.
    id_group: NDArray[np.int64]
    #: (N,) bool: a comment of an earlier day has this comment_id.
    on_earlier_day: NDArray[np.bool_]
    #: Whether the source brought scores; `frame` then has the columns of the rules on them.
    own_scores: bool
    #: (N,) int32: equal for rows with the same model version, −1 without one.
    version: NDArray[np.int32]
    #: A sentence for each missing or mistyped column.
    schema_faults: tuple[str, ...]


def row_facts(
    batches: Iterable[pa.RecordBatch],
    *,
    day: date,
    earlier_ids: Iterable[pa.Array] = (),
    own_scores: bool = False,
) -> RowFacts:
    """Return flags and numbers of one landed day, from one pass over its batches.

    Memory is about 120 bytes a row beside the batch at hand; no text is kept.

    Args:
        batches: rows of `schemas.LANDED`, in any order.
        day: the UTC day that they belong to.
        earlier_ids: comment ids that earlier days published, in chunks; streamed once.
        own_scores: the source brings scores. A day of which any row has one is such a day, too.

    Raises:
        CheckError: `row` does not number the rows 0…N−1.

    >>> row_facts([], day=date(2026, 1, 1)).problems
    ()
    """
    problems: dict[str, int] = {}
    versions: dict[str, int] = {}
    faults: tuple[str, ...] = ()
    ids: list[pa.Array] = []
    parts: list[_Columns] = []
    # The empty batch gives every array its type on a day without any.
    for batch in chain([pa.RecordBatch.from_pylist([], schema=LANDED)], batches):
        columns = columns_of(batch, LANDED)
        faults = faults or schema_faults(batch.schema, LANDED)
        ids.append(columns["comment_id"])
        parts.append(_of_batch(columns, day, problems, versions))
    # Nothing is kept twice: on a large day this is the most that a step holds.
    facts = {name: np.concatenate([part.pop(name) for part in parts]) for name in [*parts[0]]}
    facts |= _of_ids(ids, earlier_ids)
    facts = _in_row_order(facts, day)
    names = ("problem", "id_group", "on_earlier_day", "version")
    named = {name: facts.pop(name) for name in names}
    own_scores = own_scores or bool(facts.pop("scored").any())
    if not own_scores:
        facts = {name: fact for name, fact in facts.items() if name not in _OF_SCORES}
    return RowFacts(
        day=day,
        frame=pd.DataFrame({"unreadable": named["problem"] > 0, **facts}, copy=False),
        problems=tuple(problems),
        own_scores=own_scores,
        schema_faults=faults,
        **named,
    )


def _of_ids(ids: list[pa.Array], earlier_ids: Iterable[pa.Array]) -> _Columns:
    """Return which rows share an id, and which have one of an earlier day; take all of `ids`."""
    index = IdIndex.of(ids)
    ids.reverse()
    id_group = np.concatenate([index.positions(ids.pop()) for _ in range(len(ids))])
    earlier = np.zeros(len(index.ids) + 1, dtype=bool)
    for chunk in earlier_ids:
        earlier[index.positions(chunk)] = True
    earlier[-1] = False  # the position of ids that are not of this day
    return {"id_group": id_group, "on_earlier_day": earlier[id_group]}


def _version_codes(version: pa.Array, versions: dict[str, int]) -> NDArray[np.int32]:
    """Return (k,) int32: the number of the version, which `versions` keeps; −1 for a null."""
    encoded = pc.dictionary_encode(version)
    names = encoded.dictionary.to_pylist()
    codes = [versions.setdefault(name, len(versions)) for name in names]
    indices = pc.fill_null(encoded.indices, len(codes)).to_numpy()
    return np.asarray(np.array([*codes, -1], dtype=np.int32)[indices])


def _problem_codes(problem: pa.Array, problems: dict[str, int]) -> NDArray[np.int16]:
    """Return (k,) int16: 0 for a null, else the number of the problem, which `problems` keeps."""
    well_named = pc.match_substring_regex(problem, _PROBLEM)
    encoded = pc.dictionary_encode(pc.if_else(well_named, problem, "unreadable"))
    names = encoded.dictionary.to_pylist()
    codes = [problems.setdefault(name, len(problems) + 1) for name in names]
    indices = pc.fill_null(encoded.indices, len(codes)).to_numpy()
    return np.asarray(np.array([*codes, 0], dtype=np.int16)[indices])


def _of_batch(
    columns: dict[str, pa.Array], day: date, problems: dict[str, int], versions: dict[str, int]
) -> _Columns:
    """Return what one row shows by itself: its number, lengths, problem and flags."""
    readable = bools(columns["problem"].is_null())
    return {
        "row": pc.fill_null(columns["row"], -1).to_numpy(),
        "long_text": _lengths(columns["text"]) * readable,
        "long_id": _lengths(columns["comment_id"]) * readable,
        "problem": _problem_codes(columns["problem"], problems),
        "scored": ~bools(pc.and_(columns["prob"].is_null(), columns["flagged"].is_null())),
        "version": _version_codes(columns["model_version"], versions),
        "probability_out_of_range": _probabilities(columns["prob"], readable),
        **{name: flag & readable for name, flag in _flags(columns, day).items()},
    }


def _flags(columns: dict[str, pa.Array], day: date) -> dict[str, NDArray[np.bool_]]:
    """Return the faults that one row can have by itself, by the name of their rule."""
    return {
        "missing_id": ~_visible(columns["comment_id"]),
        "nul_byte": _has_nul(columns),
        "missing_time": bools(columns["created_at"].is_null()),
        "time_outside_day": _outside(columns["created_at"], day),
        "blank_text": ~_visible(columns["text"]),
        "malformed_language": ~_tagged(columns["language"]),
        "missing_probability": bools(columns["prob"].is_null(nan_is_null=True)),
        "missing_decision": bools(columns["flagged"].is_null()),
        "malformed_model_version": ~_named(columns["model_version"]),
    }


def _probabilities(prob: pa.Array, readable: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return (k,) the probabilities of readable rows; NaN, which every range skips, elsewhere."""
    values = pc.fill_null(prob, float("nan")).to_numpy()
    return np.where(readable, values, np.nan)


def _named(version: pa.Array) -> NDArray[np.bool_]:
    return bools(pc.match_substring_regex(version, _VERSION))


def _lengths(strings: pa.Array) -> NDArray[np.int32]:
    return np.asarray(pc.fill_null(pc.utf8_length(strings), 0), dtype=np.int32)


def _visible(strings: pa.Array) -> NDArray[np.bool_]:
    return bools(pc.match_substring_regex(strings, _VISIBLE))


def _tagged(language: pa.Array) -> NDArray[np.bool_]:
    """Return (k,) bool: absent, or shaped as a tag."""
    return bools(pc.or_kleene(absent(language), pc.match_substring_regex(language, _LANGUAGE)))


def _outside(created_at: pa.Array, day: date) -> NDArray[np.bool_]:
    """Return (k,) bool: present, and outside [day, day + 1) in UTC."""
    start = datetime.combine(day, time(), UTC)
    stop = start + timedelta(days=1)
    return bools(pc.or_(pc.less(created_at, start), pc.greater_equal(created_at, stop)))


def _has_nul(columns: dict[str, pa.Array]) -> NDArray[np.bool_]:
    """Return (k,) bool: a NUL byte in any string of the row."""
    has_nul = np.zeros(len(columns["text"]), dtype=bool)
    for name in _STORED:
        has_nul |= bools(pc.match_substring(columns[name], "\x00"))
    nul = bools(pc.match_substring(pc.list_flatten(columns["groups"]), "\x00"))
    has_nul[pc.list_parent_indices(columns["groups"]).to_numpy()[nul]] = True
    return has_nul


def _in_row_order(facts: _Columns, day: date) -> _Columns:
    """Return the facts sorted by `row`, which must number them 0…N−1."""
    order = np.argsort(facts["row"], kind="stable")
    if not np.array_equal(facts["row"][order], np.arange(len(order))):
        raise CheckError(
            f"Column row does not number the {len(order)} landed comments of {day} from 0; "
            "ingest the day again."
        )
    del facts["row"]
    return {name: facts.pop(name)[order] for name in [*facts]}
