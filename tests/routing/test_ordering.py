"""By what decisions are ordered: recalibrated scores, and the costs of errors."""

import datetime
from dataclasses import replace

import numpy as np
import pytest
from lake_days import put_comments, put_scores

from modwatch.data.lake.day_scores import day_scores
from modwatch.data.lake.delta import Lake
from modwatch.routing.design import RoutingPolicy
from modwatch.routing.ordering import review_inputs
from modwatch.statistics.recalibration import Calibration, Recalibration

DAY = datetime.date(2026, 1, 5)
NOTHING = Recalibration()
PLATFORMS = ["forum", "kids", "kids", "", "chat"]


@pytest.fixture
def lake(tmp_path):
    return Lake(root=str(tmp_path / "lake"))


@pytest.fixture
def scores(lake):
    put_comments(lake, DAY, len(PLATFORMS), platform=PLATFORMS)
    put_scores(lake, DAY, np.linspace(0.1, 0.9, len(PLATFORMS)))
    return replace(day_scores(lake, DAY), threshold=0.2)


def inputs(lake, scores, recalibration=NOTHING, **costs):
    policy = RoutingPolicy(review_fraction=0.1, **costs)
    return review_inputs(lake, DAY, scores, policy, recalibration)


def test_without_costs_the_threshold_says_them(lake, scores):
    found = inputs(lake, scores)
    assert found["costs"] == (0.8, 0.2)
    assert found["calibrated"] is found["given_variance"] is None
    of_source = replace(scores, threshold=None)
    assert inputs(lake, of_source)["costs"] == (0.5, 0.5)


def test_costs_are_those_of_the_policy_and_the_platform(lake, scores):
    given = {"false_negative_cost": 5, "false_positive_cost": 1}
    assert inputs(lake, scores, **given)["costs"] == (5, 1)
    missed, alarmed = inputs(lake, scores, **given, platform_costs={"kids": 10, "chat": 0})["costs"]
    by_id = dict(zip(scores.comment_id.to_pylist(), np.asarray(missed).tolist(), strict=True))
    assert [by_id[name] for name in sorted(by_id)] == [5, 50, 50, 5, 0]
    assert (missed == 5 * alarmed).all()


@pytest.mark.parametrize(
    ("views", "factors"),
    [
        ([3.0, 1.0, None, 2.0, 2.0], [1.5, 0.5, 1, 1, 1]),
        ([None] * 5, [1] * 5),
        ([0.0] * 5, [1] * 5),
    ],
)
def test_costs_grow_with_the_views(lake, views, factors):
    put_comments(lake, DAY, 5, views=views)
    put_scores(lake, DAY, np.linspace(0.1, 0.9, 5))
    scores = replace(day_scores(lake, DAY), threshold=0.2)
    missed, alarmed = inputs(lake, scores, cost_by_views=True)["costs"]
    by_id = dict(zip(scores.comment_id.to_pylist(), np.asarray(missed).tolist(), strict=True))
    assert [by_id[name] for name in sorted(by_id)] == pytest.approx([0.8 * f for f in factors])
    assert missed == pytest.approx(4 * alarmed)


def test_scores_are_recalibrated(lake, scores):
    line = Calibration(intercept=-1.0, slope=0.5)
    found = inputs(lake, scores, Recalibration(by_score=line))["calibrated"]
    assert found.tolist() == line.probability(scores.prob).tolist()
