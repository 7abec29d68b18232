"""The rows that routing writes: the sampling design, the routed comments, and their queue items."""

import datetime
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypedDict

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from modwatch.common.text import named_model
from modwatch.data.lake.day_scores import DayScores, model_origin
from modwatch.data.lake.delta import Lake, as_batch
from modwatch.data.lake.schemas import CONFIRMATION_PROBABILITIES, COPIES, ROUTED, ROUTING_DESIGN
from modwatch.review.queue.items import NewItem, content_columns, content_of
from modwatch.routing.confirmation_design import confirmation_probabilities, draw_confirmations
from modwatch.routing.design import Routing, RoutingPolicy
from modwatch.statistics.collaboration.review_strategies import review_score
from modwatch.statistics.recalibration import Recalibration
from modwatch.statistics.sampling import random_keys

#: The second and the third person.
ROUNDS = (2, 3)

#: Columns of ROUTED that an item has, too.
_DESIGN = tuple(
    name for name in ROUTED.names if name not in ("dt", "comment_id", *CONFIRMATION_PROBABILITIES)
)


#: Share of toxic labels of the top, and of the slice.
ToxicLabels = tuple[float | None, float | None]


class Confirmation(TypedDict):
    """What an item of a round has instead of the values of the comment's first item."""

    round: int
    rank: int
    #: The first labels that are confirmed.
    confirms: list[int]
    #: In [0, 1], by the first label.
    confirmation_probability_0: float
    confirmation_probability_1: float


def sampling_keys(
    scores: DayScores, *, day: datetime.date, policy: RoutingPolicy, salt: str
) -> NDArray[np.uint64]:
    """Return one permanent random number (N,) a comment, made chunk by chunk."""
    parts = [
        random_keys(chunk.to_pylist(), day=day.isoformat(), design_digest=policy.digest, salt=salt)
        for chunk in scores.comment_id.chunks
    ]
    return np.concatenate([np.zeros(0, np.uint64), *parts])


def scores_digest(scores: DayScores, keys: NDArray[np.uint64], columns: Sequence[str] = ()) -> str:
    """Return a hash of a day's scores and decisions that does not depend on their order.

    `keys` (N,) stand for the ids: the smallest come first. `columns` of the model are hashed, too.
    """
    order = np.argsort(keys, kind="stable")
    digest = hashlib.sha256()
    hashed: list[NDArray[Any]] = [keys, scores.prob, scores.flagged]
    for column in (*hashed, *(scores.columns[name] for name in columns)):
        digest.update(column[order].tobytes())
    return digest.hexdigest()


def design_rows(
    day: datetime.date,
    scores: DayScores,
    policy: RoutingPolicy,
    routing: Routing,
    keys: NDArray[np.uint64],
    recalibration: Recalibration,
) -> pa.RecordBatch:
    """Return the day's sampling design as rows of ROUTING_DESIGN."""
    by_score, by_variance = recalibration.by_score, recalibration.by_variance
    coefficients = None if by_variance is None else by_variance.coefficients
    frame = routing.strata.assign(
        dt=day,
        model_version=scores.model_version,
        strategy=policy.strategy,
        review_fraction=policy.review_fraction,
        intercept=np.nan if by_score is None else by_score.intercept,
        slope=np.nan if by_score is None else by_score.slope,
        by_variance=pd.Series([coefficients] * len(routing.strata), dtype=object),
        scores_digest=scores_digest(scores, keys, review_score(policy.strategy).needs),
    )
    return as_batch(frame, ROUTING_DESIGN)


def copy_rows(day: datetime.date, scores: DayScores, copies: NDArray[np.bool_]) -> pa.RecordBatch:
    """Return the copies (N,) of a day as rows of COPIES."""
    ids = scores.comment_id.take(pa.array(np.flatnonzero(copies)))
    return as_batch(pd.DataFrame({"comment_id": ids.to_pylist()}).assign(dt=day), COPIES)


