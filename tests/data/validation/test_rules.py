import pytest

from modwatch.common.errors import SettingsError
from modwatch.data.validation.rules import Thresholds


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ({"max_text_length": 0}, "max_text_length must be above 0"),
        ({"score_shift": float("nan")}, "score_shift must be above 0"),
        ({"quarantined_critical": 1.5}, "quarantined_critical must be at most 1"),
        ({"quarantined_warning": 0.5}, "quarantined_warning must not exceed quarantined_critical"),
        ({"collapsed_volume": 0.9}, "collapsed_volume must not exceed low_volume"),
        ({"min_trailing_days": 30}, "min_trailing_days must not exceed trailing_days"),
    ],
)
def test_impossible_bounds_are_refused_by_name(bad, named):
    with pytest.raises(SettingsError, match=named):
        Thresholds(**bad)
