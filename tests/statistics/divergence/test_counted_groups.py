"""What a report still finds when a third of the people count in a group that was drawn."""

from dataclasses import replace

import numpy as np
import pytest
from divergent_crowd import crowd

from modwatch.review.people.groups import KEPT, draw_group
from modwatch.statistics.divergence import group_report


@pytest.mark.simulation
def test_a_bias_of_five_points_between_hundreds_is_found_and_two_thirds_as_large():
    found, difference = 0, []
    for seed in range(20):
        made = crowd(seed, people=100, groups=2, bias=0.065)
        member = made.groups.code >= 0
        chosen = list(map(str, made.groups.code[member]))
        rng = np.random.default_rng(seed)
        code = made.groups.code.copy()
        code[member] = [int(draw_group(own, chosen, rng)) for own in chosen]
        counted = replace(made.groups, code=code)
        table = group_report(made.annotations, made.prob, counted, draws=99)
        row = table[(table["metric"] == "agreement") & (table["group"] == "group 1")].iloc[0]
        found += row["p_value"] < 0.05
        difference.append(row["difference"])
    assert found / 20 > 0.8
    # The standard error of the mean is 0.002.
    assert np.mean(difference) == pytest.approx(-0.0563 * KEPT, abs=0.008)
