"""Compares the challenger, which scores in shadow, with the champion over a window of days."""

import datetime
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow.compute as pc
from numpy.typing import NDArray

from modwatch.data.lake.day_scores import day_scores
from modwatch.data.lake.delta import Lake, as_batch
from modwatch.data.lake.schemas import CHALLENGER
from modwatch.monitoring.measurements import tables
from modwatch.monitoring.measurements.measurement import error_evidence
from modwatch.monitoring.measurements.windows import Window
from modwatch.routing.design import RoutingPolicy
from modwatch.statistics.collaboration.review_strategies import available
from modwatch.statistics.live.labelled_day import LabelledDay
from modwatch.statistics.live.paired import ModelDays, Setting, compare_days


def compare_window(lake: Lake, window: Window, policy: RoutingPolicy) -> int:
    """Compare the models on the days of a window that both scored; return how many days.

    The challenger is the one that scored the last of them. A comparison of the same days, scores
    and labels is not made again.
    """
    pairs = {day: pair for day in window.days if (pair := _pair(lake, day, policy)) is not None}
    version = next((pair.challenger_version for pair in reversed(pairs.values())), "")
    pairs = {day: pair for day, pair in pairs.items() if pair.challenger_version == version}
    if not pairs:
        lake.replace("challenger", window.last, [])
        return 0
    digest = hashlib.sha256(repr((window.digest, version, list(pairs))).encode()).hexdigest()
    made = lake.table("challenger", window.last, columns=["digest"]).column(0)
    if not (len(made) and made[0].as_py() == digest):
        table = _compared(lake, pairs, policy)
        table = table.assign(dt=window.last, days=len(pairs), digest=digest)
        lake.replace("challenger", window.last, [as_batch(table, CHALLENGER)])
    return len(pairs)


@dataclass(frozen=True, kw_only=True)
class _Pair:
    """A day that both models scored, without the ids of its comments."""

    #: With the champion's probabilities and decisions.
    labelled: LabelledDay
    champion_version: str
    #: (N,) the challenger's probabilities of the same comments, and its decisions.
    prob: NDArray[np.float32]
    flagged: NDArray[np.bool_]
    #: (N,) its further columns.
    columns: Mapping[str, NDArray[np.float32]]
    challenger_version: str


def _pair(lake: Lake, day: datetime.date, policy: RoutingPolicy) -> _Pair | None:
    """Return the day; None if the challenger did not score all that the champion scored.

    Nor where it lacks a column that the review strategy of the day needs.
    """
    if not lake.count("scores", day, role="challenger"):
        return None
    champion, challenger = day_scores(lake, day), day_scores(lake, day, role="challenger")
    ids = challenger.comment_id.combine_chunks()
    place = pc.index_in(champion.comment_id.combine_chunks(), ids)
    strategy, _ = tables.deployed(lake, day)
    if place.null_count or strategy not in available([*challenger.columns]):
        return None
    at = place.to_numpy(zero_copy_only=False)
    return _Pair(
        labelled=tables.labelled_day(lake, day, champion, policy),
        champion_version=champion.model_version,
        prob=challenger.prob[at],
        flagged=challenger.flagged[at],
        columns={name: column[at] for name, column in challenger.columns.items()},
        challenger_version=challenger.model_version,
    )


def _compared(
    lake: Lake, pairs: Mapping[datetime.date, _Pair], policy: RoutingPolicy
) -> pd.DataFrame:
    *_, last = pairs.values()
    labelled = [pair.labelled for pair in pairs.values()]
    champion = ModelDays(days=labelled)
    strategy, fraction = tables.deployed(lake, max(pairs))
    table = compare_days(
        champion,
        champion.scored_by(
            [pair.prob for pair in pairs.values()],
            [pair.flagged for pair in pairs.values()],
            columns=[pair.columns for pair in pairs.values()],
        ),
        Setting(
            review_fraction=fraction,
            strategy=strategy,
            known=error_evidence(lake, list(pairs), policy),
        ),
    )
    return table.assign(
        champion_version=last.champion_version, challenger_version=last.challenger_version
    )
