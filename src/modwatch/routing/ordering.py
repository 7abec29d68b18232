"""By what a day's decisions are ordered for review besides its scores."""

import datetime
from typing import TypedDict

import numpy as np
import pyarrow as pa

from modwatch.data.lake.day_scores import DayScores
from modwatch.data.lake.delta import Lake
from modwatch.routing.design import RoutingPolicy
from modwatch.statistics.arguments import Floats
from modwatch.statistics.collaboration.review_strategies import Costs
from modwatch.statistics.recalibration import Calibration


class ReviewInputs(TypedDict):
    """Arguments of `review_scores`."""

    calibrated: Floats | None
    costs: Costs


def review_inputs(
    lake: Lake,
    day: datetime.date,
    scores: DayScores,
    policy: RoutingPolicy,
    recalibration: Calibration | None,
) -> ReviewInputs:
    """Return the recalibrated scores (N,) of a day, and what its errors cost.

    Costs are those of the policy, else those for which the model's threshold is the best one;
    without a threshold both errors cost the same.
    """
    missed, alarmed = policy.false_negative_cost, policy.false_positive_cost
    if missed is None or alarmed is None:
        alarmed = 0.5 if scores.threshold is None else scores.threshold
        missed = 1 - alarmed
    factor = _platform_costs(lake, day, scores, policy) if policy.platform_costs else 1.0
    return {
        "calibrated": (None if recalibration is None else recalibration.probability(scores.prob)),
        "costs": (missed * factor, alarmed * factor),
    }


def _platform_costs(
    lake: Lake, day: datetime.date, scores: DayScores, policy: RoutingPolicy
) -> Floats:
    """Return the factor (N,) of each comment's platform."""
    factor = np.ones(len(scores.prob))
    ids, factors = list[pa.Array](), list[float]()
    for batch in lake.read("comments", day, columns=["comment_id", "platform"]):
        ids.append(batch.column("comment_id"))
        names = batch.column("platform").to_pylist()
        factors.extend(policy.platform_costs.get(name, 1.0) for name in names)
    place = scores.positions(ids)
    factor[place[place >= 0]] = np.array(factors)[place >= 0]
    return factor
