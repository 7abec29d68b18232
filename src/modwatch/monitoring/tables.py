"""Turns rows of the lake into the arrays that the pure packages take, and their results into rows.

Only columns that a function needs are loaded, so that a day of millions stays small in memory.
"""

import datetime
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from modwatch.errors import DesignError
from modwatch.lake.delta import Lake
from modwatch.lake.schemas import MEASUREMENTS, MODERATOR_ERROR, RELIABILITY, ROUTED, ROUTING_DESIGN
from modwatch.metrics.annotator_error import LabelPairs
from modwatch.metrics.estimation.labelled_day import LabelledDay
from modwatch.review.queue.items import NewItem
from modwatch.routing.design import Routing
from modwatch.routing.keys import random_keys
from modwatch.routing.policy import RoutingPolicy
from modwatch.routing.second_opinions import draw_second_opinions


@dataclass(frozen=True, kw_only=True)
class DayScores:
    """The champion's scores of a day of N comments."""

    #: (N,) strings.
    comment_id: pa.ChunkedArray
    #: (N,) in [0, 1].
    prob: NDArray[np.float32]
    #: (N,) prob > threshold.
    flagged: NDArray[np.bool_]
    #: The model's; 0.5 on an empty day.
    threshold: float
    #: The version that scored the day; empty on an empty day.
    model_version: str


def day_scores(lake: Lake, day: datetime.date) -> DayScores:
    """Return the published scores of `day`."""
    columns = ["comment_id", "prob", "flagged"]
    rows = lake.table("scores", day, columns=columns, role="champion")
    model = ["threshold", "model_version"]
    heads = (
        batch.slice(0, 1).to_pylist()
        for batch in lake.read("scores", day, columns=model, role="champion")
    )
    first = next((head[0] for head in heads if head), {"threshold": 0.5, "model_version": ""})
    return DayScores(
        comment_id=rows.column("comment_id"),
        prob=rows.column("prob").to_numpy(),
        flagged=rows.column("flagged").to_numpy(),
        **first,
    )


def sampling_keys(
    scores: DayScores, *, day: datetime.date, policy: RoutingPolicy, salt: str
) -> NDArray[np.uint64]:
    """Return one permanent random number (N,) a comment, made chunk by chunk."""
    parts = [
        random_keys(chunk.to_pylist(), day=day.isoformat(), design_digest=policy.digest, salt=salt)
        for chunk in scores.comment_id.chunks
    ]
    return np.concatenate([np.zeros(0, np.uint64), *parts])


def design_rows(
    day: datetime.date, scores: DayScores, policy: RoutingPolicy, routing: Routing
) -> pa.RecordBatch:
    """Return the day's sampling design as rows of ROUTING_DESIGN."""
    frame = routing.strata.assign(
        dt=day,
        model_version=scores.model_version,
        strategy=policy.strategy,
        review_fraction=policy.review_fraction,
    )
    return _batch(frame, ROUTING_DESIGN)


def routed_rows(day: datetime.date, scores: DayScores, routing: Routing) -> pa.RecordBatch:
    """Return the routed comments as rows of ROUTED, in the order of the queue."""
    frame = pd.DataFrame(
        {
            "dt": day,
            "comment_id": scores.comment_id.take(pa.array(routing.row)).to_pylist(),
            "reason": routing.reason,
            "stratum": routing.stratum,
            "inclusion_probability": routing.inclusion_probability,
            "rank": routing.rank,
            "review_score": routing.review_score,
            "model_version": scores.model_version,
        }
    )
    return _batch(frame, ROUTED)


