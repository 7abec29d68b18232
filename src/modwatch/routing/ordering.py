"""By what a day's decisions are ordered for review besides its scores."""

import datetime
from typing import TypedDict

import numpy as np

from modwatch.data.lake.day_scores import DayScores, attribute_codes
from modwatch.data.lake.delta import Lake
from modwatch.routing.design import RoutingPolicy
from modwatch.statistics.arguments import Floats
from modwatch.statistics.collaboration.review_strategies import Costs, review_scores
from modwatch.statistics.recalibration import Calibration


class ReviewInputs(TypedDict):
    """Arguments of `review_scores`."""

    calibrated: Floats | None
    costs: Costs


def deployed_scores(
    lake: Lake,
    day: datetime.date,
    scores: DayScores,
    policy: RoutingPolicy,
    recalibration: Calibration | None,
) -> Floats:
    """Return the review scores (N,) of a day by the policy."""
    return review_scores(
        scores.prob,
        policy.strategy,
        flagged=scores.flagged,
        toxic_share=policy.toxic_share,
        **review_inputs(lake, day, scores, policy, recalibration),
    )


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
    names = {name: code for code, name in enumerate(dict.fromkeys(("", *policy.platform_costs)))}
    codes = attribute_codes(lake, day, scores, "platform", names)
    return np.array([policy.platform_costs.get(name, 1.0) for name in names])[codes]
