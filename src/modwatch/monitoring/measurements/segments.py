"""Counts the segments of a day, and ranks those that explain a change of its flags or scores."""

import datetime
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import get_args

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from modwatch.common.columns import Column, grouped
from modwatch.data.lake.day_scores import DayScores, day_scores
from modwatch.data.lake.delta import Lake, as_batch
from modwatch.data.validation.ids import siphash
from modwatch.data.validation.profiles import category_names
from modwatch.data.validation.result import CheckStore
from modwatch.data.validation.rows import absent
from modwatch.monitoring.measurements.comment_groups import LONGEST_NAME, identities, printable
from modwatch.monitoring.measurements.references import ReferencePlan, trailing_days
from modwatch.statistics.divergence.mentions import Terms
from modwatch.statistics.drift.day_comparison import Finding
from modwatch.statistics.drift.profile import LENGTH_BANDS, OTHERS, length_bands
from modwatch.statistics.drift.shift_segments import (
    COUNTS,
    NONE,
    SEPARATOR,
    Measure,
    Segment,
    explain_shift,
    leading,
)
from modwatch.statistics.live.group_estimates import IDENTITY

#: What comments are divided by alone: its values come and go.
THREAD = "thread"

#: What comments are divided by alone, too: a comment may mention several identities.
_ALONE = (THREAD, IDENTITY)

#: Values of a factor that are kept of a day, and that are compared: the most frequent.
KEPT_VALUES, MOST_VALUES = 100, 20

#: Threads that are kept of a day, and compared: those with most comments.
KEPT_THREADS = 50

#: Identities that are kept of a day: those that most comments mention.
KEPT_IDENTITIES = 20

#: What an id of a thread looks like: letters and digits in parts, with few words.
_ID = re.compile(r"[A-Za-z0-9]+(?:[._:/#-]+[A-Za-z0-9]+)*")
_WORD, _MOST_WORDS = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2,}(?![A-Za-z0-9])"), 2

_SUMMED = ("comments", "flagged", "prob", "prob_square")
_NUMBERS = {*_SUMMED, *(f"reference_{name}" for name in _SUMMED)}


def day_segments(
    lake: Lake,
    checks: CheckStore,
    day: datetime.date,
    *,
    plan: ReferencePlan,
    terms: Terms = MappingProxyType({}),
) -> dict[Measure, list[Segment]]:
    """Count the segments of a day, and return them by measure, the most telling first.

    They are compared with the trailing reference, as far as the same model version scored it.
    `terms` are the words of each identity, for comments whose source names no groups.
    """
    scores = day_scores(lake, day)
    cells = count_cells(lake, day, scores, terms)
    version = scores.model_version
    schema = lake.schema("segment_counts")
    rows = as_batch(cells.assign(dt=day, model_version=version), schema)
    lake.replace("segment_counts", day, [rows] if len(cells) else [])
    past = trailing_days(lake, checks, day, "scores", plan=plan, model_version=version)
    before = _stored_cells(lake, [*past], version)
    known = _known(lake, before)
    return {
        measure: explain_shift(
            _joined(cells, before, measure),
            known,
            measure=measure,
            transient=[THREAD],
            labels=[IDENTITY],
        )
        for measure in get_args(Measure)
    }


def segment_findings(found: Mapping[Measure, Sequence[Segment]]) -> Iterator[Finding]:
    """Yield the segment of each measure that most of its change is in, if one stands out."""
    for measure, segments in found.items():
        if segment := leading(segments):
            yield Finding(
                metric=f"segment_{measure}",
                feature=segment.name,
                reference="trailing",
                value=segment.effect,
                low=segment.low,
                high=segment.high,
                n=segment.n,
                reference_n=segment.reference_n,
                reason=segment.sentence(),
            )


def factors(own: Sequence[Column] = ()) -> tuple[str, ...]:
    """Return what comments are divided by, alone and in pairs; `own` are the platform's columns.

    >>> factors()[-1]
    'length'
    """
    return (*grouped(own), "length")


def _known(lake: Lake, before: pd.DataFrame) -> tuple[str, ...]:
    """Return the factors, without those that some of the days before were not counted by."""
    return tuple(name for name in factors(lake.columns) if not before[name].isna().any())