def second_opinions(
    day: datetime.date, routed: pa.RecordBatch, *, policy: RoutingPolicy, salt: str
) -> dict[str, dict[str, float]]:
    """Return rank and inclusion probability of the second items, by comment id."""
    ids = routed.column("comment_id").to_pylist()
    digest = f"{policy.digest} second opinion"  # these keys have nothing to do with the slice's
    keys = random_keys(ids, day=day.isoformat(), design_digest=digest, salt=salt)
    stratum = routed.column("stratum").to_numpy()
    drawn = draw_second_opinions(stratum, keys, policy.second_opinion_share)
    chance = routed.column("inclusion_probability").to_numpy()[drawn.row]
    chance = chance * drawn.inclusion_probability
    return {
        ids[row]: {"rank": rank, "inclusion_probability": part}
        for row, rank, part in zip(drawn.row, drawn.rank.tolist(), chance.tolist(), strict=True)
    }


def queue_items(
    lake: Lake,
    day: datetime.date,
    routed: pa.RecordBatch,
    scores: DayScores,
    again: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> Iterator[NewItem]:
    """Yield the routed comments with their texts, as the review queue takes them.

    Those in `again`, from `second_opinions`, come twice.
    """
    design = {row["comment_id"]: row for row in routed.to_pylist()}
    wanted = routed.column("comment_id")
    at = pc.index_in(wanted, scores.comment_id.combine_chunks()).to_numpy(zero_copy_only=False)
    prob = dict(zip(wanted.to_pylist(), scores.prob[at.astype(np.int64)].tolist(), strict=True))
    columns = ["comment_id", "text", "parent_text", "language", "platform"]
    for batch in lake.read("comments", day, columns=columns):
        for row in batch.filter(pc.is_in(batch.column("comment_id"), wanted)).to_pylist():
            sent, p = design[row["comment_id"]], prob[row["comment_id"]]
            known = {name: sent[name] for name in ROUTED.names if name not in ("dt", "comment_id")}
            item = NewItem(**row, **known, prob=p, uncertainty=p * (1 - p))
            yield item
            if item.comment_id in again:
                yield replace(item, kind="second_opinion", **again[item.comment_id])


def labelled_day(lake: Lake, day: datetime.date, scores: DayScores) -> LabelledDay:
    """Return the whole population of `day` with the labels that people have given so far.

    Raises:
        DesignError: comments were routed that the day does not have any more.
    """
    design = lake.table("routing_design", day, columns=["stratum", "population", "sample"])
    design = design.sort_by("stratum")
    routed = lake.table("routed", day, columns=["comment_id", "stratum"])
    labels = lake.table("labels", day, columns=["comment_id", "label"])
    if not pc.all(pc.is_in(routed.column("comment_id"), scores.comment_id), min_count=0).as_py():
        raise DesignError(
            f"other comments of {day} are scored than were routed; route that day again"
        )
    stratum = np.full(len(scores.prob), -1, np.int32)
    stratum[_positions(routed, scores)] = routed.column("stratum").to_numpy()
    # A label of a comment that is routed no more (the day was routed again) estimates nothing.
    labels = labels.filter(pc.is_in(labels.column("comment_id"), routed.column("comment_id")))
    label = np.zeros(len(scores.prob), np.int8)
    labelled = np.zeros(len(scores.prob), np.bool_)
    at = _positions(labels, scores)
    label[at], labelled[at] = labels.column("label").to_numpy(), True
    return LabelledDay(
        prob=scores.prob,
        stratum=stratum,
        label=label,
        labelled=labelled,
        population=design.column("population").to_numpy(),
        sample=design.column("sample").to_numpy(),
    )


def label_pairs(lake: Lake, days: Sequence[datetime.date]) -> LabelPairs:
    """Return both labels of the comments of `days`, one at least, that two people labelled."""
    routed = pd.concat([_twice_labelled(lake, day) for day in days], ignore_index=True)
    top, paired = routed["stratum"] == 0, routed["paired"]
    weight = (1 / routed["inclusion_probability"]).where(paired, 0.0)
    weight *= weight.groupby(top).transform("size") / weight.groupby(top).transform("sum")
    pairs = routed[paired]
    return LabelPairs(
        first=pairs["label"].to_numpy(np.int8),
        second=pairs["label_second"].to_numpy(np.int8),
        top=top[paired].to_numpy(np.bool_),
        weight=weight[paired].to_numpy(np.float64),
    )


def _twice_labelled(lake: Lake, day: datetime.date) -> pd.DataFrame:
    """Return the routed comments of a day, with both labels where they are `paired`."""
    columns = ["comment_id", "stratum", "inclusion_probability"]
    frame: pd.DataFrame = lake.table("routed", day, columns=columns).to_pandas()
    for table, suffix in (("labels", ""), ("second_labels", "_second")):
        given = lake.table(table, day, columns=["comment_id", "label", "moderator"]).to_pandas()
        frame = frame.merge(given, on="comment_id", how="left", suffixes=("", suffix))
    # The queue serves nobody a comment twice; a pair by one person would be a retest.
    labelled = frame["label"].notna() & frame["label_second"].notna()
    paired = labelled & (frame["moderator"] != frame["moderator_second"])
    return frame[[*columns[1:], "label", "label_second"]].assign(paired=paired)


def deployed(lake: Lake, day: datetime.date) -> tuple[str, float]:
    """Return the strategy and the review fraction that `day` was routed with."""
    design = lake.table("routing_design", day, columns=["strategy", "review_fraction"])
    return str(design.column(0)[0]), float(design.column(1)[0])


def labels_digest(lake: Lake, day: datetime.date) -> str:
    """Return a hash of all that measurements take of a day: design, routed rows, answers."""
    digest = hashlib.sha256()
    for table, columns in (
        ("routing_design", ["model_version", "stratum", "population", "sample"]),
        ("routed", ["comment_id", "stratum"]),
        ("labels", ["comment_id", "label"]),
        ("second_labels", ["comment_id", "label"]),
        ("check_answers", ["kind", "comment_id", "moderator", "label", "known"]),
    ):
        rows = sorted(
            tuple(row.values()) for row in lake.table(table, day, columns=columns).to_pylist()
        )
        digest.update(repr((table, rows)).encode())
    return digest.hexdigest()


def measured_digest(lake: Lake, day: datetime.date, table: str = "measurements") -> str | None:
    """Return what the measurement of `day` was made of; None when there is none."""
    digests = lake.table(table, day, columns=["labels_digest"])
    return digests.column(0)[0].as_py() if digests.num_rows else None


def is_unmeasured(lake: Lake, day: datetime.date) -> bool:
    """Return whether `day` was routed and its labels, as they are now, are not measured."""
    if not lake.count("routing_design", day):
        return False
    return measured_digest(lake, day) != labels_digest(lake, day)


def measurement_rows(day: datetime.date, table: pd.DataFrame, digest: str) -> pa.RecordBatch:
    """Return a table of `measure_days` as rows of MEASUREMENTS."""
    return _batch(table.assign(dt=day, labels_digest=digest), MEASUREMENTS)


def reliability_rows(day: datetime.date, table: pd.DataFrame) -> pa.RecordBatch:
    """Return a table of `estimate.reliability_estimates` as rows of RELIABILITY."""
    return _batch(table.assign(dt=day), RELIABILITY)


def sensitivity_rows(day: datetime.date, table: pd.DataFrame) -> pa.RecordBatch:
    """Return a table of `metrics.rogan_gladen` as rows of MODERATOR_ERROR."""
    return _batch(table.assign(dt=day), MODERATOR_ERROR)


def _positions(rows: pa.Table, scores: DayScores) -> NDArray[np.int64]:
    """Return where in the day's scores each row's comment stands, (m,)."""
    found = pc.index_in(rows.column("comment_id"), scores.comment_id.combine_chunks())
    return np.asarray(found.to_numpy(zero_copy_only=False), np.int64)


def _batch(frame: pd.DataFrame, schema: pa.Schema) -> pa.RecordBatch:
    # Not RecordBatch.from_pandas, which cannot take the empty columns of strings of an empty day.
    table = pa.Table.from_pandas(frame, schema=schema, preserve_index=False)
    arrays = [column.combine_chunks() for column in table.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
