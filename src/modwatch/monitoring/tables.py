"""Turns rows of the lake into the arrays that `metrics` takes, and its results into rows.

Only columns that a function needs are loaded, so that a day of millions stays small in memory.
"""

import datetime
import hashlib
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from modwatch.errors import DesignError
from modwatch.lake.day_scores import DayScores
from modwatch.lake.delta import Lake
from modwatch.lake.schemas import CONFIRMATION_PROBABILITIES, MEASUREMENTS, as_batch
from modwatch.metrics.annotator_error import GoldAnswers, LabelPairs
from modwatch.metrics.estimation.labelled_day import LabelledDay


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
    """Return first label and second label of the comments of `days`, one at least, with both.

    The first label is that which was confirmed, as it was given. Weights go with the inverse of the
    probability that the comment was routed and that label confirmed.
    """
    routed = pd.concat([_twice_labelled(lake, day) for day in days], ignore_index=True)
    top, paired = routed["stratum"] == 0, routed["paired"]
    weight = (1 / routed["probability"]).where(paired, 0.0)
    weight *= weight.groupby(top).transform("size") / weight.groupby(top).transform("sum")
    pairs = routed[paired]
    return LabelPairs(
        first=pairs["first_label"].to_numpy(np.int8),
        second=pairs["label_second"].to_numpy(np.int8),
        top=top[paired].to_numpy(np.bool_),
        weight=weight[paired].to_numpy(np.float64),
    )


def _twice_labelled(lake: Lake, day: datetime.date) -> pd.DataFrame:
    """Return the routed comments of a day, with both labels where they are `paired`."""
    columns = ["comment_id", "stratum", "inclusion_probability", *CONFIRMATION_PROBABILITIES]
    frame: pd.DataFrame = lake.table("routed", day, columns=columns).to_pandas()
    given = ["comment_id", "label", "moderator"]
    labels = lake.table("labels", day, columns=given).to_pandas()
    again = lake.table("confirmations", day, columns=[*given, "round", "first_label"]).to_pandas()
    again = again[again["round"] == 2]
    frame = frame.merge(labels, on="comment_id", how="left")
    frame = frame.merge(again, on="comment_id", how="left", suffixes=("", "_second"))
    confirmed = frame[CONFIRMATION_PROBABILITIES[1]].where(
        frame["first_label"] == 1, frame[CONFIRMATION_PROBABILITIES[0]]
    )
    # The queue serves nobody a comment twice; a pair by one person would be a retest.
    labelled = frame["label"].notna() & frame["label_second"].notna() & (confirmed > 0)
    paired = labelled & (frame["moderator"] != frame["moderator_second"])
    return frame[["stratum", "first_label", "label_second"]].assign(
        paired=paired, probability=frame["inclusion_probability"] * confirmed
    )


def retest_pairs(lake: Lake, days: Sequence[datetime.date]) -> LabelPairs:
    """Return both labels of each retest of `days`.

    Retests are drawn evenly from what was labelled, so weights are 1 on average over the top, and
    over the rest, where they go with 1/inclusion probability.
    """
    answers = _answers(lake, days, "retest")
    top = (answers["stratum"] == 0).to_numpy(np.bool_)
    weight = 1 / answers["inclusion_probability"].to_numpy(np.float64)
    for part in (top, ~top):
        if part.any():
            weight[part] *= part.sum() / weight[part].sum()
    return LabelPairs(
        first=answers["known"].to_numpy(np.int8),
        second=answers["label"].to_numpy(np.int8),
        top=top,
        weight=weight,
    )


def gold_answers(lake: Lake, days: Sequence[datetime.date]) -> GoldAnswers:
    """Return how the gold items of `days` were answered, all people together."""
    answers = _answers(lake, days, "gold")
    toxic, right = answers["known"] == 1, answers["known"] == answers["label"]
    return GoldAnswers(
        toxic=int(toxic.sum()),
        toxic_right=int((toxic & right).sum()),
        other=int((~toxic).sum()),
        other_right=int((~toxic & right).sum()),
    )


def _answers(lake: Lake, days: Sequence[datetime.date], kind: str) -> pd.DataFrame:
    frames = [lake.table("check_answers", day).to_pandas() for day in days]
    every = pd.concat(frames, ignore_index=True)
    return pd.DataFrame(every[every["kind"] == kind])


def deployed(lake: Lake, day: datetime.date) -> tuple[str, float]:
    """Return the strategy and the review fraction that `day` was routed with."""
    design = lake.table("routing_design", day, columns=["strategy", "review_fraction"])
    return str(design.column(0)[0]), float(design.column(1)[0])


def labels_digest(lake: Lake, day: datetime.date) -> str:
    """Return a hash of all that measurements take of a day: design, routed rows, answers."""
    digest = hashlib.sha256()
    for table, columns in (
        ("routing_design", ["model_version", "stratum", "population", "sample"]),
        ("routed", ["comment_id", "stratum", *CONFIRMATION_PROBABILITIES]),
        ("labels", ["comment_id", "label"]),
        ("confirmations", ["comment_id", "round", "label", "first_label", "moderator"]),
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
    """Return a table of `metrics.estimate` as rows of MEASUREMENTS."""
    return as_batch(table.assign(dt=day, labels_digest=digest), MEASUREMENTS)


def _positions(rows: pa.Table, scores: DayScores) -> NDArray[np.int64]:
    """Return where in the day's scores each row's comment stands, (m,)."""
    places = pc.index_in(rows.column("comment_id"), scores.comment_id.combine_chunks())
    return np.asarray(places.to_numpy(zero_copy_only=False), np.int64)
