"""How many labels a proportion takes: as the textbook says where it says something."""

import pytest
from scipy import stats

from modwatch.common.errors import MetricInputError
from modwatch.statistics.live.sample_size import labels_for_width


@pytest.mark.parametrize(("rate", "width"), [(0.5, 0.1), (0.2, 0.05), (0.05, 0.02)])
def test_labels_for_a_share_are_near_the_normal_approximation(rate, width):
    wald = rate * (1 - rate) * (2 * stats.norm.ppf(0.975) / width) ** 2
    assert labels_for_width(rate, width) == pytest.approx(wald, rel=0.05)


def test_nothing_to_be_seen_takes_labels_all_the_same():
    none = labels_for_width(0.0, 0.01)
    assert 1 - 0.05 ** (1 / none) == pytest.approx(0.01, rel=0.01)  # mid-P: ½(1−p)ⁿ = 2.5 %


def test_a_small_population_needs_fewer_labels():
    assert labels_for_width(0.5, 0.1, population=500) < labels_for_width(0.5, 0.1)
    assert labels_for_width(0.5, 1e-6, population=500) == 500


@pytest.mark.parametrize("width", [0, -0.1, 1.5, float("nan")])
def test_a_width_that_cannot_be_is_refused(width):
    with pytest.raises(MetricInputError, match="width"):
        labels_for_width(0.5, width)


def test_more_labels_than_anybody_can_have_are_refused():
    assert labels_for_width(0.5, 0.0005) > 10**7
    with pytest.raises(MetricInputError, match="pass a larger width"):
        labels_for_width(0.5, 1e-7)
