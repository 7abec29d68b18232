"""The order in which a day's decisions are reviewed."""

import datetime
from collections.abc import Collection, Mapping
from typing import TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from modwatch.common.errors import SettingsError
from modwatch.data.duplicates import repeated
from modwatch.data.lake.day_scores import DayScores, attribute_codes
from modwatch.data.lake.delta import Lake
from modwatch.routing.design import RoutingPolicy
from modwatch.statistics.arguments import Floats
from modwatch.statistics.collaboration.ranking import slots
from modwatch.statistics.collaboration.review_strategies import Costs, review_score, review_scores
from modwatch.statistics.recalibration import Recalibration

#: Comments whose texts are compared at first, as a multiple of the capacity.
_COMPARED = 3


class ReviewInputs(TypedDict):
    """Arguments of `review_scores`."""

    calibrated: Floats | None
    given_variance: Floats | None
    columns: Mapping[str, NDArray[np.float32]]
    costs: Costs


def deployed_scores(
    lake: Lake,
    day: datetime.date,
    scores: DayScores,
    policy: RoutingPolicy,
    recalibration: Recalibration,
) -> Floats:
    """Return the review scores (N,) of a day by the policy, with copies as they are.

    Raises:
        SettingsError: the strategy needs a column that the scores of the day do not have.
    """
    check_columns(policy.strategy, scores.columns, scores.model_version)
    return review_scores(
        scores.prob,
        policy.strategy,
        flagged=scores.flagged,
        **review_inputs(lake, day, scores, policy, recalibration),
    )


def check_columns(strategy: str, columns: Collection[str], version: str) -> None:
    """Raise SettingsError if the review score needs a column that a model does not return.

    >>> check_columns("model_variance", ["prob"], "3")
    Traceback (most recent call last):
    modwatch.common.errors.SettingsError: MODWATCH_STRATEGY=model_variance needs the column \
model_variance, which version 3 does not return; set another strategy, or score by a model with it
    """
    if missing := set(review_score(strategy).needs) - set(columns):
        raise SettingsError(
            f"MODWATCH_STRATEGY={strategy} needs the column {min(missing)}, which version {version}"
            " does not return; set another strategy, or score by a model with it"
        )


def copies_of(
    lake: Lake, day: datetime.date, scores: DayScores, policy: RoutingPolicy, score: Floats
) -> NDArray[np.bool_]:
    """Return which comments (N,) repeat one with a higher review score (N,), as far as it matters.

    Texts are compared in the order of the scores and of the ids, until those that repeat nothing
    fill the capacity.
    """
    rows = pa.table({"score": score, "id": scores.comment_id})
    by = [("score", "descending"), ("id", "ascending")]
    order = pc.sort_indices(rows, sort_keys=by).to_numpy()
    capacity = slots(policy.review_fraction, score.size)
    count, enough = 0, capacity == 0
    copies = np.zeros(score.size, np.bool_)
    while not enough:
        count = min(max(_COMPARED * capacity, 4 * count), score.size)
        first = order[:count]
        copies[first] = repeated(_texts(lake, day, scores.comment_id.take(first).to_pylist()))
        enough = count - copies.sum() >= capacity or count == score.size
    return copies


def _texts(lake: Lake, day: datetime.date, ids: list[str]) -> list[str]:
    """Return the texts of comments; empty for those that are gone."""
    columns = ["comment_id", "text"]
    text = {row["comment_id"]: row["text"] for row in lake.comments(day, set(ids), columns=columns)}
    return [text.get(comment_id, "") for comment_id in ids]


def stored_copies(lake: Lake, day: datetime.date, scores: DayScores) -> NDArray[np.bool_] | None:
    """Return which comments (N,) were copies when the day was routed; None if there were none."""
    ids = lake.table("copies", day, columns=["comment_id"]).column("comment_id")
    if not len(ids):
        return None
    found = np.zeros(len(scores.prob), np.bool_)
    at = scores.positions(ids.chunks)
    found[at[at >= 0]] = True
    return found


def review_inputs(
    lake: Lake,
    day: datetime.date,
    scores: DayScores,
    policy: RoutingPolicy,
    recalibration: Recalibration,
) -> ReviewInputs:
    """Return the recalibrated scores (N,) of a day, its columns, and what its errors cost.

    Costs are those of the policy, else those for which the model's threshold is the best one;
    without a threshold both errors cost the same.
    """
    missed, alarmed = policy.false_negative_cost, policy.false_positive_cost
    if missed is None or alarmed is None:
        alarmed = 0.5 if scores.threshold is None else scores.threshold
        missed = 1 - alarmed
    factor = _platform_costs(lake, day, scores, policy) if policy.platform_costs else 1.0
    if policy.cost_by_views:
        factor = factor * _views(lake, day, scores)
    calibrated, given_variance = recalibration.probabilities(scores.prob, scores.columns)
    return {
        "calibrated": calibrated,
        "given_variance": given_variance,
        "columns": scores.columns,
        "costs": (missed * factor, alarmed * factor),
    }


def _platform_costs(
    lake: Lake, day: datetime.date, scores: DayScores, policy: RoutingPolicy
) -> Floats:
    """Return the factor (N,) of each comment's platform."""
    names = {name: code for code, name in enumerate(dict.fromkeys(("", *policy.platform_costs)))}
    codes = attribute_codes(lake, day, scores, "platform", names)
    return np.array([policy.platform_costs.get(name, 1.0) for name in names])[codes]


def _views(lake: Lake, day: datetime.date, scores: DayScores) -> Floats:
    """Return the views (N,) of each comment over their mean; 1 where they are not known."""
    rows = lake.table("comments", day, columns=["comment_id", "views"])
    place = scores.positions(rows.column("comment_id").chunks)
    views = np.full(len(scores.prob), np.nan)
    views[place[place >= 0]] = rows.column("views").to_numpy()[place >= 0]
    known = views[np.isfinite(views)]
    if not known.any():
        return np.ones_like(views)
    return np.where(np.isfinite(views), views / known.mean(), 1.0)