def routed_rows(
    day: datetime.date,
    scores: DayScores,
    policy: RoutingPolicy,
    routing: Routing,
    *,
    toxic_labels: ToxicLabels = (None, None),
) -> pa.RecordBatch:
    """Return the routed comments as rows of ROUTED, in the order of the queue.

    `toxic_labels` are those of recent days, as `recent_labels` returns them.
    """
    chance = confirmation_probabilities(
        scores.prob[routing.row].astype(np.float64),
        routing.stratum,
        flagged=scores.flagged[routing.row],
        share=policy.confirmation_share,
        toxic_labels=toxic_labels,
    )
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
            "confirmation_probability_0": chance[:, 0],
            "confirmation_probability_1": chance[:, 1],
        }
    )
    return as_batch(frame, ROUTED)


def as_routed_before(lake: Lake, day: datetime.date, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows with the confirmation probabilities of an earlier run, if it routed the same.

    Labels that came in since then do not change what is confirmed.
    """
    before = lake.table("routed", day).to_pandas().sort_values("rank", ignore_index=True)
    now = rows.to_pandas().sort_values("rank", ignore_index=True)
    chance = list(CONFIRMATION_PROBABILITIES)
    if not before.drop(columns=chance).equals(now.drop(columns=chance)):
        return rows
    switched = before[chance].isna().any(axis=None) or (
        before[chance].any(axis=None) != now[chance].any(axis=None)
    )
    return rows if switched else as_batch(before, ROUTED)


def recent_labels(lake: Lake, days: Sequence[datetime.date]) -> ToxicLabels:
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


def confirmations(
    day: datetime.date, routed: pa.RecordBatch, *, policy: RoutingPolicy, salt: str
) -> dict[str, list[Confirmation]]:
    """Return the confirmations of rounds 2 and 3 of each comment that may have them, by its id.

    The keys have nothing to do with those of the slice, and those of the ranks nothing with those
    of the draw.
    """
    ids = routed.column("comment_id").to_pylist()
    keys, rank_keys = (
        random_keys(ids, day=day.isoformat(), design_digest=f"{policy.digest} {use}", salt=salt)
        for use in ("confirmation", "confirmation rank")
    )
    chance = np.column_stack(
        [routed.column(name).to_numpy() for name in CONFIRMATION_PROBABILITIES]
    )
    drawn = draw_confirmations(chance, keys, rank_keys)
    return {
        ids[row]: [
            Confirmation(
                round=round_,
                rank=rank,
                confirms=np.flatnonzero(confirmed).tolist(),
                confirmation_probability_0=float(chance[row, 0]),
                confirmation_probability_1=float(chance[row, 1]),
            )
            for round_, rank in zip(ROUNDS, ranks, strict=True)
        ]
        for row, confirmed, ranks in zip(
            drawn.row, drawn.confirmed, drawn.rank.tolist(), strict=True
        )
    }


def queue_items(
    lake: Lake,
    day: datetime.date,
    routed: pa.RecordBatch,
    scores: DayScores,
    confirmations: Mapping[str, Sequence[Confirmation]] = MappingProxyType({}),
) -> Iterator[NewItem]:
    """Yield the routed comments with their texts, as the review queue takes them.

    Those in `confirmations`, from the function of this name, come once more for each round.
    """
    design = {row["comment_id"]: row for row in routed.to_pylist()}
    wanted = routed.column("comment_id")
    at = scores.positions([wanted])
    known = zip(scores.prob[at].tolist(), scores.cut[at].tolist(), strict=True)
    scored = dict(zip(wanted.to_pylist(), known, strict=True))
    columns = content_columns(lake.columns)
    model = named_model(scores.model_version, model_origin(lake, day))
    for row in lake.comments(day, design, columns=columns):
        sent, (p, cut) = design[row["comment_id"]], scored[row["comment_id"]]
        drawn = {name: sent[name] for name in _DESIGN} | {"model_version": model}
        content = content_of(row, lake.columns)
        item = NewItem(**content, **drawn, prob=p, uncertainty=0.25 if cut else p * (1 - p))
        yield item
        for confirmation in confirmations.get(item.comment_id, ()):
            yield replace(item, kind="confirmation", **confirmation)
