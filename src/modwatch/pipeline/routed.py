"""The rows that routing writes: the sampling design, the routed comments, and their queue items."""

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from modwatch.lake.day_scores import DayScores
from modwatch.lake.delta import Lake
from modwatch.lake.schemas import ROUTED, ROUTING_DESIGN, as_batch
from modwatch.review.queue.items import NewItem
from modwatch.routing.design import Routing
from modwatch.routing.keys import random_keys
from modwatch.routing.policy import RoutingPolicy
from modwatch.routing.second_opinions import draw_second_opinions


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
    return as_batch(frame, ROUTING_DESIGN)


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
    return as_batch(frame, ROUTED)


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
