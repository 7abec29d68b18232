"""Counts the segments of a day, and ranks those that explain a change of its flagged share."""

import datetime
from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from modwatch.lake.day_scores import DayScores, day_scores
from modwatch.lake.delta import Lake
from modwatch.lake.schemas import SEGMENT_COUNTS, SEGMENTS, as_batch
from modwatch.metrics.profile import LENGTH_BANDS, length_bands
from modwatch.metrics.segments import COUNTS, explain_shift, leading
from modwatch.monitoring.references import ReferencePlan, trailing_days
from modwatch.quality.profiles import category_names
from modwatch.quality.store import CheckStore

#: What comments are divided by.
FACTORS = ("platform", "language", "length")

#: Values of a factor that are kept of a day, and that are compared: the most frequent.
KEPT_VALUES, MOST_VALUES = 100, 20

#: Segments that are kept of a day.
MOST_SEGMENTS = 20

_OTHERS = "(other)"

#: Longest name of a value, which messages quote, in characters.
_LONGEST_NAME = 40


def explain_day(lake: Lake, checks: CheckStore, day: datetime.date, *, plan: ReferencePlan) -> int:
    """Rank the segments of a day against its trailing reference; return how many are kept.

    The reference has the days that the same model version scored.
    """
    scores = day_scores(lake, day)
    cells = count_cells(lake, day, scores)
    rows = as_batch(cells.assign(dt=day, model_version=scores.model_version), SEGMENT_COUNTS)
    lake.replace("segment_counts", day, [rows] if len(cells) else [])
    version = scores.model_version
    past = trailing_days(lake, checks, day, "scores", plan=plan, model_version=version)
    before = _stored_cells(lake, [*past], version)
    found = explain_shift(_largest(_joined(cells, before), MOST_VALUES), FACTORS)
    first = leading(found)
    kept = [
        {
            **asdict(segment),
            "dt": day,
            "rank": rank,
            "leading": segment is first,
            "sentence": segment.sentence(),
        }
        for rank, segment in enumerate(found[:MOST_SEGMENTS], 1)
    ]
    return lake.replace("segments", day, [pa.RecordBatch.from_pylist(kept, schema=SEGMENTS)])


def count_cells(lake: Lake, day: datetime.date, scores: DayScores) -> pd.DataFrame:
    """Return the scored comments of a day, and the flagged ones, by all of `FACTORS`.

    Memory holds a number a comment, and the counts.
    """
    cells: dict[tuple[str, ...], int] = {}
    codes, ids = [np.zeros(0, np.int64)], list[pa.Array]()
    for batch in lake.read("comments", day, columns=["comment_id", "platform", "language", "text"]):
        keys = pd.MultiIndex.from_frame(_factors(batch))
        found, values = keys.factorize()
        known = np.array([cells.setdefault(key, len(cells)) for key in values], np.int64)
        codes.append(known[found] if len(known) else found)
        ids.append(batch.column("comment_id"))
    place, code = scores.positions(ids), np.concatenate(codes)
    flagged = scores.flagged[place[place >= 0]]
    code = code[place >= 0]
    table = pd.DataFrame(list(cells), columns=list(FACTORS), dtype=str)
    table["comments"] = np.bincount(code, minlength=len(cells))
    table["flagged"] = np.bincount(code[flagged], minlength=len(cells))
    return _largest(table[table["comments"] > 0], KEPT_VALUES)


def _factors(batch: pa.RecordBatch) -> pd.DataFrame:
    """Return the value of each factor of the comments of a batch."""
    named = {
        name: category_names(batch.column(name), name).dictionary_encode()
        for name in ("platform", "language")
    }
    bands = length_bands(pc.utf8_length(batch.column("text")).to_numpy())
    columns = {
        name: np.array([_printable(each) for each in values.dictionary.to_pylist()], object)[
            values.indices.to_numpy()
        ]
        for name, values in named.items()
    }
    return pd.DataFrame({**columns, "length": np.array(LENGTH_BANDS, object)[bands]})


def _printable(name: str) -> str:
    """Return a value of the source as it may stand in a message, on one line."""
    return "".join(c if c.isprintable() else "?" for c in name[:_LONGEST_NAME])


def _largest(table: pd.DataFrame, most: int) -> pd.DataFrame:
    """Return the cells with all but the `most` frequent values of each factor as one."""
    for factor in FACTORS:
        sizes = table.groupby(factor)[[c for c in COUNTS if c in table and "comments" in c]].sum()
        order = sizes.sum(axis=1).sort_values(ascending=False, kind="stable")
        kept = set(order.index[:most])
        table = table.assign(**{factor: table[factor].where(table[factor].isin(kept), _OTHERS)})
    return pd.DataFrame(table.groupby(list(FACTORS), as_index=False).sum())


def _stored_cells(lake: Lake, chosen: Sequence[datetime.date], model_version: str) -> pd.DataFrame:
    """Return the cells of the chosen days that this model version scored, together."""
    columns = [*FACTORS, "comments", "flagged"]
    if not chosen:
        return pd.DataFrame(columns=columns)
    batches = lake.read_between("segment_counts", chosen[0], chosen[-1])
    rows = pa.Table.from_batches((b.cast(SEGMENT_COUNTS) for b in batches), SEGMENT_COUNTS)
    table = rows.to_pandas()
    wanted = table["dt"].isin([*chosen]) & (table["model_version"] == model_version)
    found: pd.DataFrame = table.loc[wanted, columns]
    return found


def _joined(cells: pd.DataFrame, before: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of a day beside those of its reference; a cell that one lacks counts 0."""
    past = before.rename(columns={name: f"reference_{name}" for name in ("comments", "flagged")})
    both = pd.concat([cells, past], ignore_index=True).reindex(columns=[*FACTORS, *COUNTS])
    return both.fillna(dict.fromkeys(COUNTS, 0)).astype(dict.fromkeys(COUNTS, np.int64))