def count_cells(
    lake: Lake,
    day: datetime.date,
    scores: DayScores,
    terms: Terms = MappingProxyType({}),
) -> pd.DataFrame:
    """Return the scored comments of a day by all `factors`, `THREAD` and `IDENTITY`.

    With the number of flagged ones, the sum of the probabilities, and that of their squares. Memory
    holds two numbers a comment, and the counts.
    """
    cells: dict[tuple[str, ...], int] = {}
    codes, ids = [np.zeros(0, np.int64)], list[pa.Array]()
    threads = _Threads(largest=_largest_threads(lake, day))
    names = grouped(lake.columns)
    columns = ["comment_id", *names, "thread_id", "groups", "text", "parent_text"]
    for batch in lake.read("comments", day, columns=columns):
        alone = {THREAD: threads.of_comments(batch), IDENTITY: _identities(batch, terms)}
        found, values = pd.MultiIndex.from_frame(_factors(batch, names).assign(**alone)).factorize()
        known = np.array([cells.setdefault(key, len(cells)) for key in values], np.int64)
        codes.append(known[found] if len(known) else found)
        ids.append(batch.column("comment_id"))
    place, code = scores.positions(ids), np.concatenate(codes)
    code, place = code[place >= 0], place[place >= 0]
    prob = scores.prob[place].astype(np.float64)
    table = pd.DataFrame(list(cells), columns=[*factors(lake.columns), *_ALONE], dtype=str)
    table[THREAD] = threads.named(table[THREAD])
    for name, value in zip(
        _SUMMED, (np.ones(len(code)), scores.flagged[place], prob, prob**2), strict=True
    ):
        table[name] = np.bincount(code, value, minlength=len(cells))
    whole = table[table["comments"] > 0].astype(dict.fromkeys(_SUMMED[:2], np.int64))
    return _largest(whole, KEPT_VALUES)


def _factors(batch: pa.RecordBatch, names: Sequence[str]) -> pd.DataFrame:
    named = {name: category_names(batch.column(name), name).dictionary_encode() for name in names}
    bands = length_bands(pc.utf8_length(batch.column("text")).to_numpy())
    columns = {
        name: np.array([printable(value) for value in values.dictionary.to_pylist()], object)[
            values.indices.to_numpy()
        ]
        for name, values in named.items()
    }
    return pd.DataFrame({**columns, "length": np.array(LENGTH_BANDS, object)[bands]})


def _identities(batch: pa.RecordBatch, terms: Terms) -> NDArray[np.object_]:
    """Return the identities (n,) that each comment of a batch mentions, or `NONE`."""
    mentioned: dict[str, NDArray[np.bool_]] = {}
    for name, inside in identities(batch, terms):
        if name:  # as it is printed, so that no comment mentions one twice
            label = printable(name).replace(SEPARATOR[0], ",")
            mentioned[label] = mentioned.get(label, False) | inside
    found = np.full(batch.num_rows, "", object)
    for label in sorted(mentioned):
        found[mentioned[label]] += SEPARATOR + label
    return np.array([labels.removeprefix(SEPARATOR) or NONE for labels in found], object)


def _largest_threads(lake: Lake, day: datetime.date) -> frozenset[int]:
    """Return the hashes of the threads of a day with most comments, and at least two."""
    hashes = [np.zeros(0, np.uint64)]
    for batch in lake.read("comments", day, columns=["thread_id"]):
        column = batch.column("thread_id")
        hashes.append(siphash(column.filter(pc.invert(absent(column)))))
    found, count = np.unique(np.concatenate(hashes), return_counts=True)
    order = np.argsort(-count, kind="stable")[:KEPT_THREADS]
    return frozenset(found[order][count[order] > 1].tolist())


