"""The rows that routing writes: the sampling design, the routed comments, and their queue items."""

import datetime
from collections.abc import Iterator, Mapping, Sequence
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
from modwatch.lake.schemas import CONFIRMATION_DESIGN, ROUTED, ROUTING_DESIGN, as_batch
from modwatch.review.queue.items import NewItem
from modwatch.routing.confirmations import (
    confirmation_probabilities,
    confirmation_ranks,
    drawn_confirmations,
)
from modwatch.routing.design import Routing
from modwatch.routing.keys import random_keys
from modwatch.routing.policy import RoutingPolicy

#: The second person to label a comment, and the third where two differ.
CONFIRMING_ROUNDS = (2, 3)


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


def confirmation_rows(
    lake: Lake,
    day: datetime.date,
    routed: pa.RecordBatch,
    scores: DayScores,
    *,
    policy: RoutingPolicy,
    before: Sequence[datetime.date],
) -> pa.RecordBatch:
    """Return how likely each label of the routed comments is confirmed, CONFIRMATION_DESIGN.

    The labels of the days `before` tell how many toxic ones to expect. Comments that are routed
    again keep their probabilities: labels that came in since do not change what is confirmed.
    """
    ids = routed.column("comment_id").to_pylist()
    known = lake.table("confirmation_design", day).to_pandas().set_index("comment_id")
    kept = set(known.index) == set(ids)
    if kept and len(ids) and (known["confirmation_share"] == policy.confirmation_share).all():
        probability = known.loc[ids, ["probability_0", "probability_1"]].to_numpy()
    else:
        probability = confirmation_probabilities(
            _probabilities(routed, scores),
            routed.column("stratum").to_numpy(),
            threshold=scores.threshold,
            share=policy.confirmation_share,
            toxic_labels=_toxic_labels(lake, before),
        )
    frame = pd.DataFrame(
        {
            "dt": day,
            "comment_id": ids,
            "probability_0": probability[:, 0],
            "probability_1": probability[:, 1],
            "confirmation_share": policy.confirmation_share,
        }
    )
    return as_batch(frame, CONFIRMATION_DESIGN)


def _toxic_labels(lake: Lake, days: Sequence[datetime.date]) -> tuple[float | None, float | None]:
    """Return the share of toxic labels of the top, and of the slice, on these days; None: none."""
    parts = []
    for day in days:
        routed = lake.table("routed", day, columns=["comment_id", "stratum"]).to_pandas()
        labels = lake.table("labels", day, columns=["comment_id", "label"]).to_pandas()
        parts.append(routed.merge(labels, on="comment_id"))
    if not parts:
        return None, None
    every = pd.concat(parts, ignore_index=True)
    top = every["stratum"] == 0
    # One label of ten in advance, so that the first few do not decide.
    shares = [
        (part["label"].sum() + 1) / (len(part) + 10) if len(part) else None
        for part in (every[top], every[~top])
    ]
    return shares[0], shares[1]


def _probabilities(routed: pa.RecordBatch, scores: DayScores) -> NDArray[np.float64]:
    """Return the probability (r,) of each routed comment."""
    ids = routed.column("comment_id")
    at = pc.index_in(ids, scores.comment_id.combine_chunks()).to_numpy(zero_copy_only=False)
    return np.asarray(scores.prob[at.astype(np.int64)], np.float64)


def confirmations(
    day: datetime.date, design: pa.RecordBatch, *, policy: RoutingPolicy, salt: str
) -> dict[str, list[dict[str, Any]]]:
    """Return what the confirming items of each comment have of their own, by comment id.

    `design` is in the order of the queue.
    """
    ids = design.column("comment_id").to_pylist()
    # These keys have nothing to do with the slice's.
    keys = {
        each: random_keys(
            ids,
            day=day.isoformat(),
            design_digest=f"{policy.digest} confirmation {each}",
            salt=salt,
        )
        for each in CONFIRMING_ROUNDS
    }
    probability = np.column_stack(
        [design.column(name).to_numpy() for name in ("probability_0", "probability_1")]
    )
    drawn = drawn_confirmations(probability, keys[CONFIRMING_ROUNDS[0]])
    rank, last = np.arange(1, len(ids) + 1), len(ids) + 1
    found: dict[str, list[dict[str, Any]]] = {
        ids[row]: [] for row in np.flatnonzero(drawn.any(axis=1))
    }
    for each in CONFIRMING_ROUNDS:
        rank = confirmation_ranks(rank, keys[each], last) if len(ids) else rank
        for row in np.flatnonzero(drawn.any(axis=1)):
            found[ids[row]].append(
                {
                    "round": each,
                    "rank": int(rank[row]),
                    "confirms": tuple(np.flatnonzero(drawn[row]).tolist()),
                    "confirmation_probability": tuple(probability[row].tolist()),
                    "labels_wanted": 1,
                }
            )
    return found


def queue_items(
    lake: Lake,
    day: datetime.date,
    routed: pa.RecordBatch,
    scores: DayScores,
    again: Mapping[str, Sequence[Mapping[str, Any]]] = MappingProxyType({}),
) -> Iterator[NewItem]:
    """Yield the routed comments with their texts, as the review queue takes them.

    Those in `again`, from `confirmations`, come once more for each further round.
    """
    design = {row["comment_id"]: row for row in routed.to_pylist()}
    wanted = routed.column("comment_id")
    prob = dict(zip(wanted.to_pylist(), _probabilities(routed, scores).tolist(), strict=True))
    columns = ["comment_id", "text", "parent_text", "language", "platform"]
    for batch in lake.read("comments", day, columns=columns):
        for row in batch.filter(pc.is_in(batch.column("comment_id"), wanted)).to_pylist():
            sent, p = design[row["comment_id"]], prob[row["comment_id"]]
            known = {name: sent[name] for name in ROUTED.names if name not in ("dt", "comment_id")}
            item = NewItem(**row, **known, prob=p, uncertainty=p * (1 - p))
            yield item
            for own in again.get(item.comment_id, ()):
                yield replace(item, kind="confirmation", **own)
