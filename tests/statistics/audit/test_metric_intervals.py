"""Metrics of an audit where one side is known exactly, and the other in many imputations."""

import numpy as np
import pytest

from modwatch.statistics.audit.metric_intervals import METHODS
from modwatch.statistics.audit.share_interval import SideShare


@pytest.mark.parametrize("metric", ["recall", "f1", "accuracy", "prevalence"])
def test_a_side_without_comments_goes_with_any_number_of_others(metric):
    zero, many = np.float64(0), np.full(60, 0.1)
    nothing = SideShare(value=zero, low=zero, high=zero, error=zero, comments=0, variance=zero)
    others = SideShare(
        value=many, low=many / 2, high=2 * many, error=many / 4, comments=400, variance=many / 100
    )
    found = METHODS[metric](nothing, others)
    ends = [np.broadcast_to(end, 60) for end in (found.low, found.value, found.high)]
    assert (ends[0] <= ends[1]).all()
    assert (ends[1] <= ends[2]).all()