@dataclass(frozen=True, kw_only=True)
class _Threads:
    """Names the threads of a day; ids only, since a source may put a title or a comment there."""

    largest: frozenset[int]
    #: Ids that are the text of a comment.
    texts: set[str] = field(default_factory=set)

    def of_comments(self, batch: pa.RecordBatch) -> NDArray[np.object_]:
        """Return the id (n,) of the thread of each comment, `OTHERS` or `NONE`."""
        column = batch.column("thread_id")
        missing = absent(column)
        ids = pc.if_else(missing, "", column)
        names = np.asarray(ids.to_numpy(zero_copy_only=False), object)
        names[[thread not in self.largest for thread in siphash(ids).tolist()]] = OTHERS
        names[missing.to_numpy(zero_copy_only=False)] = NONE
        trimmed = pc.utf8_trim_whitespace(ids)
        for text in ("text", "parent_text"):
            same = pc.equal(trimmed, pc.utf8_trim_whitespace(batch.column(text)))
            self.texts.update(ids.filter(pc.fill_null(same, False)).to_pylist())
        return names

    def named(self, ids: "pd.Series[str]") -> "pd.Series[str]":
        """Return what messages may call each thread: its id, or a digest of what is none."""
        return ids.map(
            lambda thread: thread if thread in (OTHERS, NONE) else _thread_name(thread, self.texts)
        )


def _thread_name(thread: str, texts: set[str]) -> str:
    """Return the id of a thread if it looks like one, else its digest."""
    short = len(thread) <= LONGEST_NAME and len(_WORD.findall(thread)) <= _MOST_WORDS
    if short and thread not in texts and _ID.fullmatch(thread):
        return thread
    return f"sha256:{hashlib.sha256(thread.encode(errors='surrogatepass')).hexdigest()[:12]}"


def _largest(table: pd.DataFrame, most: int) -> pd.DataFrame:
    """Return the cells with all but the `most` frequent values of each factor as one.

    Of the identities all but the `KEPT_IDENTITIES` most frequent are left out.
    """
    counts = [name for name in table.columns if name.endswith("comments")]
    cell = [name for name in table.columns if name not in _NUMBERS]
    for factor in (name for name in cell if name not in _ALONE):
        sizes = table.groupby(factor)[counts].sum()
        order = sizes.sum(axis=1).sort_values(ascending=False, kind="stable")
        kept = set(order.index[:most])
        table = table.assign(**{factor: table[factor].where(table[factor].isin(kept), OTHERS)})
    named = _most_mentioned(table[IDENTITY], table[counts].sum(axis=1))
    table = table.assign(**{IDENTITY: table[IDENTITY].map(partial(_only, kept=named))})
    return pd.DataFrame(table.groupby(cell, as_index=False).sum())


def _most_mentioned(sets: "pd.Series[str]", comments: "pd.Series[float]") -> frozenset[str]:
    mentions = pd.DataFrame({"name": sets.str.split(SEPARATOR), "n": comments}).explode("name")
    sizes = mentions[mentions["name"] != NONE].groupby("name")["n"].sum()
    order = sizes.sort_values(ascending=False, kind="stable")
    return frozenset(order.index[:KEPT_IDENTITIES])


def _only(mentioned: str, kept: frozenset[str]) -> str:
    """Return those of the identities of a comment that are kept."""
    return SEPARATOR.join(name for name in mentioned.split(SEPARATOR) if name in kept) or NONE


def _stored_cells(lake: Lake, chosen: Sequence[datetime.date], model_version: str) -> pd.DataFrame:
    """Return the cells of the chosen days that this model version scored, together."""
    table = lake.table("segment_counts", chosen).to_pandas()
    wanted = table["model_version"] == model_version
    cell = [*factors(lake.columns), *_ALONE]
    found: pd.DataFrame = table.loc[wanted, [*cell, *_SUMMED]].fillna({THREAD: OTHERS})
    return found


def _joined(cells: pd.DataFrame, before: pd.DataFrame, measure: Measure) -> pd.DataFrame:
    """Return the cells of a day and of its reference; a cell that one lacks counts 0."""
    counts = COUNTS[measure]
    summed = [name for name in _SUMMED if name in counts]
    past = before.rename(columns={name: f"reference_{name}" for name in summed})
    cell = [name for name in cells.columns if name not in _SUMMED]
    both = pd.concat([cells, past], ignore_index=True).reindex(columns=[*cell, *counts])
    whole = both.fillna(dict.fromkeys(counts, 0)).astype(dict.fromkeys(counts, np.float64))
    return _largest(whole, MOST_VALUES)
